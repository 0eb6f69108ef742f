// All formulas by the element types that have them: what generated code is made of, and what tests go through.
#pragma once

#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_compare.h"
#include "core/ops/formulas_gradient.h"
#include "core/ops/formulas_math.h"

namespace lunaria::formula {

template <class... A, class... B>
constexpr Formulas<A..., B...> joined(Formulas<A...>, Formulas<B...>) {
    return {};
}
template <class First, class Second, class... More>
constexpr auto joined(First first, Second second, More... more) requires(sizeof...(More) > 0) {
    return joined(joined(first, second), more...);
}

using FloatFormulas = decltype(joined(CheapMath{}, Comparisons{}, Tests{}, Activations{}, ActivationGradients{},
                                      Exponentials{}, Hyperbolics{}, SmoothActivations{}, SmoothActivationGradients{},
                                      Trigonometry{}, SpecialFunctions{}));
// Without divisions and powers, which look at their operands before they start.
using WholeFormulas =
    Formulas<Add, Sub, Mul, Maximum, Minimum, Clamp, Fmax, Fmin, Abs, Neg, Square, Sign, Floor, Ceil, Trunc, Round,
             Relu, Relu6, BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift>;
using IntegerFormulas = decltype(joined(WholeFormulas{}, Comparisons{}, Formulas<Gcd, Lcm>{}));

}  // namespace lunaria::formula
