// The vectors of the paper that proposed the mode (McGrew and Viega 2004), with keys of all sizes.
#include "core/io/aes_gcm.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace lunaria {
namespace {

std::string bytes_of(std::string_view hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
        bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    return bytes;
}
std::string hex_of(std::string_view bytes) {
    std::string hex;
    for (const unsigned char c : bytes) {
        hex += "0123456789abcdef"[c >> 4];
        hex += "0123456789abcdef"[c & 15];
    }
    return hex;
}
std::string hex_of(const AesGcm::Block& block) {
    return hex_of({reinterpret_cast<const char*>(block.data()), block.size()});
}

struct Vector {
    const char *key, *start, *plain, *secret, *tag;
};
constexpr const char* kPlain =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba"
    "637b391aafd255";
constexpr Vector kVectors[] = {
    {"00000000000000000000000000000000", "000000000000000000000000", "", "", "58e2fccefa7e3061367f1d57a4e7455a"},
    {"00000000000000000000000000000000", "000000000000000000000000", "00000000000000000000000000000000",
     "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"},
    {"feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", kPlain,
     "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973"
     "d"
     "58e091473f5985",
     "4d5c2af327cd64a62cf35abd2ba6fab4"},
    {"000000000000000000000000000000000000000000000000", "000000000000000000000000", "00000000000000000000000000000000",
     "98e7247c07f0fe411c267e4384b0f600", "2ff58d80033927ab8ef4d4587514f0fb"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000",
     "00000000000000000000000000000000", "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
};

TEST(AesGcmTest, gives_the_published_results) {
    for (const Vector& v : kVectors) {
        const AesGcm cipher(bytes_of(v.key));
        std::string bytes = bytes_of(v.plain);
        const AesGcm::Block tag = cipher.seal(bytes_of(v.start), bytes);
        EXPECT_EQ(hex_of(bytes), v.secret);
        EXPECT_EQ(hex_of(tag), v.tag);
        EXPECT_TRUE(cipher.open(bytes_of(v.start), tag, bytes));
        EXPECT_EQ(hex_of(bytes), v.plain);
    }
}

TEST(AesGcmTest, refuses_what_was_changed) {
    const AesGcm cipher("0123456789012345");
    std::string bytes = "some bytes that are more than one block";
    const AesGcm::Block tag = cipher.seal("a start of 12", bytes);
    for (size_t i = 0; i < bytes.size(); ++i) {
        std::string changed = bytes;
        changed[i] = static_cast<char>(changed[i] ^ 1);
        const std::string before = changed;
        EXPECT_FALSE(cipher.open("a start of 12", tag, changed));
        EXPECT_EQ(changed, before);
    }
    EXPECT_FALSE(AesGcm("0123456789012346").open("a start of 12", tag, bytes));
    EXPECT_THROW(AesGcm("short"), Error);
}

}  // namespace
}  // namespace lunaria
