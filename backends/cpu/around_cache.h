// Results that no cache holds until they are read again. Writing such a result as usual fetches every line of it from
// memory first, only to overwrite it, and drives out what is still needed; there are stores that do neither.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <limits>

namespace lunaria::cpu {

// Results of so many bytes and more are better written around the caches; kNeverAround where that does not pay.
inline constexpr int64_t kNeverAround = std::numeric_limits<int64_t>::max();
int64_t around_cache_bytes();
void set_around_cache_bytes(int64_t bytes);  // for tests

// To be called by each thread when its part is written: such stores are not ordered with others, and whoever is told
// that the result is there must see it.
inline void finish_around_cache() { _mm_sfence(); }

}  // namespace lunaria::cpu
