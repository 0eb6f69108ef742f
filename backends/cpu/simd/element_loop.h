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
#if defined(__AVX512BW__)
    if constexpr (sizeof(T) == 1)
        _mm512_storeu_si512(out, _mm512_maskz_set1_epi8(_mm512_movepi8_mask((__m512i)m.v), 1));
    else if constexpr (sizeof(T) == 2)
        _mm256_storeu_si256((__m256i*)out, _mm256_maskz_set1_epi8(_mm512_movepi16_mask((__m512i)m.v), 1));
    else if constexpr (sizeof(T) == 4)
        _mm_storeu_si128((__m128i*)out, _mm_maskz_set1_epi8(_mm512_movepi32_mask((__m512i)m.v), 1));
    else
        _mm_storel_epi64((__m128i*)out, _mm_maskz_set1_epi8(_mm512_movepi64_mask((__m512i)m.v), 1));
#else
    typedef int8_t Bytes __attribute__((vector_size(Pack<T>::lanes)));
    Bytes b = __builtin_convertvector(m.v, Bytes) & 1;
    __builtin_memcpy(out, &b, sizeof b);
#endif
}
template <class T>
[[gnu::always_inline]] inline Mask<T> load_mask(const uint8_t* p) {
    typedef int8_t Bytes __attribute__((vector_size(Pack<T>::lanes)));
    Bytes b;
    __builtin_memcpy(&b, p, sizeof b);
    return __builtin_convertvector(b, typename Mask<T>::V) != 0;
}

template <class T, bool IsMask>
[[gnu::always_inline]] inline auto load_operand(const void* p) {
    if constexpr (IsMask)
        return load_mask<T>(static_cast<const uint8_t*>(p));
    else
        return Pack<T>::load(static_cast<const T*>(p));
}

// Operand MaskAt (if not negative) is a mask. Out is the element type of the result.
template <class F, class T, class Out, int MaskAt, int... I>
struct LoopOver {
    static constexpr int N = sizeof...(I);
    static constexpr int lanes = Pack<T>::lanes;
    static constexpr int64_t size_of_operand(int i) { return i == MaskAt ? 1 : sizeof(T); }

    // The distance, in bytes, at which the result's lines are fetched ahead. The processor reads operands ahead by
    // itself, but not a result in the second-level cache: a tenth of the time of an addition.
    static constexpr int64_t kAhead = 512;

    // `step` in bytes from pack to pack.
    template <bool Around>
    [[gnu::noinline]] static void whole_packs(const char* const* in, const int64_t* step, Out* out, int64_t packs) {
        const char* p[N] = {in[I]...};
        const int64_t s[N] = {step[I]...};
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
                for (int j = 0; j < lanes; ++j) reinterpret_cast<T*>(part[i])[j] = *static_cast<const T*>(in[i]);
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
                load_part(reinterpret_cast<const T*>(last), rest).store(reinterpret_cast<T*>(part[i]));
            }
            p[i] = part[i];
        }
        alignas(64) Out result[lanes];
        whole_packs<false>(p, s, result, 1);
        if constexpr (sizeof(Out) == sizeof(T))
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
    constexpr int n = kArity<F, Pack<T>>;
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
// All formulas of a list for all the types.
template <class... F>
constexpr auto float_rows(formula::Formulas<F...>) {
    return Rows<2 * sizeof...(F)>{{entry<F, float>()..., entry<F, double>()...}};
}
template <class T, class... F>
constexpr auto rows_for(formula::Formulas<F...>) {
    return Rows<sizeof...(F)>{{entry<F, T>()...}};
}

template <int N>
void visit(const LoopVisitor& visitor, const Rows<N>& rows, int cost) {
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
