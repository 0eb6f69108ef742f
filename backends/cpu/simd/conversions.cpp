// Conversions between element types of dense arrays, and the list of all loops of this instruction set.
#include <array>

#include "backends/cpu/simd/element_loop.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// Plain loops that the compiler turns into vector code.
template <class From, class To>
void convert(const void* in, void* out, int64_t count) {
    auto* from = static_cast<const From*>(in);
    auto* to = static_cast<To*>(out);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}
template <class From>
void to_bool(const void* in, void* out, int64_t count) {
    auto* from = static_cast<const From*>(in);
    auto* to = static_cast<uint8_t*>(out);
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] != From(0);
}

// As in copy_elements: through int64, which saturates and has 0 for NaN, and narrower integers wrap.
template <class From, class To>
To whole_number(From x) {
    constexpr From kEnd = 9223372036854775808.0;
    const int64_t wide = x != x ? 0 : x >= kEnd ? INT64_MAX : x <= -kEnd ? INT64_MIN : static_cast<int64_t>(x);
    return static_cast<To>(wide);
}
// A block at a time, by the processor's own conversion to integers as wide as the floats, where no number of the block
// is out of range.
template <class From, class To>
void to_integer(const void* in, void* out, int64_t count) {
    using Direct = std::conditional_t<sizeof(From) == 4 || sizeof(To) < 8, int32_t, int64_t>;
    constexpr From kEnd = sizeof(Direct) == 4 ? 2147483648.0 : 9223372036854775808.0;
    constexpr int64_t kBlock = 256;
    auto* from = static_cast<const From*>(in);
    auto* to = static_cast<To*>(out);
    for (int64_t begin = 0; begin < count; begin += kBlock, from += kBlock, to += kBlock) {
        const int64_t n = count - begin < kBlock ? count - begin : kBlock;
        BitsOf<From> outside = 0;
        for (int64_t i = 0; i < n; ++i) outside |= !(__builtin_fabs(from[i]) < kEnd);
        if (outside) [[unlikely]] {
            for (int64_t i = 0; i < n; ++i) to[i] = whole_number<From, To>(from[i]);
        } else {
            for (int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(static_cast<Direct>(from[i]));
        }
    }
}

uint32_t bits_of(float x) {
    uint32_t u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}
float float_of(uint32_t u) {
    float x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}

void bf16_to_f32(const void* in, void* out, int64_t count) {
    auto* from = static_cast<const uint16_t*>(in);
    auto* to = static_cast<uint32_t*>(out);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint32_t>(from[i]) << 16;
}
void f32_to_bf16(const void* in, void* out, int64_t count) {
    auto* from = static_cast<const uint32_t*>(in);
    auto* to = static_cast<uint16_t*>(out);
    int64_t i = 0;
#if defined(__AVX2__)
    constexpr int64_t kLanes = Pack<float>::lanes;
    auto upper = [&](int64_t at) __attribute__((always_inline)) {
        const Pack<float> x = Pack<float>::load(reinterpret_cast<const float*>(from) + at);
        return (Pack<int32_t>::V)((Pack<int32_t>::U)rounded_upper(x).v >> 16);
    };
    for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
#if defined(__AVX512BW__)
        _mm256_storeu_si256((__m256i*)(to + i), _mm512_cvtepi32_epi16((__m512i)upper(i)));
        _mm256_storeu_si256((__m256i*)(to + i + kLanes), _mm512_cvtepi32_epi16((__m512i)upper(i + kLanes)));
#else
        const __m256i both = _mm256_packus_epi32((__m256i)upper(i), (__m256i)upper(i + kLanes));
        _mm256_storeu_si256((__m256i*)(to + i), _mm256_permute4x64_epi64(both, 0xd8));
#endif
    }
#endif
    for (; i < count; ++i) {
        uint32_t u = from[i];
        uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, quiet = (u >> 16) | 0x40u;
        to[i] = static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
    }
}

float half_to_float(uint16_t h) {
    uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, rest = h & 0x7fffu;
    uint32_t normal = (rest << 13) + (112u << 23);
    uint32_t special = (rest << 13) | 0x7f800000u;
    uint32_t small = bits_of(static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f);
    uint32_t magnitude = rest >= 0x7c00u ? special : normal;
    return float_of((rest < 0x400u ? small : magnitude) | sign);
}
uint16_t float_to_half(float x) {
    uint32_t u = bits_of(x), sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
    // Below the smallest normal half: adding 0.5 leaves the rounded value in the lowest bits.
    uint32_t small = bits_of(float_of(m) + 0.5f) - 0x3f000000u;
    uint32_t normal = (m + 0xc8000fffu + ((m >> 13) & 1u)) >> 13;
    uint32_t h = m < 0x38800000u ? small : normal;
    h = m >= 0x477ff000u ? 0x7c00u : h;
    h = m > 0x7f800000u ? 0x7e00u | ((m >> 13) & 0x1ffu) : h;
    return static_cast<uint16_t>(h | sign);
}

void f16_to_f32(const void* in, void* out, int64_t count) {
    auto* from = static_cast<const uint16_t*>(in);
    auto* to = static_cast<float*>(out);
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(from + i))));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i))));
#endif
    for (; i < count; ++i) to[i] = half_to_float(from[i]);
}
void f32_to_f16(const void* in, void* out, int64_t count) {
    auto* from = static_cast<const float*>(in);
    auto* to = static_cast<uint16_t*>(out);
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i*)(to + i), _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i*)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; ++i) to[i] = float_to_half(from[i]);
}

template <class From, class To>
constexpr ConvertEntry entry() {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
        return {kCode<From>, kCode<To>, &to_integer<From, To>};
    else
        return {kCode<From>, kCode<To>, &convert<From, To>};
}

// Conversions from T to all other types, and to and from bools.
template <class T, class... To>
struct ConversionsOf {
    static constexpr int kCount = sizeof...(To) + 2;
    static constexpr ConvertEntry kEntries[] = {
        entry<T, To>()..., {kCode<T>, kBoolCode, &to_bool<T>}, {kBoolCode, kCode<T>, &convert<uint8_t, T>}};
};
template <class... T>
constexpr auto all_conversions() {
    std::array<ConvertEntry, (ConversionsOf<T, T...>::kCount + ...) + 4> all{};
    int n = 0;
    auto add = [&](const auto& entries) {
        for (const ConvertEntry& e : entries) all[static_cast<size_t>(n++)] = e;
    };
    (add(ConversionsOf<T, T...>::kEntries), ...);
    // Halves go by way of f32.
    const ConvertEntry halves[] = {{DType::f16, kCode<float>, &f16_to_f32},
                                   {kCode<float>, DType::f16, &f32_to_f16},
                                   {DType::bf16, kCode<float>, &bf16_to_f32},
                                   {kCode<float>, DType::bf16, &f32_to_bf16}};
    add(halves);
    return all;
}
constexpr auto kConversions = all_conversions<uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>();

}  // namespace

void visit_conversions(const LoopVisitor& visitor) {
    visitor.conversions(visitor.context, {kConversions.data(), static_cast<int>(kConversions.size())});
}

void visit_loops(const LoopVisitor& visitor) {
    visit_arithmetic(visitor);
    visit_exponentials(visitor);
    visit_trigonometry(visitor);
    visit_special(visitor);
    visit_activations(visitor);
    visit_integers(visitor);
    visit_comparisons(visitor);
    visit_conversions(visitor);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
