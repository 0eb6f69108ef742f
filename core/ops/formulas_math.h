// Formulas of core/ops/math.cpp.
#pragma once

#include "core/ops/formulas.h"

namespace lunaria::formula {

// clang-format off
struct Add : Number { static constexpr std::string_view name = "add";
    template <class T> T operator()(T a, T b) const { return a + b; } };
struct Sub : Number { static constexpr std::string_view name = "sub";
    template <class T> T operator()(T a, T b) const { return a - b; } };
struct Mul : Number { static constexpr std::string_view name = "mul";
    template <class T> T operator()(T a, T b) const { return a * b; } };
struct Div : Real { static constexpr std::string_view name = "div";
    template <class T> T operator()(T a, T b) const { return a / b; } };
struct Maximum : Number { static constexpr std::string_view name = "maximum";
    template <class T> T operator()(T a, T b) const { return larger(a, b); } };
struct Minimum : Number { static constexpr std::string_view name = "minimum";
    template <class T> T operator()(T a, T b) const { return smaller(a, b); } };
// The limits of clamp may be missing: the kernel then passes infinities.
struct Clamp : Number { static constexpr std::string_view name = "clamp";
    template <class T> T operator()(T x, T low, T high) const { return smaller(larger(x, low), high); } };
// Not max(a, b) with NaN handed on: fmax and fmin prefer the number.
struct Fmax : Number { static constexpr std::string_view name = "fmax";
    template <class T> T operator()(T a, T b) const { return select((a > b) | (b != b), a, b); } };
struct Fmin : Number { static constexpr std::string_view name = "fmin";
    template <class T> T operator()(T a, T b) const { return select((a < b) | (b != b), a, b); } };

struct Abs : Number { static constexpr std::string_view name = "abs";
    template <class T> T operator()(T x) const { return abs(x); } };
struct Neg : Number { static constexpr std::string_view name = "neg";
    template <class T> T operator()(T x) const { return -x; } };
struct Square : Number { static constexpr std::string_view name = "square";
    template <class T> T operator()(T x) const { return x * x; } };
// Comparing keeps NaN out of both branches: sign(NaN) is 0, as in MindSpore and PyTorch.
struct Sign : Number { static constexpr std::string_view name = "sign";
    template <class T> T operator()(T x) const {
        return select(x > T(0), T(1), select(x < T(0), T(-1), T(0))); } };

struct Exp : Costly<8> { static constexpr std::string_view name = "exp";
    template <class T> T operator()(T x) const { return exp(x); } };
struct Exp2 : Costly<8> { static constexpr std::string_view name = "exp2";
    template <class T> T operator()(T x) const { return exp2(x); } };
struct Expm1 : Costly<8> { static constexpr std::string_view name = "expm1";
    template <class T> T operator()(T x) const { return expm1(x); } };
struct Log : Costly<8> { static constexpr std::string_view name = "log";
    template <class T> T operator()(T x) const { return log(x); } };
struct Log2 : Costly<8> { static constexpr std::string_view name = "log2";
    template <class T> T operator()(T x) const { return log2(x); } };
struct Log10 : Costly<8> { static constexpr std::string_view name = "log10";
    template <class T> T operator()(T x) const { return log10(x); } };
struct Log1p : Costly<8> { static constexpr std::string_view name = "log1p";
    template <class T> T operator()(T x) const { return log1p(x); } };
struct Sqrt : Real { static constexpr std::string_view name = "sqrt";
    template <class T> T operator()(T x) const { return sqrt(x); } };
struct Rsqrt : Real { static constexpr std::string_view name = "rsqrt";
    template <class T> T operator()(T x) const { return T(1) / sqrt(x); } };
struct Reciprocal : Real { static constexpr std::string_view name = "reciprocal";
    template <class T> T operator()(T x) const { return T(1) / x; } };
struct Sin : Costly<12, Fuses::single> { static constexpr std::string_view name = "sin";
    template <class T> T operator()(T x) const { return sin(x); } };
struct Cos : Costly<12, Fuses::single> { static constexpr std::string_view name = "cos";
    template <class T> T operator()(T x) const { return cos(x); } };
struct Tan : Costly<12, Fuses::single> { static constexpr std::string_view name = "tan";
    template <class T> T operator()(T x) const { return tan(x); } };
struct Asin : Costly<12, Fuses::single> { static constexpr std::string_view name = "asin";
    template <class T> T operator()(T x) const { return asin(x); } };
struct Acos : Costly<12, Fuses::single> { static constexpr std::string_view name = "acos";
    template <class T> T operator()(T x) const { return acos(x); } };
struct Atan : Costly<12, Fuses::single> { static constexpr std::string_view name = "atan";
    template <class T> T operator()(T x) const { return atan(x); } };
struct Sinh : Costly<8> { static constexpr std::string_view name = "sinh";
    template <class T> T operator()(T x) const { return sinh(x); } };
struct Cosh : Costly<8> { static constexpr std::string_view name = "cosh";
    template <class T> T operator()(T x) const { return cosh(x); } };
struct Tanh : Costly<8> { static constexpr std::string_view name = "tanh";
    template <class T> T operator()(T x) const { return tanh(x); } };
struct Asinh : Costly<8> { static constexpr std::string_view name = "asinh";
    template <class T> T operator()(T x) const { return asinh(x); } };
struct Acosh : Costly<8> { static constexpr std::string_view name = "acosh";
    template <class T> T operator()(T x) const { return acosh(x); } };
struct Atanh : Costly<8> { static constexpr std::string_view name = "atanh";
    template <class T> T operator()(T x) const { return atanh(x); } };
struct Floor : Real { static constexpr std::string_view name = "floor";
    template <class T> T operator()(T x) const { return floor(x); } };
struct Ceil : Real { static constexpr std::string_view name = "ceil";
    template <class T> T operator()(T x) const { return ceil(x); } };
struct Trunc : Real { static constexpr std::string_view name = "trunc";
    template <class T> T operator()(T x) const { return trunc(x); } };
// Halves go to the even neighbour, as in MindSpore, numpy and IEEE 754.
struct Round : Real { static constexpr std::string_view name = "round_to_even";
    template <class T> T operator()(T x) const { return rint(x); } };
struct Frac : Real { static constexpr std::string_view name = "frac";
    template <class T> T operator()(T x) const { return x - trunc(x); } };
struct Deg2rad : Real { static constexpr std::string_view name = "deg2rad";
    template <class T> T operator()(T x) const { return x * T(0.017453292519943295769); } };
struct Rad2deg : Real { static constexpr std::string_view name = "rad2deg";
    template <class T> T operator()(T x) const { return x * T(57.295779513082320877); } };
// The angle from the nearest zero of sin(pi x) is x minus a whole number, which is exact; the sine changes sign at
// every zero.
struct Sinc : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "sinc";
    template <class T> T operator()(T x) const {
        T n = rint(x), half = n * T(0.5), s = sin((x - n) * T(3.14159265358979323846));
        s = select(rint(half) == half, s, -s);
        return select(x == T(0), T(1), s / (x * T(3.14159265358979323846))); } };
struct NanToNum : Costly<0, Fuses::never> { static constexpr std::string_view name = "nan_to_num";
    template <class T> T operator()(T x, T nan, T posinf, T neginf) const {
        constexpr double inf = std::numeric_limits<double>::infinity();
        T bounded = select(x == T(inf), posinf, select(x == T(-inf), neginf, x));
        return select(x != x, nan, bounded); } };

struct Pow : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "pow";
    template <class T> T operator()(T a, T b) const { return pow(a, b); } };
struct Atan2 : Costly<12, Fuses::single> { static constexpr std::string_view name = "atan2";
    template <class T> T operator()(T y, T x) const { return atan2(y, x); } };
struct Hypot : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "hypot";
    template <class T> T operator()(T a, T b) const { return hypot(a, b); } };
// The sign of a NaN depends on the instructions that made it.
struct Copysign : Real { static constexpr std::string_view name = "copysign";
    template <class T> T operator()(T a, T b) const { return copysign(a, select(b == b, b, T(1))); } };
struct Fmod : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "fmod";
    template <class T> T operator()(T a, T b) const { return fmod(a, b); } };
// The remainder has the sign of the divisor. fmod is exact, a - floor(a / b) * b is not.
struct Remainder : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "remainder";
    template <class T> T operator()(T a, T b) const {
        T r = fmod(a, b);
        return select((r != T(0)) & ((r < T(0)) != (b < T(0))), r + b, r); } };
// floor(a / b) would round a quotient just below an integer up to it; a - remainder is an exact multiple of b.
struct FloorDivide : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "floor_divide";
    template <class T> T operator()(T a, T b) const {
        T r = fmod(a, b);
        T q = (a - r) / b;
        T lowered = select((r != T(0)) & ((r < T(0)) != (b < T(0))), q - T(1), q);
        T whole = rint(lowered);
        return select(b == T(0), a / b, select(lowered == T(0), copysign(T(0), a / b), whole)); } };
struct TruncateDiv : Costly<16, Fuses::by_loop> { static constexpr std::string_view name = "truncate_div";
    template <class T> T operator()(T a, T b) const { return trunc(a / b); } };
struct Gcd : Integer { static constexpr std::string_view name = "gcd";
    template <class T> T operator()(T a, T b) const { return gcd(a, b); } };
struct Lcm : Integer { static constexpr std::string_view name = "lcm";
    template <class T> T operator()(T a, T b) const { return lcm(a, b); } };
// log(e^a + e^b) with the larger taken out, so that nothing overflows; equal infinities would give inf - inf.
struct Logaddexp : Costly<8> { static constexpr std::string_view name = "logaddexp";
    template <class T> T operator()(T a, T b) const {
        T top = larger(a, b);
        return select((a == b) & (abs(a) == T(std::numeric_limits<double>::infinity())), a,
                      top + log1p(exp(-abs(a - b)))); } };
struct Logaddexp2 : Costly<8> { static constexpr std::string_view name = "logaddexp2";
    template <class T> T operator()(T a, T b) const {
        T top = larger(a, b);
        return select((a == b) & (abs(a) == T(std::numeric_limits<double>::infinity())), a,
                      top + log1p(exp2(-abs(a - b))) * T(1.4426950408889634074)); } };
// 0 where x is 0, even if log(y) is not finite.
struct Xlogy : Costly<8> { static constexpr std::string_view name = "xlogy";
    template <class T> T operator()(T x, T y) const { return select((x == T(0)) & (y == y), T(0), x * log(y)); } };
struct Xdivy : Real { static constexpr std::string_view name = "xdivy";
    template <class T> T operator()(T x, T y) const { return select((x == T(0)) & (y == y), T(0), x / y); } };
struct Heaviside : Real { static constexpr std::string_view name = "heaviside";
    template <class T> T operator()(T x, T at_zero) const {
        return select(x == T(0), at_zero, select(x > T(0), T(1), select(x != x, x, T(0)))); } };
struct Lerp : Real { static constexpr std::string_view name = "lerp";
    // From the nearer end, so that weight 1 gives exactly b.
    template <class T> T operator()(T a, T b, T weight) const {
        return select(weight < T(0.5), a + weight * (b - a), b - (b - a) * (T(1) - weight)); } };
struct Addcmul : Real { static constexpr std::string_view name = "addcmul";
    template <class T> T operator()(T x, T a, T b, T value) const { return x + value * a * b; } };
struct Addcdiv : Real { static constexpr std::string_view name = "addcdiv";
    template <class T> T operator()(T x, T a, T b, T value) const { return x + value * (a / b); } };
// The squared difference, halved, up to delta, and a line of the same slope beyond: both are m (d - m / 2) with the
// lesser of d and delta for m.
struct HuberElement : Real { static constexpr std::string_view name = "huber_element";
    template <class T> T operator()(T x, T target, T delta, T scale) const {
        T d = abs(x - target), m = select(d < delta, d, delta);
        return m * (d - T(0.5) * m) * scale; } };
// The quotient is a true one: the product with a rounded reciprocal would take some numbers to the other neighbour, and
// ONNX demands the nearest step of x / scale, halves to the even one.
struct FakeQuantizeElement : Real { static constexpr std::string_view name = "fake_quantize_element";
    template <class T> T operator()(T x, T scale, T zero, T least, T most) const {
        return (smaller(larger(rint(x / scale) + zero, least), most) - zero) * scale; } };
// clang-format on

using CheapMath = Formulas<Add, Sub, Mul, Div, Maximum, Minimum, Clamp, Fmax, Fmin, Abs, Neg, Square, Sign, Sqrt, Rsqrt,
                           Reciprocal, Floor, Ceil, Trunc, Round, Frac, Deg2rad, Rad2deg, NanToNum, Copysign, Lerp,
                           Addcmul, Addcdiv, Heaviside, Xdivy, HuberElement, FakeQuantizeElement>;
using Exponentials = Formulas<Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Logaddexp, Logaddexp2, Xlogy, Pow>;
using Trigonometry = Formulas<Sin, Cos, Tan, Asin, Acos, Atan, Atan2, Sinc>;
using Hyperbolics = Formulas<Sinh, Cosh, Tanh, Asinh, Acosh, Atanh>;
using Divisions = Formulas<Hypot, Fmod, Remainder, FloorDivide, TruncateDiv>;
// Formulas that integers have as well, and those that only integers have; too irregular for packs.
using IntegerDivisions = Formulas<Fmod, Remainder, FloorDivide, TruncateDiv, Pow, Gcd, Lcm>;

}  // namespace lunaria::formula
