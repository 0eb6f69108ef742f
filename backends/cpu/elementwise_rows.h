// Plain loops of formulas: one element after the other, on any number type.
#pragma once

#include "backends/cpu/elementwise.h"
#include "backends/cpu/int.h"
#include "core/ops/formulas_compare.h"

namespace lunaria::cpu {

using namespace formula;

template <class S>
struct Stored {
    static constexpr DType dtype = DType::f64;
};
template <class T>
struct Stored<Int<T>> {
    static constexpr DType dtype = dtype_of<T>();
};
template <class T>
struct Stored<std::complex<T>> {
    static constexpr DType dtype = dtype_of<std::complex<T>>();
};

template <class F, class... S>
constexpr int arity_with() {
    if constexpr (requires(F f, S... s) { f(s...); })
        return sizeof...(S);
    else
        return 0;
}

template <class S, bool IsMask>
auto element(const void* p, int64_t i) {
    if constexpr (IsMask)
        return static_cast<const uint8_t*>(p)[i] != 0;
    else
        return static_cast<const S*>(p)[i];
}

template <class F, class S, int MaskAt, int... I>
void loop(const void* const* in, const int64_t* step, void* out, int64_t count) {
    using R = std::conditional_t<F::result == Result::boolean, bool, S>;
    for (int64_t k = 0; k < count; ++k)
        static_cast<R*>(out)[k] = R(F{}(element<S, I == MaskAt>(in[I], k * step[I])...));
}

template <class F, class S>
constexpr ElementLoopEntry row(DType dtype = Stored<S>::dtype, std::string_view name = F::name) {
    constexpr bool boolean = F::result == Result::boolean;
    if constexpr (arity_with<F, bool, S, S>() == 3 && F::domain == Domain::any && F::name == Where::name)
        return {name, dtype, 3, 0, false, &loop<F, S, 0, 0, 1, 2>};
    else if constexpr (F::domain == Domain::any)
        return {name, dtype, 3, 1, false, &loop<F, S, 1, 0, 1, 2>};
    else if constexpr (arity_with<F, S>())
        return {name, dtype, 1, -1, boolean, &loop<F, S, -1, 0>};
    else if constexpr (arity_with<F, S, S>())
        return {name, dtype, 2, -1, boolean, &loop<F, S, -1, 0, 1>};
    else if constexpr (arity_with<F, S, S, S>())
        return {name, dtype, 3, -1, boolean, &loop<F, S, -1, 0, 1, 2>};
    else if constexpr (arity_with<F, S, S, S, S>())
        return {name, dtype, 4, -1, boolean, &loop<F, S, -1, 0, 1, 2, 3>};
    else
        return {name, dtype, 5, -1, boolean, &loop<F, S, -1, 0, 1, 2, 3, 4>};
}

template <class S, class... F>
void visit(const LoopVisitor& visitor, Formulas<F...>, int cost) {
    static constexpr ElementLoopEntry rows[] = {row<F, S>()...};
    visitor.elements(visitor.context, {rows, sizeof...(F), cost});
}

}  // namespace lunaria::cpu
