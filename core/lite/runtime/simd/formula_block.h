// Makes loops over registers of the interpreter from formulas, on packs of f32.
#pragma once

#include "backends/cpu/simd/element_loop.h"
#include "core/lite/runtime/simd/blocks.h"

namespace lunaria::lite::LUNARIA_ISA {

namespace simd = cpu::LUNARIA_ISA;
using Floats = simd::Pack<float>;

template <class F, int MaskAt, int... I>
struct Block {
    using Out = std::conditional_t<F::result == formula::Result::boolean, uint8_t, float>;
    static constexpr int64_t width(int i) { return i == MaskAt ? 1 : sizeof(float); }

    static void run(const char* const* in, const int64_t* step, char* out, int64_t count) {
        const char* p[] = {in[I]...};
        const int64_t s[] = {step[I] * Floats::lanes * width(I)...};
        auto* to = reinterpret_cast<Out*>(out);
        for (int64_t i = 0; i < count; i += Floats::lanes) {
            simd::store_result(F{}(simd::load_operand<float, I == MaskAt>(p[I])...), to);
            ((p[I] += s[I]), ...);
            to += Floats::lanes;
        }
    }
};

template <class F, int MaskAt, int... I>
constexpr BlockFunction block_of(simd::Indices<I...>) {
    return &Block<F, MaskAt, I...>::run;
}
template <class F>
constexpr FormulaBlock entry() {
    constexpr int n = simd::kArity<F, Floats>;
    static_assert(n > 0);
    return {F::name, n, F::result == formula::Result::boolean, block_of<F, -1>(typename simd::IndicesTo<n>::type{})};
}
template <class F, int MaskAt>
constexpr FormulaBlock mask_entry() {
    return {F::name, 3, false, block_of<F, MaskAt>(simd::Indices<0, 1, 2>{})};
}

template <int N>
struct Entries {
    FormulaBlock row[N];
};
template <class... F>
constexpr auto entries_for(formula::Formulas<F...>) {
    return Entries<sizeof...(F)>{{entry<F>()...}};
}
template <int N>
constexpr FormulaBlocks list_of(const Entries<N>& entries) {
    return {entries.row, N};
}

// Each in the file of the same subject.
FormulaBlocks arithmetic_blocks();
FormulaBlocks smooth_blocks();
FormulaBlocks special_blocks();
RowBlocks row_blocks();

}  // namespace lunaria::lite::LUNARIA_ISA
