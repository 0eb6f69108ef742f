// Encryption with a check of what is decrypted: AES in Galois/counter mode (NIST SP 800-38D), in plain C++.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lunaria {

class AesGcm {
  public:
    using Block = std::array<uint8_t, 16>;

    // `key`: 16, 24 or 32 bytes.
    explicit AesGcm(std::string_view key);

    // Encrypts the bytes in place and returns the tag, which belongs with them. No two texts may have the same start
    // under one key.
    Block seal(std::string_view start, std::string& bytes) const;
    // Decrypts the bytes in place. False: they were not encrypted under this key or were changed; they are left as they
    // were.
    bool open(std::string_view start, const Block& tag, std::string& bytes) const;

  private:
    struct Element {
        uint64_t high = 0, low = 0;
    };
    Block encrypted(const Block& block) const;
    // The tag of the bytes, padded to whole blocks, and of the numbers that follow.
    Element hash(std::string_view bytes, uint64_t before, uint64_t bits) const;
    Element times_key(Element x) const;
    Block first_counter(std::string_view start) const;
    void count(Block counter, std::string& bytes) const;
    Block tag_of(const Block& counter, std::string_view bytes) const;

    int rounds_ = 0;
    std::array<uint32_t, 60> words_{};       // of the key, for all rounds
    std::array<Element, 16> multiples_{};    // of the hash key, by four bits
    std::array<uint64_t, 16> remainders_{};  // of four bits that are shifted out
};

}  // namespace lunaria
