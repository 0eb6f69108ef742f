// Formulas of core/ops/activation_grad.cpp.
#pragma once

#include "core/ops/formulas_activation.h"

namespace lunaria::formula {

// clang-format off
struct ReluGrad : Real { static constexpr std::string_view name = "relu_grad";
    template <class T> T operator()(T dy, T y) const { return select(y <= T(0), T(0), dy); } };
// (1 - y)(1 + y) rather than 1 - y*y, which cancels where |y| is close to 1.
struct TanhGrad : Real { static constexpr std::string_view name = "tanh_grad";
    template <class T> T operator()(T dy, T y) const { return dy * ((T(1) - y) * (T(1) + y)); } };
struct SigmoidGrad : Real { static constexpr std::string_view name = "sigmoid_grad";
    template <class T> T operator()(T dy, T y) const { return dy * (y * (T(1) - y)); } };
// x, bounded to the range in which a slope that falls off like e^-x is not 0: infinity times 0 would be NaN, where the
// limit is 0.
template <class T> T within_slope(T x) { return smaller(larger(x, T(-1000)), T(1000)); }
struct SiluGrad : Costly<8> { static constexpr std::string_view name = "silu_grad";
    template <class T> T operator()(T dy, T x) const {
        T s = logistic(x);
        return dy * (s + within_slope(x) * s * (T(1) - s)); } };
struct GeluGrad : Costly<12, Fuses::single> { static constexpr std::string_view name = "gelu_erf_grad";
    template <class T> T operator()(T dy, T x) const {
        T pdf = T(0.39894228040143267794) * exp(T(-0.5) * x * x);
        return dy * (normal_cdf(x) + within_slope(x) * pdf); } };
struct GeluTanhGrad : Costly<8> { static constexpr std::string_view name = "gelu_tanh_grad";
    template <class T> T operator()(T dy, T x) const {
        // y = x s(u) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3) and s the logistic function.
        constexpr double c = 1.5957691216057307118, cubic = 0.044715 * c;
        T bounded = within_slope(x), xx = bounded * bounded;
        T s = logistic(bounded * (xx * T(cubic) + T(c)));
        return dy * (s + bounded * s * (T(1) - s) * (xx * T(3 * cubic) + T(c))); } };
// clang-format on

using ActivationGradients = Formulas<ReluGrad, TanhGrad, SigmoidGrad>;
using SmoothActivationGradients = Formulas<SiluGrad, GeluGrad, GeluTanhGrad>;

}  // namespace lunaria::formula
