// Stores around the caches, for results that will have left every cache before they are read again. Writing such a
// result as usual fetches each of its lines from memory first, only to overwrite it, and evicts lines that are still
// needed; these stores do neither.
#pragma once

#include <emmintrin.h>

#include <cstdint>
#include <limits>

namespace lunaria::cpu {

// Whether a result of so many bytes is better written around the caches; `traffic` includes the bytes read for it.
bool goes_around_cache(int64_t result, int64_t traffic);

// The limits: results of `bytes` and more are written around the caches, kNeverAround where it does not pay. Several
// writing threads reach the memory's limit, and a result that fits the last cache is then better left to it.
inline constexpr int64_t kNeverAround = std::numeric_limits<int64_t>::max();
struct AroundCache {
    int64_t bytes = kNeverAround, held = 0;
};
AroundCache around_cache();
void set_around_cache(AroundCache limits);  // for tests

// To be called by each thread when its part is written: such stores are not ordered with others, and a thread that
// learns of the result must see it.
inline void finish_around_cache() { _mm_sfence(); }

}  // namespace lunaria::cpu
