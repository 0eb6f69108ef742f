// The head of a light file, as it lies in the file: little-endian, like every machine that this runs on.
#pragma once

#include <bit>
#include <cstddef>

#include "core/lite/format/file.h"

namespace lunaria::lite {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t kAlignment = 64;
inline constexpr uint64_t kSummed = 1 << 20;  // bytes of content for each checksum
constexpr uint64_t padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Head {
    char mark[12] = {'l', 'u', 'n', 'a', 'r', 'i', 'a', ' ', 'l', 'i', 't', 'e'};
    uint32_t version = kVersion;
    uint64_t file_bytes = 0;
    uint64_t description_bytes = 0;  // right behind the head
    uint64_t content_at = 0, content_bytes = 0;
    uint64_t unused = 0;
    uint32_t description_sum = 0;  // of the bytes up to the content
    uint32_t sum = 0;              // of the bytes before
};
static_assert(sizeof(Head) == 64);

inline uint32_t sum_of(const Head& head) {
    return crc32(std::as_bytes(std::span(&head, 1)).first(offsetof(Head, sum)));
}

}  // namespace lunaria::lite
