// Results that no cache holds until they are read again. Writing such a result as usual fetches every line of it from
// memory first, only to overwrite it, and drives out what is still needed; there are stores that do neither.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <limits>

namespace lunaria::cpu {

// Whether a result of so many bytes is better written around the caches; `traffic` counts what is read for it as well.
bool goes_around_cache(int64_t result, int64_t traffic);

// Which results do: those of `bytes` and more, kNeverAround where it does not pay. Where several threads write, they
// come to the memory's limit, and what the last cache holds entirely is better left to it.
inline constexpr int64_t kNeverAround = std::numeric_limits<int64_t>::max();
struct AroundCache {
    int64_t bytes = kNeverAround, held = 0;
};
AroundCache around_cache();
void set_around_cache(AroundCache limits);  // for tests

// To be called by each thread when its part is written: such stores are not ordered with others, and whoever is told
// that the result is there must see it.
inline void finish_around_cache() { _mm_sfence(); }

}  // namespace lunaria::cpu
