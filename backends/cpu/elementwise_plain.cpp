// The judge's loops: formulas on double, and on integers that wrap around.
#include "backends/cpu/elementwise.h"
#include "backends/cpu/int.h"
#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_compare.h"
#include "core/ops/formulas_gradient.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu {

namespace {

using namespace formula;

template <class S>
struct Stored {
    static constexpr DType dtype = DType::f64;
};
template <class T>
struct Stored<Int<T>> {
    static constexpr DType dtype = dtype_of<T>();
};
template <>
struct Stored<Complex64> {
    static constexpr DType dtype = DType::c64;
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

using IntegerMath =
    Formulas<Add, Sub, Mul, Maximum, Minimum, Clamp, Fmax, Fmin, Abs, Neg, Square, Sign, Floor, Ceil, Trunc, Round>;
using IntegerActivations = Formulas<Relu, Relu6>;
using Selections = Formulas<Where, MaskedFill>;

template <class T>
void visit_integer(const LoopVisitor& visitor) {
    using S = Int<T>;
    visit<S>(visitor, IntegerMath{}, 1);
    visit<S>(visitor, IntegerActivations{}, 1);
    visit<S>(visitor, IntegerDivisions{}, 16);
    visit<S>(visitor, Comparisons{}, 1);
    visit<S>(visitor, Bits{}, 1);
    visit<S>(visitor, Shifts{}, 2);
    visit<S>(visitor, Selections{}, 1);
}

}  // namespace

void visit_plain_loops(const LoopVisitor& visitor) {
    visit<double>(visitor, CheapMath{}, 1);
    visit<double>(visitor, Exponentials{}, 1);
    visit<double>(visitor, Trigonometry{}, 1);
    visit<double>(visitor, Hyperbolics{}, 1);
    visit<double>(visitor, SpecialFunctions{}, 1);
    visit<double>(visitor, Activations{}, 1);
    visit<double>(visitor, SmoothActivations{}, 1);
    visit<double>(visitor, ActivationGradients{}, 1);
    visit<double>(visitor, SmoothActivationGradients{}, 1);
    visit<double>(visitor, Comparisons{}, 1);
    visit<double>(visitor, Tests{}, 1);
    visit<double>(visitor, Selections{}, 1);
    visit_integer<uint8_t>(visitor);
    visit_integer<int8_t>(visitor);
    visit_integer<int16_t>(visitor);
    visit_integer<int32_t>(visitor);
    visit_integer<int64_t>(visitor);
    // What sums of cotangents need; the rules of products of complex numbers would be others than those of real ones.
    visit<Complex64>(visitor, Formulas<Add, Sub, Neg>{}, 2);
    using Byte = Int<uint8_t>;
    static constexpr ElementLoopEntry bools[] = {
        row<LogicalAnd, Byte>(DType::boolean),
        row<LogicalOr, Byte>(DType::boolean),
        row<LogicalXor, Byte>(DType::boolean),
        row<LogicalNot, Byte>(DType::boolean),
        row<LogicalAnd, Byte>(DType::boolean, BitwiseAnd::name),
        row<LogicalOr, Byte>(DType::boolean, BitwiseOr::name),
        row<LogicalXor, Byte>(DType::boolean, BitwiseXor::name),
        row<LogicalNot, Byte>(DType::boolean, Invert::name),
        row<LogicalOr, Byte>(DType::boolean, Add::name),
        row<LogicalAnd, Byte>(DType::boolean, Mul::name),
        row<Maximum, Byte>(DType::boolean),
        row<Minimum, Byte>(DType::boolean),
        row<Fmax, Byte>(DType::boolean),
        row<Fmin, Byte>(DType::boolean),
        row<Clamp, Byte>(DType::boolean),
        row<Equal, Byte>(DType::boolean),
        row<NotEqual, Byte>(DType::boolean),
        row<Less, Byte>(DType::boolean),
        row<LessEqual, Byte>(DType::boolean),
        row<Greater, Byte>(DType::boolean),
        row<GreaterEqual, Byte>(DType::boolean),
        row<Where, Byte>(DType::boolean),
        row<MaskedFill, Byte>(DType::boolean),
    };
    visitor.elements(visitor.context, {bools, sizeof(bools) / sizeof(bools[0]), 1});
}

}  // namespace lunaria::cpu
