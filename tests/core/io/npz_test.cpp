#include "core/io/npz.h"

#include "tests/core/io/scratch.h"

namespace lunaria {
namespace {

using test::error_of;

std::vector<NamedTensor> two() {
    return {{"a", Tensor::full(DType::f32, {100, 100}, 1.5)}, {"layer/b", Tensor::scalar(int64_t{7})}};
}

std::string packed(bool compressed = false) {
    StringSink sink;
    write_npz(sink, two(), compressed);
    return sink.text();
}

std::vector<NamedTensor> read(const std::string& bytes) { return NpzFile(memory_source("x.npz", bytes)).read_all(); }

std::string zip_of(const std::vector<std::pair<std::string, std::string>>& members, bool deflated = false) {
    StringSink sink;
    ZipWriter writer(sink);
    for (const auto& [name, content] : members) writer.add(name, content, deflated);
    writer.finish();
    return sink.text();
}

std::string npy_bytes(const Tensor& t) {
    StringSink sink;
    write_npy(sink, t);
    return sink.text();
}

TEST(npz, survives_a_round_trip_stored_and_deflated) {
    for (bool compressed : {false, true}) {
        auto back = read(packed(compressed));
        ASSERT_EQ(back.size(), 2u);
        for (size_t i = 0; i < 2; ++i) {
            EXPECT_EQ(back[i].first, two()[i].first);
            EXPECT_EQ(test::bytes_of(back[i].second), test::bytes_of(two()[i].second));
        }
    }
    EXPECT_LT(packed(true).size(), packed(false).size() / 20);
    EXPECT_TRUE(read(zip_of({})).empty());
}

TEST(npz, equal_contents_make_equal_files) { EXPECT_EQ(packed(true), packed(true)); }

TEST(npz, names_the_arrays_it_has_when_one_is_missing) {
    NpzFile file(memory_source("x.npz", packed()));
    error_of([&] { file.read("c"); }, "a, layer/b");
}

TEST(npz, names_that_lead_elsewhere_are_refused) {
    std::string data = npy_bytes(Tensor::scalar(int64_t{1}));
    for (const char* name : {"../../x.npy", "/etc/x.npy", "a/../../x.npy", "..", "C:x.npy", "a\\b.npy"})
        error_of([&] { read(zip_of({{name, data}})); }, "refused");
    error_of([&] { read(zip_of({{"x.npy", data}, {"x.npy", data}})); }, "two members");
    StringSink sink;
    error_of([&] { write_npz(sink, std::vector<NamedTensor>{{"../x", Tensor::scalar(int64_t{1})}}); }, "name");
    error_of([&] { write_npz(sink, std::vector<NamedTensor>{two()[0], two()[0]}); }, "two arrays");
}

TEST(npz, a_wrong_checksum_is_an_error) {
    for (bool compressed : {false, true}) {
        std::string bytes = packed(compressed);
        // The stored CRC of the first member, in the directory (the local header's copy is not used).
        size_t at = bytes.find("PK\1\2");
        bytes[at + 16] = static_cast<char>(bytes[at + 16] ^ 1);
        error_of([&] { read(bytes); }, "CRC");
    }
    std::string bytes = packed();
    bytes[bytes.find("PK\1\2") - 3] ^= 1;  // the last member's data
    error_of([&] { read(bytes); }, "CRC");
}

TEST(npz, a_bomb_is_not_unpacked) {
    // 64 MiB of zeros behind a header that promises four numbers, and a header that promises 4 TiB.
    std::string small = npy_bytes(Tensor::zeros(DType::i64, {4}));
    error_of([&] { read(zip_of({{"x.npy", small + std::string(64 << 20, '\0')}}, true)); }, "more data");
    std::string huge = small;
    huge.replace(huge.find("(4,), }           "), 18, "(549755813888,), }");
    error_of([&] { read(zip_of({{"x.npy", huge}}, true)); }, "4398046511104 bytes");
}

TEST(npz, members_may_not_overlap) {
    std::string data = npy_bytes(Tensor::zeros(DType::i64, {4}));
    std::string bytes = zip_of({{"a.npy", data}, {"a.npz", data}});
    // The second entry of the directory points to the first member as well.
    size_t second = bytes.find("PK\1\2", bytes.find("PK\1\2") + 4);
    std::string same = bytes;
    for (int i = 0; i < 4; ++i) same[second + 42 + i] = 0;
    same[second + 46 + 4] = 'y';
    error_of([&] { read(same); }, "corrupt");
}

TEST(npz, encryption_methods_and_lies_are_refused) {
    std::string bytes = packed();
    size_t at = bytes.find("PK\1\2"), end = bytes.rfind("PK\5\6");
    auto with = [&](size_t where, char value) {
        std::string changed = bytes;
        changed[where] = value;
        return changed;
    };
    error_of([&] { read(with(at + 8, 1)); }, "encrypted");
    error_of([&] { read(with(at + 10, 9)); }, "method 9");
    error_of([&] { read(with(at + 23, 0x70)); }, "beyond");
    error_of([&] { read(with(at + 45, 0x70)); }, "outside");
    error_of([&] { read(with(end + 10, 3)); }, "several files");
    error_of([&] { read(with(end + 19, 0x70)); }, "corrupt");
    error_of([&] { read(bytes + "x"); }, "not a zip archive");
    error_of([&] { read(bytes.substr(0, bytes.size() - 1)); }, "truncated");
    error_of([&] { read(""); }, "empty");
}

TEST(npz, zip64_lies_are_refused) {
    // An end record that defers to a zip64 record beyond the end of the file.
    std::string end("PK\5\6", 4);
    end += std::string("\0\0\0\0", 4) + "\xff\xff\xff\xff" + std::string(8, '\xff') + std::string(2, '\0');
    std::string locator("PK\6\7", 4);
    locator += std::string(4, '\0') + std::string("\0\0\0\0\0\0\0\x70", 8) + std::string("\1\0\0\0", 4);
    error_of([&] { read(std::string(100, 'x') + locator + end); }, "zip64");
    error_of([&] { read(std::string(100, 'x') + end); }, "corrupt");
}

TEST(npz, a_member_that_is_no_array_is_named) {
    error_of([&] { read(zip_of({{"notes.txt", "some words that are not numbers"}})); }, "notes.txt");
}

}  // namespace
}  // namespace lunaria
