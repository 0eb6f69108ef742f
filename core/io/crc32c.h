// CRC-32C (Castagnoli), by the instruction that x86-64-v2 has for it.
#pragma once

#include <nmmintrin.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace lunaria {

// The sum of `bytes`, or of the bytes before, whose sum is `before`, and `bytes`.
inline uint32_t crc32c(std::string_view bytes, uint32_t before = 0) {
    uint64_t crc = ~before;
    const char* p = bytes.data();
    size_t left = bytes.size();
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t word = 0;
        std::memcpy(&word, p, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    uint32_t c = static_cast<uint32_t>(crc);
    for (; left > 0; --left, ++p) c = _mm_crc32_u8(c, static_cast<unsigned char>(*p));
    return ~c;
}

}  // namespace lunaria
