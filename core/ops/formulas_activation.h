// Formulas of core/ops/activation.cpp.
#pragma once

#include "core/ops/formulas.h"

namespace lunaria::formula {

// clang-format off
// NaN fails the comparison x <= 0 and is handed on.
struct Relu : Number { static constexpr std::string_view name = "relu";
    template <class T> T operator()(T x) const { return select(x <= T(0), T(0), x); } };
struct Relu6 : Number { static constexpr std::string_view name = "relu6";
    template <class T> T operator()(T x) const { return select(x <= T(0), T(0), select(x >= T(6), T(6), x)); } };
struct LeakyRelu : Real { static constexpr std::string_view name = "leaky_relu";
    template <class T> T operator()(T x, T alpha) const { return select(x > T(0), x, x * alpha); } };
struct Elu : Costly<8> { static constexpr std::string_view name = "elu";
    template <class T> T operator()(T x, T alpha) const { return select(x > T(0), x, alpha * expm1_negative(x)); } };
struct Celu : Costly<8> { static constexpr std::string_view name = "celu";
    template <class T> T operator()(T x, T alpha) const { return select(x > T(0), x, alpha * expm1_negative(x / alpha)); } };
struct Selu : Costly<8> { static constexpr std::string_view name = "selu";
    template <class T> T operator()(T x) const {
        constexpr double scale = 1.0507009873554804934, alpha = 1.6732632423543772848;
        return select(x > T(0), T(scale) * x, T(scale * alpha) * expm1_negative(x)); } };
// 1 / (1 + e^-x), with the exponent kept negative: e^-x would overflow before the result underflows.
template <class T> T logistic(T x) {
    T t = exp(-abs(x));
    return select(x < T(0), t, T(1)) / (T(1) + t); }
struct Sigmoid : Costly<8> { static constexpr std::string_view name = "sigmoid";
    template <class T> T operator()(T x) const { return logistic(x); } };
// -log(1 + exp(-x)) with the exponent kept negative.
struct Logsigmoid : Costly<8> { static constexpr std::string_view name = "logsigmoid";
    template <class T> T operator()(T x) const { return select(x < T(0), x, T(0)) - log1p(exp(-abs(x))); } };
// At -inf this is -inf * 0, NaN, as in PyTorch and MindSpore; so are the functions below.
struct Silu : Costly<8> { static constexpr std::string_view name = "silu";
    template <class T> T operator()(T x) const {
        return x * logistic(x); } };
struct Gelu : Costly<12, Fuses::single> { static constexpr std::string_view name = "gelu_erf";
    template <class T> T operator()(T x) const { return x * normal_cdf(x); } };
struct GeluTanh : Costly<8> { static constexpr std::string_view name = "gelu_tanh";
    template <class T> T operator()(T x) const {
        // 0.5 (1 + tanh(u)) = sigmoid(2u).
        T u = T(1.5957691216057307118) * (x + T(0.044715) * x * x * x);
        return x * logistic(u); } };
struct FastGelu : Costly<8> { static constexpr std::string_view name = "fast_gelu";
    template <class T> T operator()(T x) const {
        return x * logistic(T(1.702) * x); } };
// log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.
struct Softplus : Costly<8> { static constexpr std::string_view name = "softplus";
    template <class T> T operator()(T x, T beta, T threshold) const {
        T z = x * beta;
        T positive = select(z < T(0), T(0), z);
        return select(z > threshold, x, (positive + log1p(exp(-abs(z)))) / beta); } };
// x tanh(log(1 + e^x)) with n = e^x: n (n + 2) / (n (n + 2) + 2). Past 20 the quotient is 1 to the last digit.
struct Mish : Costly<8> { static constexpr std::string_view name = "mish";
    template <class T> T operator()(T x) const {
        T n = exp(select(x > T(20), T(20), x));
        T m = n * (n + T(2));
        T y = select(x > T(20), x, x * (m / (m + T(2))));
        return y; } };
struct Softsign : Real { static constexpr std::string_view name = "softsign";
    template <class T> T operator()(T x) const {
        return select(abs(x) == T(std::numeric_limits<double>::infinity()), copysign(T(1), x), x / (T(1) + abs(x))); } };
struct Hardsigmoid : Real { static constexpr std::string_view name = "hardsigmoid";
    template <class T> T operator()(T x) const {
        return select(x <= T(-3), T(0), select(x >= T(3), T(1), x * T(1.0 / 6) + T(0.5))); } };
struct Hardswish : Real { static constexpr std::string_view name = "hardswish";
    template <class T> T operator()(T x) const {
        return select(x <= T(-3), T(0), select(x >= T(3), x, x * (x + T(3)) * T(1.0 / 6))); } };
struct Hardshrink : Real { static constexpr std::string_view name = "hardshrink";
    template <class T> T operator()(T x, T lambd) const { return select(abs(x) <= lambd, T(0), x); } };
struct Softshrink : Real { static constexpr std::string_view name = "softshrink";
    template <class T> T operator()(T x, T lambd) const {
        return select(x > lambd, x - lambd, select(x < -lambd, x + lambd, select(x != x, x, T(0)))); } };
struct Tanhshrink : Costly<8> { static constexpr std::string_view name = "tanhshrink";
    template <class T> T operator()(T x) const { return x - tanh(x); } };
struct Threshold : Real { static constexpr std::string_view name = "threshold";
    template <class T> T operator()(T x, T thr, T value) const { return select(x <= thr, value, x); } };
// clang-format on

using Activations =
    Formulas<Relu, Relu6, LeakyRelu, Hardsigmoid, Hardswish, Hardshrink, Softshrink, Threshold, Softsign>;
using SmoothActivations =
    Formulas<Elu, Celu, Selu, Sigmoid, Logsigmoid, Silu, Gelu, GeluTanh, FastGelu, Softplus, Mish, Tanhshrink>;

}  // namespace lunaria::formula
