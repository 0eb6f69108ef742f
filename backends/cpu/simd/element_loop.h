// Makes loops over arrays from formulas.
#pragma once

#include "backends/cpu/simd/loops.h"
#include "backends/cpu/simd/math.h"
#include "core/ops/formulas.h"

namespace lunaria::cpu::LUNARIA_ISA {

// clang-format off
template <class T> inline constexpr DType kCode = static_cast<DType>(255);
template <> inline constexpr DType kCode<uint8_t> = DType::u8;
template <> inline constexpr DType kCode<int8_t> = DType::i8;
template <> inline constexpr DType kCode<int16_t> = DType::i16;
template <> inline constexpr DType kCode<int32_t> = DType::i32;
template <> inline constexpr DType kCode<int64_t> = DType::i64;
template <> inline constexpr DType kCode<float> = DType::f32;
template <> inline constexpr DType kCode<double> = DType::f64;
// clang-format on
inline constexpr DType kBoolCode = DType::boolean;

// Floats of 16 bits in memory; packs of them are computed in f32 and rounded once.
#if defined(__AVX2__)
inline constexpr bool kHasHalves = true;
#else
inline constexpr bool kHasHalves = false;  // blocks of them are converted before and after a loop
#endif
struct Brain {
    uint16_t bits;
};
struct Half16 {
    uint16_t bits;
};
template <>
inline constexpr DType kCode<Brain> = DType::bf16;
template <>
inline constexpr DType kCode<Half16> = DType::f16;
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Brain> || std::is_same_v<T, Half16>;
// The type in which elements are computed.
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;

#if defined(__AVX512BW__)
[[gnu::always_inline]] inline Pack<float> load_pack(const Brain* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
    return (Pack<float>::V)_mm512_slli_epi32(wide, 16);
}
[[gnu::always_inline]] inline Pack<float> load_pack(const Half16* p) {
    return (Pack<float>::V)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
}
[[gnu::always_inline]] inline void store_result(Pack<float> x, Half16* to) {
    _mm256_storeu_si256((__m256i*)to, _mm512_cvtps_ph((__m512)x.v, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__AVX2__)
[[gnu::always_inline]] inline Pack<float> load_pack(const Brain* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
    return (Pack<float>::V)_mm256_slli_epi32(wide, 16);
}
[[gnu::always_inline]] inline Pack<float> load_pack(const Half16* p) {
    return (Pack<float>::V)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
}
[[gnu::always_inline]] inline void store_result(Pack<float> x, Half16* to) {
    _mm_storeu_si128((__m128i*)to, _mm256_cvtps_ph((__m256)x.v, _MM_FROUND_TO_NEAREST_INT));
}
#endif
#if defined(__AVX2__)
// Rounded to even in the upper half of each lane; a NaN becomes quiet and stays one.
[[gnu::always_inline]] inline Pack<int32_t> rounded_upper(Pack<float> x) {
    using U = Pack<int32_t>::U;
    const U u = (U)x.bits();
    return (Pack<int32_t>::V)((typename Mask<float>::V)(x.v != x.v) ? (U)(u | 0x400000u)
                                                                    : (U)(u + 0x7fffu + ((u >> 16) & 1u)));
}
[[gnu::always_inline]] inline void store_result(Pack<float> x, Brain* to) {
    const auto upper = (Pack<int32_t>::U)rounded_upper(x).v >> 16;
#if defined(__AVX512BW__)
    _mm256_storeu_si256((__m256i*)to, _mm512_cvtepi32_epi16((__m512i)upper));
#else
    const __m256i both = _mm256_packus_epi32((__m256i)upper, (__m256i)upper);
    _mm_storeu_si128((__m128i*)to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(both, 0x08)));
#endif
}
#endif
template <class T>
[[gnu::always_inline]] inline Pack<T> load_pack(const T* p) {
    return Pack<T>::load(p);
}

// Writes the value's bits to all lanes of a pack.
template <class B>
[[gnu::always_inline]] inline void spread_value(const void* value, void* pack) {
    B bits;
    __builtin_memcpy(&bits, value, sizeof bits);
    const typename Pack<B>::V lanes = bits - typename Pack<B>::V{};
    __builtin_memcpy(pack, &lanes, kBytes);
}

// Number of operands of a formula.
template <class F, class... P>
constexpr int arity_with() {
    if constexpr (requires(F f, P... p) { f(p...); })
        return sizeof...(P);
    else
        return 0;
}
template <class F, class P>
inline constexpr int kArity = arity_with<F, P>() + arity_with<F, P, P>() + arity_with<F, P, P, P>() +
                              arity_with<F, P, P, P, P>() + arity_with<F, P, P, P, P, P>();

template <class T>
[[gnu::always_inline]] inline void store_result(Pack<T> x, T* out) {
    x.store(out);
}
// Writes around the caches; `out` must be aligned.
[[gnu::always_inline]] inline void store_around(Pack<float> x, float* out) {
#if defined(__AVX512BW__)
    _mm512_stream_ps(out, x.v);
#elif defined(__AVX2__)
    _mm256_stream_ps(out, x.v);
#else
    _mm_stream_ps(out, x.v);
#endif
}
// A byte 0 or 1 for each lane.
template <class T>
[[gnu::always_inline]] inline void store_result(Mask<T> m, uint8_t* out) {
    typedef int8_t Bytes __attribute__((vector_size(Pack<T>::lanes)));
    Bytes b = __builtin_convertvector(m.v, Bytes) & 1;
    __builtin_memcpy(out, &b, sizeof b);
}

#if defined(__AVX512BW__)
template <class T>
[[gnu::always_inline]] inline uint64_t bits_of_lanes(Mask<T> m) {
    if constexpr (sizeof(T) == 1) return _mm512_movepi8_mask((__m512i)m.v);
    if constexpr (sizeof(T) == 2) return _mm512_movepi16_mask((__m512i)m.v);
    if constexpr (sizeof(T) == 4) return _mm512_movepi32_mask((__m512i)m.v);
    return _mm512_movepi64_mask((__m512i)m.v);
}
#else
// The masks one after the other, in lanes half as wide.
#if defined(__AVX2__)
using MaskBits = __m256i;
[[gnu::always_inline]] inline MaskBits halves_of_64(MaskBits a, MaskBits b) {
    return _mm256_permute4x64_epi64((__m256i)_mm256_shuffle_ps((__m256)a, (__m256)b, 0x88), 0xd8);
}
[[gnu::always_inline]] inline MaskBits halves_of_16(MaskBits a, MaskBits b) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xd8);
}
[[gnu::always_inline]] inline MaskBits quarters_of_32(MaskBits a, MaskBits b, MaskBits c, MaskBits d) {
    const __m256i quarters = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(quarters, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
#else
using MaskBits = __m128i;
[[gnu::always_inline]] inline MaskBits halves_of_64(MaskBits a, MaskBits b) {
    return (__m128i)_mm_shuffle_ps((__m128)a, (__m128)b, 0x88);
}
[[gnu::always_inline]] inline MaskBits halves_of_16(MaskBits a, MaskBits b) { return _mm_packs_epi16(a, b); }
[[gnu::always_inline]] inline MaskBits quarters_of_32(MaskBits a, MaskBits b, MaskBits c, MaskBits d) {
    return _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
}
#endif
#endif

// The masks of as many packs as it takes to fill a register with bytes 0 or 1. To narrow one at a time takes longer
// than most comparisons.
template <class T>
[[gnu::always_inline]] inline void store_masks(const Mask<T>* m, uint8_t* out) {
#if defined(__AVX512BW__)
    uint64_t bits = 0;
    for (int k = 0; k < static_cast<int>(sizeof(T)); ++k) bits |= bits_of_lanes(m[k]) << (k * Pack<T>::lanes);
    _mm512_storeu_si512(out, _mm512_maskz_set1_epi8(_cvtu64_mask64(bits), 1));
#else
    MaskBits bytes;
    auto lanes = [&](int k) __attribute__((always_inline)) { return (MaskBits)m[k].v; };
    auto pair = [&](int k) __attribute__((always_inline)) { return halves_of_64(lanes(k), lanes(k + 1)); };
    if constexpr (sizeof(T) == 1) bytes = lanes(0);
    if constexpr (sizeof(T) == 2) bytes = halves_of_16(lanes(0), lanes(1));
    if constexpr (sizeof(T) == 4) bytes = quarters_of_32(lanes(0), lanes(1), lanes(2), lanes(3));
    if constexpr (sizeof(T) == 8) bytes = quarters_of_32(pair(0), pair(2), pair(4), pair(6));
    (Pack<int8_t>((Pack<int8_t>::V)bytes) & Pack<int8_t>(1.0)).store(reinterpret_cast<int8_t*>(out));
#endif
}

template <class T>
[[gnu::always_inline]] inline Mask<T> load_mask(const uint8_t* p) {
    typedef int8_t Bytes __attribute__((vector_size(Pack<T>::lanes)));
    using V = typename Mask<T>::V;
    Bytes b;
    __builtin_memcpy(&b, p, sizeof b);
    if constexpr (sizeof(T) == 1) {
        return (V)b != 0;
    } else {
        // The compiler would widen them step by step.
#if defined(__AVX512BW__)
        if constexpr (sizeof(T) == 2) return (V)_mm512_cvtepi8_epi16((__m256i)b) != 0;
        if constexpr (sizeof(T) == 4) return (V)_mm512_cvtepi8_epi32((__m128i)b) != 0;
        if constexpr (sizeof(T) == 8) return (V)_mm512_cvtepi8_epi64(_mm_loadl_epi64((const __m128i*)p)) != 0;
#elif defined(__AVX2__)
        if constexpr (sizeof(T) == 2) return (V)_mm256_cvtepi8_epi16((__m128i)b) != 0;
        if constexpr (sizeof(T) == 4) return (V)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)) != 0;
        if constexpr (sizeof(T) == 8) return (V)_mm256_cvtepi8_epi64(_mm_loadu_si32(p)) != 0;
#else
        if constexpr (sizeof(T) == 2) return (V)_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i*)p)) != 0;
        if constexpr (sizeof(T) == 4) return (V)_mm_cvtepi8_epi32(_mm_loadu_si32(p)) != 0;
        if constexpr (sizeof(T) == 8) return (V)_mm_cvtepi8_epi64(_mm_loadu_si16(p)) != 0;
#endif
    }
}

template <class T, bool IsMask>
[[gnu::always_inline]] inline auto load_operand(const void* p) {
    if constexpr (IsMask)
        return load_mask<T>(static_cast<const uint8_t*>(p));
    else
        return load_pack(static_cast<const T*>(p));
}

// Operand MaskAt (if not negative) is a mask. Out is the element type of the result.
template <class F, class T, class Out, int MaskAt, int... I>
struct LoopOver {
    static constexpr int N = sizeof...(I);
    using P = Computed<T>;
    static constexpr int lanes = Pack<P>::lanes;
    static constexpr bool kIsTest = std::is_same_v<Out, uint8_t> && sizeof(P) > 1;
    static constexpr int64_t size_of_operand(int i) { return i == MaskAt ? 1 : sizeof(T); }

    // The distance, in bytes, at which the result's lines are fetched ahead. The processor reads operands ahead by
    // itself, but not a result in the second-level cache: a tenth of the time of an addition.
    static constexpr int64_t kAhead = 512;

    // `step` in bytes from pack to pack.
    template <bool Around>
    [[gnu::noinline]] static void whole_packs(const char* const* in, const int64_t* step, Out* out, int64_t packs) {
        const char* p[N] = {in[I]...};
        const int64_t s[N] = {step[I]...};
        if constexpr (kIsTest) {
            constexpr int kPacks = sizeof(P);
            for (; packs >= kPacks; packs -= kPacks) {
                Mask<P> m[kPacks];
#pragma GCC unroll 8
                for (int k = 0; k < kPacks; ++k) {
                    m[k] = F{}(load_operand<T, false>(p[I])...);
                    ((p[I] += s[I]), ...);
                }
                store_masks(m, out);
                out += kPacks * lanes;
            }
        }
        for (int64_t k = 0; k < packs; ++k) {
            const auto result = F{}(load_operand<T, I == MaskAt>(p[I])...);
            if constexpr (Around) {
                store_around(result, out);
            } else {
                if constexpr (lanes * sizeof(Out) >= 32) __builtin_prefetch(out + kAhead / sizeof(Out), 1);
                store_result(result, out);
            }
            ((p[I] += s[I]), ...);
            out += lanes;
        }
    }

    template <bool Around = false>
    static void run(const void* const* in, const int64_t* step, void* out, int64_t count) {
        if constexpr (Around) {
            // Elements before the first whole line are written as usual.
            const auto behind = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % kBytes);
            if (behind) [[unlikely]] {
                const int64_t first = (kBytes - behind) / static_cast<int64_t>(sizeof(Out));
                if (count <= first) return run<false>(in, step, out, count);
                const void* rest[N];
                for (int i = 0; i < N; ++i)
                    rest[i] = static_cast<const char*>(in[i]) + first * step[i] * size_of_operand(i);
                run<false>(in, step, out, first);
                return run<true>(rest, step, static_cast<Out*>(out) + first, count - first);
            }
        }
        alignas(64) char part[N][kBytes];
        const char* p[N];
        int64_t s[N];
        for (int i = 0; i < N; ++i) {
            p[i] = static_cast<const char*>(in[i]);
            s[i] = step[i] * lanes * size_of_operand(i);
            if (step[i] != 0) continue;
            // A single value is spread over one pack, which is then read repeatedly.
            if (i == MaskAt)
                __builtin_memset(part[i], *static_cast<const unsigned char*>(in[i]), kBytes);
            else
                spread_value<BitsOf<T>>(in[i], part[i]);
            p[i] = part[i];
        }
        int64_t packs = count / lanes;
        auto* to = static_cast<Out*>(out);
        if (packs) whole_packs<Around>(p, s, to, packs);
        int rest = static_cast<int>(count - packs * lanes);
        if (rest == 0) return;
        for (int i = 0; i < N; ++i) {
            if (step[i] == 0) continue;
            const char* last = p[i] + packs * s[i];
            if (i == MaskAt) {
                for (int j = 0; j < lanes; ++j) part[i][j] = j < rest ? last[j] : 0;
            } else {
                if constexpr (kIsHalf<T>)
                    for (int j = 0; j < lanes; ++j)
                        reinterpret_cast<T*>(part[i])[j] = j < rest ? reinterpret_cast<const T*>(last)[j] : T{};
                else
                    load_part(reinterpret_cast<const T*>(last), rest).store(reinterpret_cast<T*>(part[i]));
            }
            p[i] = part[i];
        }
        alignas(64) Out result[lanes];
        whole_packs<false>(p, s, result, 1);
        if constexpr (sizeof(Out) == sizeof(P))
            store_part(to + packs * lanes, Pack<Out>::load(result), rest);
        else
            for (int j = 0; j < rest; ++j) to[packs * lanes + j] = result[j];
    }
};

template <int... I>
struct Indices {};
template <int N>
struct IndicesTo;
// clang-format off
template <> struct IndicesTo<1> { using type = Indices<0>; };
template <> struct IndicesTo<2> { using type = Indices<0, 1>; };
template <> struct IndicesTo<3> { using type = Indices<0, 1, 2>; };
template <> struct IndicesTo<4> { using type = Indices<0, 1, 2, 3>; };
template <> struct IndicesTo<5> { using type = Indices<0, 1, 2, 3, 4>; };
// clang-format on

template <class F, class T, class Out, int MaskAt, int... I>
constexpr ElementLoop loop_of(Indices<I...>) {
    return &LoopOver<F, T, Out, MaskAt, I...>::template run<false>;
}
template <class F, class T, int... I>
constexpr ElementLoop around_of(Indices<I...>) {
    return &LoopOver<F, T, T, -1, I...>::template run<true>;
}

// The row of formula F for elements T; by another name or dtype code where one loop serves several.
template <class F, class T>
constexpr ElementLoopEntry entry(std::string_view op = F::name, DType code = kCode<T>) {
    constexpr int n = kArity<F, Pack<Computed<T>>>;
    static_assert(n > 0);
    using Out = std::conditional_t<F::result == formula::Result::boolean, uint8_t, T>;
    using At = typename IndicesTo<n>::type;
    ElementLoop around = nullptr;
    if constexpr (std::is_same_v<Out, float>) around = around_of<F, T>(At{});
    return {op, code, n, -1, F::result == formula::Result::boolean, loop_of<F, T, Out, -1>(At{}), around};
}
template <class F, class T, int MaskAt>
constexpr ElementLoopEntry mask_entry(DType code) {
    return {F::name, code, 3, MaskAt, false, loop_of<F, T, T, MaskAt>(Indices<0, 1, 2>{})};
}

template <int N>
struct Rows {
    ElementLoopEntry row[N];
};
template <>
struct Rows<0> {
    const ElementLoopEntry* row = nullptr;
};
// All formulas of a list for all the types.
template <class... F>
constexpr auto float_rows(formula::Formulas<F...>) {
    return Rows<2 * sizeof...(F)>{{entry<F, float>()..., entry<F, double>()...}};
}
template <class T, class... F>
constexpr auto rows_for(formula::Formulas<F...>) {
    return Rows<sizeof...(F)>{{entry<F, T>()...}};
}

// All formulas of a list for floats of 16 bits: for cheap ones, which would wait for conversions of whole blocks.
template <class... F>
constexpr auto half_rows(formula::Formulas<F...>) {
    if constexpr (kHasHalves)
        return Rows<2 * sizeof...(F)>{{entry<F, Brain>()..., entry<F, Half16>()...}};
    else
        return Rows<0>{};
}

template <int N>
void visit(const LoopVisitor& visitor, const Rows<N>& rows, int cost) {
    if constexpr (N == 0) return;
    visitor.elements(visitor.context, {rows.row, N, cost});
}

// Each visits the tables in the file of the same subject.
void visit_arithmetic(const LoopVisitor& visitor);
void visit_exponentials(const LoopVisitor& visitor);
void visit_trigonometry(const LoopVisitor& visitor);
void visit_special(const LoopVisitor& visitor);
void visit_activations(const LoopVisitor& visitor);
void visit_integers(const LoopVisitor& visitor);
void visit_comparisons(const LoopVisitor& visitor);
void visit_conversions(const LoopVisitor& visitor);

}  // namespace lunaria::cpu::LUNARIA_ISA
