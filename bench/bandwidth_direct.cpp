// Bandwidth of the memory: the loads and stores of an operator on 4 M elements with the least arithmetic, with stores
// through the cache or around it, whichever is faster. Results are written to several places in turn: one that the last
// cache still holds from the call before would be measured instead of the memory.
#include <immintrin.h>

#include "bench/direct.h"

namespace {

constexpr long kRows = 4096, kColumns = 1024, kCount = kRows * kColumns;

template <bool around_cache>
void put(float* to, __m256 value) {
    if constexpr (around_cache) {
        _mm256_stream_ps(to, value);
    } else {
        _mm256_store_ps(to, value);
    }
}

template <bool around_cache>
void add(const float* a, const float* b, float* out) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < kCount; i += 8)
        put<around_cache>(out + i, _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i)));
}

template <bool around_cache>
void copy(const float* a, float* out) {
#pragma omp parallel for schedule(static)
    for (long i = 0; i < kCount; i += 8) put<around_cache>(out + i, _mm256_load_ps(a + i));
}

float sum(const float* a, long rows = kRows) {
    float total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (long row = 0; row < rows; ++row) {
        __m256 part[8] = {};
        for (long i = 0; i < kColumns; i += 64) {
            for (int k = 0; k < 8; ++k)
                part[k] = _mm256_add_ps(part[k], _mm256_load_ps(a + row * kColumns + i + 8 * k));
        }
        for (int k = 1; k < 8; ++k) part[0] = _mm256_add_ps(part[0], part[k]);
        alignas(32) float lanes[8];
        _mm256_store_ps(lanes, part[0]);
        for (const float lane : lanes) total += lane;
    }
    return total;
}

// Calls work(where to write).
template <class Work>
direct::Run repeat(Work work) {
    static float* const out[] = {direct::randn(kCount), direct::randn(kCount), direct::randn(kCount)};
    return [work](long calls) {
        for (long i = 0; i < calls; ++i) work(out[i % 3]);
    };
}

direct::Run adding() {
    const float *a = direct::randn(kCount), *b = direct::randn(kCount);
    return direct::fastest(
        {repeat([=](float* out) { add<false>(a, b, out); }), repeat([=](float* out) { add<true>(a, b, out); })});
}

direct::Run copying() {
    const float* a = direct::randn(kCount);
    return direct::fastest(
        {repeat([=](float* out) { copy<false>(a, out); }), repeat([=](float* out) { copy<true>(a, out); })});
}

direct::Run summing() {
    const float* a = direct::randn(kCount);
    return repeat([=](float*) {
        volatile float total = sum(a);
        (void)total;
    });
}

// Reads as many bytes as there are in the weights of the networks of bench/lite/language.lua.
template <long bytes>
direct::Run reading() {
    constexpr long rows = bytes / 4 / kColumns;
    const float* a = direct::randn(rows * kColumns);
    return [a](long calls) {
        for (long i = 0; i < calls; ++i) {
            volatile float total = sum(a, rows);
            (void)total;
        }
    };
}

}  // namespace

int main() {
    return direct::serve({{"add_4M", adding},
                          {"add_row_4M", copying},
                          {"relu_4M", copying},
                          {"sum_4M", summing},
                          {"sum_axis0_4M", summing},
                          {"sum_axis1_4M", summing},
                          {"decode_q8_0", reading<106328064>},
                          {"decode_q4_0", reading<56291328>}});
}
