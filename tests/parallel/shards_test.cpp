#include "core/parallel/shards.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "core/parallel/region.h"
#include "tests/core/io/scratch.h"

namespace lunaria::parallel {
namespace {

using test::error_of;
using test::Scratch;

Tensor counted(const Shape& shape, DType dtype = DType::f32) {
    Tensor t = Tensor::empty(dtype, shape);
    for (int64_t i = 0; i < shape.size(); ++i) t.set_at(i, static_cast<double>(i % 251));
    return t;
}

// The elements of a region, one by one.
Tensor cut(const Tensor& all, const Region& region) {
    Tensor piece = Tensor::empty(all.dtype(), shape_of(region));
    const size_t width = size_of(all.dtype());
    each_run(region, whole(all.shape()), region, [&](int64_t from, int64_t to, int64_t count) {
        std::memcpy(static_cast<char*>(piece.raw()) + static_cast<size_t>(to) * width,
                    static_cast<const char*>(all.raw()) + static_cast<size_t>(from) * width,
                    static_cast<size_t>(count) * width);
    });
    return piece;
}

Region cell(const Shape& shape, const std::vector<int64_t>& parts, int64_t index) {
    Region region = whole(shape);
    int axis = shape.rank();
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        --axis;
        region[static_cast<size_t>(axis)] = piece_of(shape[axis], index % *part, *part);
        index /= *part;
    }
    return region;
}

Piece piece(const std::string& name, const Tensor& all, const Region& region) {
    Piece result{name, cut(all, region), all.shape(), {}, 0, "", ""};
    for (const Interval& i : region) result.offsets.push_back(i.begin);
    return result;
}

void write(const std::string& path, const std::vector<Piece>& pieces, const Metadata& metadata = {}) {
    FileSink sink(path);
    write_pieces(sink, pieces, metadata);
    sink.commit();
}

bool same(const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() && test::bytes_of(a) == test::bytes_of(b);
}

TEST(region, what_remains_and_a_part_make_up_the_whole) {
    const Shape shape{5, 4, 3};
    for (int64_t code = 0; code < 2000; ++code) {
        int64_t left = code * 7919 % 100000;
        Region part;
        for (int64_t size : shape) {
            const int64_t begin = left % size;
            left /= size;
            part.push_back({begin, begin + 1 + left % (size - begin)});
            left /= size;
        }
        std::vector<Region> rest;
        subtract(whole(shape), part, rest);
        std::vector<int> count(static_cast<size_t>(shape.size()), 0);
        rest.push_back(part);
        for (const Region& region : rest)
            each_run(region, whole(shape), region, [&](int64_t from, int64_t, int64_t n) {
                for (int64_t i = from; i < from + n; ++i) ++count[static_cast<size_t>(i)];
            });
        ASSERT_EQ(std::count(count.begin(), count.end(), 1), shape.size()) << part;
    }
}

TEST(shards, any_number_of_ranks_reads_what_any_other_wrote) {
    const Tensor a = counted({7, 6, 5}), b = counted({9}, DType::bf16), c = counted({4, 3}, DType::boolean),
                 scalar = counted({}, DType::i64);
    const std::vector<std::pair<int64_t, std::vector<int64_t>>> grids = {
        {1, {1, 1, 1}}, {2, {2, 1, 1}}, {3, {1, 3, 1}}, {4, {2, 1, 2}}, {8, {2, 2, 2}}, {8, {1, 1, 8}}};
    for (const auto& [n, grid] : grids) {
        Scratch scratch;
        for (int64_t rank = 0; rank < n; ++rank) {
            std::vector<Piece> pieces = {piece("a", a, cell(a.shape(), grid, rank)),
                                         piece("b", b, cell(b.shape(), {n}, rank)),
                                         piece("c", c, cell(c.shape(), {n, 1}, rank))};
            if (writer_of("scalar", n) == rank) pieces.push_back(piece("scalar", scalar, {}));
            write(scratch.path(shard_name(rank, n)), pieces);
        }
        const Shards shards(scratch.folder());
        EXPECT_EQ(shards.ranks(), n);
        EXPECT_TRUE(shards.absent().empty());
        EXPECT_TRUE(same(shards.read("scalar"), scalar));
        EXPECT_TRUE(same(shards.read("c"), c));
        for (const auto& [m, wanted] : grids)
            for (int64_t rank = 0; rank < m; ++rank)
                for (const auto check : {Shards::Check::sums, Shards::Check::nothing}) {
                    const Region region = cell(a.shape(), wanted, rank), line = cell(b.shape(), {m}, rank);
                    EXPECT_TRUE(same(shards.read("a", region, check), cut(a, region))) << n << " to " << m << region;
                    EXPECT_TRUE(same(shards.read("b", line, check), cut(b, line)));
                }
    }
}

TEST(shards, only_the_blocks_that_hold_a_region_are_read) {
    Scratch scratch;
    const Tensor all = counted({3000, 1000});  // 12 MB
    write(scratch.path(shard_name(0, 1)), {piece("w", all, whole(all.shape()))});
    const Shards shards(scratch.folder());
    const Region rows = {{1000, 1010}, {0, 1000}};
    EXPECT_TRUE(same(shards.read("w", rows, Shards::Check::nothing), cut(all, rows)));
    EXPECT_EQ(shards.bytes_read(), 40000u);
    EXPECT_TRUE(same(shards.read("w", rows, Shards::Check::sums), cut(all, rows)));
    EXPECT_LE(shards.bytes_read(), 40000u + (2u << 20));
    const Region columns = {{0, 3000}, {998, 1000}};
    EXPECT_TRUE(same(shards.read("w", columns, Shards::Check::sums), cut(all, columns)));
    EXPECT_TRUE(same(shards.read("w"), all));
}

TEST(shards, what_is_wrong_is_told_with_tensor_file_and_region) {
    Scratch scratch;
    const Tensor w = counted({8, 4});
    for (int64_t rank = 0; rank < 4; ++rank)
        write(scratch.path(shard_name(rank, 4)), {piece("w", w, cell(w.shape(), {4, 1}, rank))});
    const std::string second = scratch.path(shard_name(1, 4)), third = scratch.path(shard_name(2, 4));
    {
        // One bit of the contents.
        std::fstream file(third, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(-5, std::ios::end);
        file.put('\x7f');
    }
    const Shards shards(scratch.folder());
    const std::string damaged = error_of([&] { shards.read("w"); }, "rank-0002-of-0004.safetensors: damaged: the sum");
    EXPECT_NE(damaged.find("'w' [4:6, 0:4]"), std::string::npos) << damaged;
    error_of([&] { shards.verify(2); }, "'w' [4:6, 0:4]");
    shards.verify(1);
    EXPECT_TRUE(same(shards.read("w", {{0, 4}, {0, 4}}, Shards::Check::sums), cut(w, {{0, 4}, {0, 4}})));
    std::filesystem::remove(second);
    error_of([&] { shards.read("w"); }, "rank-0001-of-0004.safetensors: cannot be opened: No such file");
    const Shards without(scratch.folder());
    EXPECT_EQ(without.absent(), std::vector<int64_t>{1});
    error_of([&] { without.read("w"); },
             "the elements [2:4, 0:4] of 'w' are in none of its files: rank 1 of 4 had them, and "
             "rank-0001-of-0004.safetensors is not there");
    error_of([&] { without.read("v"); }, "has no tensor named 'v' among its 1\n  hint: the file of rank 1 of 4");
    std::filesystem::resize_file(third, std::filesystem::file_size(third) - 1);
    error_of(
        [&] {
            without.read("w", {{4, 6}, {0, 4}}, Shards::Check::sums);
        },
        "rank-0002-of-0004.safetensors: was changed");
    error_of([&] { Shards(scratch.folder()); }, "rank-0002-of-0004.safetensors: truncated");
}

TEST(shards, files_that_do_not_fit_together_are_refused) {
    Scratch scratch;
    const Tensor w = counted({8, 4}), v = counted({8, 2});
    error_of([&] { Shards(scratch.folder()); }, "has no files of ranks, as rank-0000-of-0001.safetensors");
    write(scratch.path(shard_name(0, 2)), {piece("w", w, cell(w.shape(), {2, 1}, 0))});
    write(scratch.path(shard_name(1, 2)), {piece("w", v, cell(v.shape(), {2, 1}, 1))});
    error_of([&] { Shards(scratch.folder()); }, "'w' is float32 (8, 2) here and float32 (8, 4) in ");
    write(scratch.path(shard_name(1, 2)), {piece("w", w, cell(w.shape(), {2, 1}, 1))});
    write(scratch.path(shard_name(2, 3)), {});
    error_of([&] { Shards(scratch.folder()); }, "has files of 2 and of 3 ranks");
}

TEST(shards, the_last_rank_completes_a_step_and_no_other) {
    Scratch scratch;
    const Tensor w = counted({4});
    const std::string draft = scratch.path("step-000001.job"), final = scratch.path("step-000001");
    for (int64_t round = 0; round < 2; ++round) {  // the second replaces the step of the first
        std::filesystem::create_directory(draft);
        for (int64_t rank = 0; rank < 3; ++rank) {
            write(draft + "/" + shard_name(rank, 3), {piece("w", w, cell(w.shape(), {3}, rank))},
                  {{"round", str(round)}});
            EXPECT_EQ(complete_step(draft, final, 3), rank == 2);
        }
        EXPECT_FALSE(complete_step(draft, final, 3));
        EXPECT_FALSE(std::filesystem::exists(draft));
        EXPECT_TRUE(std::filesystem::exists(final + "/complete"));
        EXPECT_EQ(Shards(final).files()[1].metadata.at(0).second, str(round));
        EXPECT_TRUE(same(Shards(final).read("w"), w));
    }
}

TEST(shards, writers_of_replicas_are_spread) {
    std::array<int, 4> count{};
    for (int i = 0; i < 1000; ++i) ++count[static_cast<size_t>(writer_of(str("layer", i, ".weight"), 4))];
    for (int n : count) EXPECT_GT(n, 200);
    EXPECT_EQ(writer_of("w", 1), 0);
}

TEST(shards, names_of_files_are_read_as_they_are_written) {
    int64_t rank = 0, ranks = 0;
    for (const auto& [r, n] : {std::pair<int64_t, int64_t>{0, 1}, {3, 4}, {4095, 4096}, {12345, 100000}}) {
        EXPECT_TRUE(parse_shard_name(shard_name(r, n), rank, ranks));
        EXPECT_EQ(std::pair(rank, ranks), std::pair(r, n));
    }
    for (const char* name : {"rank-0001-of-0001.safetensors", "rank-1-of-2.safetensors", "rank-0000-of-0001.ckpt",
                             "rank-0000-of-0001.safetensors.part", "complete"})
        EXPECT_FALSE(parse_shard_name(name, rank, ranks)) << name;
}

}  // namespace
}  // namespace lunaria::parallel
