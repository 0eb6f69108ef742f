// Reductions along rows, products with a small matrix, and conversions of halves.
#include "core/lite/runtime/simd/formula_block.h"
#include "core/loops/small_product.h"
#include "core/loops/sum_order.h"

namespace lunaria::lite::LUNARIA_ISA {

namespace {

using Doubles = simd::Pack<double>;
constexpr int kPacks = kSumLanes / Floats::lanes;

template <bool Squares>
[[gnu::always_inline]] inline Floats term(const float* x) {
    const Floats v = Floats::load(x);
    if constexpr (Squares) return simd::alone(v * v);
    return v;
}

// Whole leaves: 4 rows of lanes each.
template <bool Squares>
void add_leaves(const float* x, int64_t leaves, double* lanes) {
    simd::Doubles sums[kPacks];
    for (int k = 0; k < kPacks; ++k) {
        sums[k].low = Doubles::load(lanes + k * Floats::lanes);
        sums[k].high = Doubles::load(lanes + k * Floats::lanes + Doubles::lanes);
    }
    for (int64_t i = 0; i < leaves; ++i, x += kSumLeaf * kSumLanes) {
        for (int k = 0; k < kPacks; ++k) {
            const float* p = x + k * Floats::lanes;
            const Floats leaf = (term<Squares>(p) + term<Squares>(p + kSumLanes)) +
                                (term<Squares>(p + 2 * kSumLanes) + term<Squares>(p + 3 * kSumLanes));
            const simd::Doubles wide = simd::widen(leaf);
            sums[k].low = sums[k].low + wide.low;
            sums[k].high = sums[k].high + wide.high;
        }
    }
    for (int k = 0; k < kPacks; ++k) {
        sums[k].low.store(lanes + k * Floats::lanes);
        sums[k].high.store(lanes + k * Floats::lanes + Doubles::lanes);
    }
}

void end_block(RowSum& sum) {
    join_lanes(sum.lanes, kSumLanes, 1, [](double a, double b) { return a + b; });
    sum.total += sum.lanes[0];
    for (double& lane : sum.lanes) lane = 0;
    sum.in_block = 0;
}

template <bool Squares>
void add_row(const float* x, int64_t count, RowSum& sum) {
    constexpr int64_t kLeaf = kSumLeaf * kSumLanes;
    while (count > 0) {
        const int64_t room = kSumBlock - sum.in_block, here = count < room ? count : room, whole = here / kLeaf;
        add_leaves<Squares>(x, whole, sum.lanes);
        if (const int64_t rest = here - whole * kLeaf) {
            alignas(64) float last[kLeaf] = {};
            __builtin_memcpy(last, x + whole * kLeaf, static_cast<size_t>(rest) * sizeof(float));
            add_leaves<Squares>(last, 1, sum.lanes);
        }
        sum.in_block += here;
        if (sum.in_block == kSumBlock) end_block(sum);
        x += here;
        count -= here;
    }
}
void sum_row(const float* x, int64_t count, bool squares, RowSum& sum) {
    if (squares)
        add_row<true>(x, count, sum);
    else
        add_row<false>(x, count, sum);
}

template <class Better>
[[gnu::always_inline]] inline float extremum(const float* x, int64_t count, float best, Better better) {
    Floats most(static_cast<double>(best));
    int64_t i = 0;
    for (; i + Floats::lanes <= count; i += Floats::lanes) most = better(most, Floats::load(x + i));
    if (i < count) {
        alignas(64) float last[Floats::lanes];
        for (int64_t j = 0; j < Floats::lanes; ++j) last[j] = i + j < count ? x[i + j] : best;
        most = better(most, Floats::load(last));
    }
    alignas(64) float lanes[Floats::lanes];
    most.store(lanes);
    for (const float lane : lanes) best = (lane != lane) ? lane : better.one(best, lane);
    return best;
}
struct Larger {
    Floats operator()(Floats a, Floats b) const { return formula::larger(a, b); }
    static float one(float a, float b) { return a > b || a != a ? a : b; }
};
struct Smaller {
    Floats operator()(Floats a, Floats b) const { return formula::smaller(a, b); }
    static float one(float a, float b) { return a < b || a != a ? a : b; }
};
float largest(const float* x, int64_t count, float best) { return extremum(x, count, best, Larger{}); }
float smallest(const float* x, int64_t count, float best) { return extremum(x, count, best, Smaller{}); }

void product(const float* a, const float* b, int64_t depth, int64_t stride, float* out, int64_t count) {
    for (int64_t j = 0; j < count; j += Floats::lanes) {
        const auto here = static_cast<int>(count - j < Floats::lanes ? count - j : Floats::lanes);
        Floats sums[kProductSums] = {Floats(0.0), Floats(0.0), Floats(0.0), Floats(0.0)};
        for (int64_t k = 0; k < depth; ++k) {
            const float* from = b + k * stride + j;
            const Floats column = here == Floats::lanes ? Floats::load(from) : simd::load_part(from, here);
            Floats& sum = sums[k % kProductSums];
            sum = sum + simd::alone(Floats(static_cast<double>(a[k])) * column);
        }
        ((sums[0] + sums[1]) + (sums[2] + sums[3])).store(out + j);
    }
}

void add_points(const float* x, double* sum, int64_t count) {
    for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<double>(x[i]);
}
void add_points_single(const float* x, float* sum, int64_t count) {
    for (int64_t i = 0; i < count; ++i) sum[i] += x[i];
}

float float_of_bits(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}
uint32_t bits_of_float(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}
// As those of core/tensor/dtype.cpp, without branches.
float half_to_float(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, rest = h & 0x7fffu;
    const uint32_t small = bits_of_float(static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f);
    const uint32_t magnitude = rest >= 0x7c00u ? (rest << 13) | 0x7f800000u : (rest << 13) + (112u << 23);
    return float_of_bits((rest < 0x400u ? small : magnitude) | sign);
}
uint16_t float_to_half(float x) {
    const uint32_t u = bits_of_float(x), sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
    const uint32_t small = bits_of_float(float_of_bits(m) + 0.5f) - 0x3f000000u;
    uint32_t h = m < 0x38800000u ? small : (m + 0xc8000fffu + ((m >> 13) & 1u)) >> 13;
    h = m >= 0x477ff000u ? 0x7c00u : h;
    h = m > 0x7f800000u ? 0x7e00u | ((m >> 13) & 0x1ffu) : h;
    return static_cast<uint16_t>(h | sign);
}
void f16_to_f32(const uint16_t* x, float* out, int64_t count) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
    for (; i < count; ++i) out[i] = half_to_float(x[i]);
}
void f32_to_f16(const float* x, uint16_t* out, int64_t count) {
    int64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; ++i) out[i] = float_to_half(x[i]);
}

}  // namespace

RowBlocks row_blocks() {
    return {sum_row, largest, smallest, product, add_points, add_points_single, f16_to_f32, f32_to_f16};
}

}  // namespace lunaria::lite::LUNARIA_ISA
