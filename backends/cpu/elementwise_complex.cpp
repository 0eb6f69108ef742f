// Loops of complex numbers. Products and quotients follow the textbook; quotients are scaled so that no intermediate
// value overflows (this file is compiled with -fcx-fortran-rules, so that NaN results are not computed again).
#include <cmath>
#include <complex>

#include "backends/cpu/elementwise_rows.h"
#include "core/ops/formulas_activation.h"
#include "core/ops/formulas_math.h"

namespace lunaria::cpu {

namespace {

template <class T>
using Part = typename T::value_type;

// clang-format off
struct ComplexExp2 : Real { static constexpr std::string_view name = "exp2";
    template <class T> T operator()(T x) const { return std::exp(x * Part<T>(0.69314718055994530942)); } };
// exp(x + iy) - 1 = expm1(x) cos(y) - 2 sin(y/2)^2 + i exp(x) sin(y), without the difference that cancels near 0.
struct ComplexExpm1 : Real { static constexpr std::string_view name = "expm1";
    template <class T> T operator()(T z) const {
        const Part<T> x = z.real(), y = z.imag(), s = std::sin(y / 2);
        return {std::expm1(x) * std::cos(y) - 2 * s * s, std::exp(x) * std::sin(y)}; } };
struct ComplexLog2 : Real { static constexpr std::string_view name = "log2";
    template <class T> T operator()(T x) const { return std::log(x) * Part<T>(1.44269504088896340736); } };
// log|1 + z| is half of log1p(2x + x^2 + y^2), which cancels only where x and y^2 do.
struct ComplexLog1p : Real { static constexpr std::string_view name = "log1p";
    template <class T> T operator()(T z) const {
        const double x = z.real(), y = z.imag();
        const double modulus = std::fabs(x) < 0.5 && std::fabs(y) < 0.5 ? 0.5 * std::log1p(x * (2 + x) + y * y)
                                                                        : std::log(std::hypot(1 + x, y));
        return {static_cast<Part<T>>(modulus), static_cast<Part<T>>(std::atan2(y, 1 + x))}; } };
struct ComplexRsqrt : Real { static constexpr std::string_view name = "rsqrt";
    template <class T> T operator()(T x) const { return T(1) / std::sqrt(x); } };
struct ComplexReciprocal : Real { static constexpr std::string_view name = "reciprocal";
    template <class T> T operator()(T x) const { return T(1) / x; } };
// The number on the unit circle in the direction of x, and 0 of 0.
struct ComplexSign : Number { static constexpr std::string_view name = "sign";
    template <class T> T operator()(T x) const { return x == T(0) ? T(0) : x / std::abs(x); } };
struct ComplexSigmoid : Real { static constexpr std::string_view name = "sigmoid";
    template <class T> T operator()(T x) const {
        if (x.real() >= 0) return T(1) / (T(1) + std::exp(-x));
        const T e = std::exp(x);
        return e / (T(1) + e); } };
// Whole exponents by products, which are exact where logarithms round; a power of 0 has no logarithm.
struct ComplexPow : Real { static constexpr std::string_view name = "pow";
    template <class T> T operator()(T a, T b) const {
        if (b.imag() == 0 && std::fabs(b.real()) <= 64 && b.real() == std::floor(b.real())) {
            T result(1), base = a;
            for (auto n = static_cast<int>(std::fabs(b.real())); n > 0; n /= 2, base *= base)
                if (n % 2) result *= base;
            return b.real() < 0 ? T(1) / result : result;
        }
        if (a == T(0)) return b.real() > 0 ? T(0) : T(std::numeric_limits<Part<T>>::quiet_NaN());
        return std::pow(a, b); } };
struct Conjugate : Number { static constexpr std::string_view name = "conjugate";
    template <class T> T operator()(T x) const { return std::conj(x); } };
struct ComplexTanhGrad : Real { static constexpr std::string_view name = "tanh_grad";
    template <class T> T operator()(T dy, T y) const { return dy * ((T(1) - y) * (T(1) + y)); } };
struct ComplexSigmoidGrad : Real { static constexpr std::string_view name = "sigmoid_grad";
    template <class T> T operator()(T dy, T y) const { return dy * (y * (T(1) - y)); } };
struct ComplexWhere : Formula<Domain::any> { static constexpr std::string_view name = Where::name;
    template <class T> T operator()(bool condition, T a, T b) const { return condition ? a : b; } };
struct ComplexMaskedFill : Formula<Domain::any> { static constexpr std::string_view name = MaskedFill::name;
    template <class T> T operator()(T x, bool mask, T value) const { return mask ? value : x; } };
struct ComplexIsnan : Test { static constexpr std::string_view name = "isnan";
    template <class T> bool operator()(T x) const { return std::isnan(x.real()) || std::isnan(x.imag()); } };
struct ComplexIsinf : Test { static constexpr std::string_view name = "isinf";
    template <class T> bool operator()(T x) const { return std::isinf(x.real()) || std::isinf(x.imag()); } };
struct ComplexIsfinite : Test { static constexpr std::string_view name = "isfinite";
    template <class T> bool operator()(T x) const { return std::isfinite(x.real()) && std::isfinite(x.imag()); } };
// clang-format on

using Cheap = Formulas<Add, Sub, Mul, Div, Neg, Square, ComplexReciprocal, Addcmul, Addcdiv, Conjugate, ComplexTanhGrad,
                       ComplexSigmoidGrad>;
using Functions =
    Formulas<Abs, Exp, ComplexExp2, ComplexExpm1, Log, ComplexLog2, Log10, ComplexLog1p, Sqrt, ComplexRsqrt, Sin, Cos,
             Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh, Acosh, Atanh, ComplexSign, ComplexSigmoid, ComplexPow>;
using Questions = Formulas<Equal, NotEqual, ComplexIsnan, ComplexIsinf, ComplexIsfinite>;

template <class T>
void visit_parts(const LoopVisitor& visitor) {
    visit<T>(visitor, Cheap{}, 2);
    visit<T>(visitor, Functions{}, 40);
    visit<T>(visitor, Questions{}, 2);
    visit<T>(visitor, Formulas<ComplexWhere, ComplexMaskedFill>{}, 2);
}

}  // namespace

void visit_complex_loops(const LoopVisitor& visitor) {
    visit_parts<Complex64>(visitor);
    visit_parts<Complex128>(visitor);
}

}  // namespace lunaria::cpu
