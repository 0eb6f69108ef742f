// Formulas of core/ops/activation_grad.cpp.
#pragma once

#include "core/ops/formulas_activation.h"

namespace lunaria::formula {

// clang-format off
struct ReluGrad : Real { static constexpr std::string_view name = "relu_grad";
    template <class T> T operator()(T dy, T y) const { return select(y > T(0), dy, T(0)); } };
// (1 - y)(1 + y) rather than 1 - y*y, which cancels where |y| is close to 1.
struct TanhGrad : Real { static constexpr std::string_view name = "tanh_grad";
    template <class T> T operator()(T dy, T y) const { return dy * ((T(1) - y) * (T(1) + y)); } };
struct SigmoidGrad : Real { static constexpr std::string_view name = "sigmoid_grad";
    template <class T> T operator()(T dy, T y) const { return dy * (y * (T(1) - y)); } };
// Of -inf the logistic function is 0 and x times it NaN, as in silu itself.
struct SiluGrad : Real { static constexpr std::string_view name = "silu_grad";
    template <class T> T operator()(T dy, T x) const {
        T s = logistic(x);
        return dy * (s + x * s * (T(1) - s)); } };
struct GeluGrad : Real { static constexpr std::string_view name = "gelu_erf_grad";
    template <class T> T operator()(T dy, T x) const {
        T pdf = T(0.39894228040143267794) * exp(T(-0.5) * x * x);
        return dy * (normal_cdf(x) + x * pdf); } };
struct GeluTanhGrad : Real { static constexpr std::string_view name = "gelu_tanh_grad";
    template <class T> T operator()(T dy, T x) const {
        // y = x s(u) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3) and s the logistic function.
        constexpr double c = 1.5957691216057307118, cubic = 0.044715 * c;
        T xx = x * x;
        T s = logistic(x * (xx * T(cubic) + T(c)));
        return dy * (s + x * s * (T(1) - s) * (xx * T(3 * cubic) + T(c))); } };
// clang-format on

using ActivationGradients = Formulas<ReluGrad, TanhGrad, SigmoidGrad>;
using SmoothActivationGradients = Formulas<SiluGrad, GeluGrad, GeluTanhGrad>;

}  // namespace lunaria::formula
