#include "core/io/idx.h"

#include <zlib.h>

#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

Tensor read(const std::string& bytes) { return read_idx(*memory_source("x-idx", bytes)); }

std::string idx(char type, const std::vector<uint32_t>& dims, const std::string& data) {
    std::string file{0, 0, type, static_cast<char>(dims.size())};
    for (uint32_t d : dims)
        for (int i = 3; i >= 0; --i) file += static_cast<char>(d >> (8 * i) & 0xff);
    return file + data;
}

std::string gzip(const std::string& bytes) {
    z_stream state{};
    deflateInit2(&state, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&state, bytes.size()), '\0');
    state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    state.avail_in = static_cast<uInt>(bytes.size());
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(out.size());
    deflate(&state, Z_FINISH);
    out.resize(state.total_out);
    deflateEnd(&state);
    return out;
}

TEST(idx, every_type_is_read_big_endian) {
    EXPECT_EQ(read(idx(0x08, {2}, "\1\xff")).integer_at(1), 255);
    EXPECT_EQ(read(idx(0x09, {2}, "\1\xff")).integer_at(1), -1);
    EXPECT_EQ(read(idx(0x0b, {1, 1}, "\1\2")).integer_at(0), 258);
    EXPECT_EQ(read(idx(0x0c, {1}, std::string("\0\1\0\0", 4))).integer_at(0), 65536);
    EXPECT_EQ(read(idx(0x0d, {1}, std::string("\x3f\x80\0\0", 4))).at(0), 1.0);
    EXPECT_EQ(read(idx(0x0e, {1}, std::string("\x3f\xf0\0\0\0\0\0\0", 8))).at(0), 1.0);
    EXPECT_EQ(read(idx(0x08, {0, 28, 28}, "")).shape(), (Shape{0, 28, 28}));
}

TEST(idx, sizes_must_match_the_file) {
    error_of([] { read(idx(0x08, {3}, "12")); }, "truncated");
    error_of([] { read(idx(0x08, {1}, "12")); }, "follow");
    error_of([] { read(idx(0x08, {0x80000000u, 28, 28}, "12")); }, "1683627180032 bytes");
    error_of([] { read(idx(0x08, {0xffffffffu, 0xffffffffu, 0xffffffffu}, "12")); }, "too large");
    error_of([] { read(idx(0x08, {}, "1")); }, "0 axes");
    error_of([] { read(idx(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "1")); }, "9 axes");
    error_of([] { read(idx(0x0a, {1}, "1")); }, "format");
    error_of([] { read(std::string("\1\0\x8\1", 4)); }, "format");
    error_of([] { read(""); }, "empty");
}

TEST(idx, gzip_is_checked_as_well) {
    std::string plain = idx(0x08, {5}, "12345");
    EXPECT_EQ(read(gzip(plain)).integer_at(4), '5');
    std::string half = plain.substr(0, 7), rest = plain.substr(7);
    EXPECT_EQ(read(gzip(half) + gzip(rest)).integer_at(4), '5');
    std::string zipped = gzip(plain);
    for (size_t cut = 2; cut < zipped.size(); ++cut) error_of([&] { read(zipped.substr(0, cut)); }, "x-idx");
    std::string wrong = zipped;
    wrong[wrong.size() - 5] ^= 1;  // the CRC
    error_of([&] { read(wrong); }, "corrupt");
    error_of([&] { read(zipped + "junk"); }, "corrupt");
}

TEST(idx, a_gzip_bomb_is_not_unpacked) {
    error_of([] { read(gzip(idx(0x08, {5}, std::string(64 << 20, '\0')))); }, "more data");
    // 1 KiB of gzip cannot hold 3 TiB whatever the header says: refused before anything is allocated.
    error_of([] { read(gzip(idx(0x08, {0xffffffffu, 784}, "12"))); }, "can be there");
}

}  // namespace
}  // namespace lunaria
