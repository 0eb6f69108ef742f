// The instructions of SSE that backends/cpu/simd names in its portable forms, for builds for aarch64: the compiler
// makes NEON of these vectors. What AVX has is not here.
#pragma once

#include <cstdint>

// NOLINTBEGIN: the names are Intel's.
typedef float __m128 __attribute__((vector_size(16)));
typedef double __m128d __attribute__((vector_size(16)));
typedef int64_t __m128i __attribute__((vector_size(16)));

#define _MM_FROUND_TO_NEAREST_INT 0
#define _MM_FROUND_TO_NEG_INF 1
#define _MM_FROUND_TO_POS_INF 2
#define _MM_FROUND_TO_ZERO 3
#define _MM_FROUND_NO_EXC 8

template <class V, class F>
[[gnu::always_inline]] inline V lunaria_each_lane(V x, F f) {
    for (unsigned i = 0; i < 16 / sizeof(x[0]); ++i) x[i] = f(x[i]);
    return x;
}
[[gnu::always_inline]] inline __m128 _mm_sqrt_ps(__m128 x) {
    return lunaria_each_lane(x, [](float v) { return __builtin_sqrtf(v); });
}
[[gnu::always_inline]] inline __m128d _mm_sqrt_pd(__m128d x) {
    return lunaria_each_lane(x, [](double v) { return __builtin_sqrt(v); });
}
[[gnu::always_inline]] inline double lunaria_round(double x, int mode) {
    return (mode & 7) == 1   ? __builtin_floor(x)
           : (mode & 7) == 2 ? __builtin_ceil(x)
           : (mode & 7) == 3 ? __builtin_trunc(x)
                             : __builtin_nearbyint(x);
}
[[gnu::always_inline]] inline float lunaria_round(float x, int mode) {
    return (mode & 7) == 1   ? __builtin_floorf(x)
           : (mode & 7) == 2 ? __builtin_ceilf(x)
           : (mode & 7) == 3 ? __builtin_truncf(x)
                             : __builtin_nearbyintf(x);
}
[[gnu::always_inline]] inline __m128 _mm_round_ps(__m128 x, int mode) {
    return lunaria_each_lane(x, [mode](float v) { return lunaria_round(v, mode); });
}
[[gnu::always_inline]] inline __m128d _mm_round_pd(__m128d x, int mode) {
    return lunaria_each_lane(x, [mode](double v) { return lunaria_round(v, mode); });
}
// The second operand where one is NaN.
[[gnu::always_inline]] inline __m128 _mm_max_ps(__m128 a, __m128 b) { return a > b ? a : b; }
[[gnu::always_inline]] inline __m128 _mm_min_ps(__m128 a, __m128 b) { return a < b ? a : b; }
[[gnu::always_inline]] inline __m128d _mm_max_pd(__m128d a, __m128d b) { return a > b ? a : b; }
[[gnu::always_inline]] inline __m128d _mm_min_pd(__m128d a, __m128d b) { return a < b ? a : b; }
[[gnu::always_inline]] inline void _mm_stream_ps(float* to, __m128 x) { __builtin_memcpy(to, &x, 16); }
// NOLINTEND
