// The functions of vectors on a vector of one lane, against libm: as a processor without fused multiply-adds computes
// them, one with them, and one with the estimates and tables of AVX-512, whatever this one is.
#include "core/ops/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/ops/functions_special.h"

namespace lunaria {

namespace one_lane {

enum class Level { plain, fused, avx512 };

struct Mask {
    bool v;
    friend Mask operator&(Mask a, Mask b) { return {a.v && b.v}; }
    friend Mask operator|(Mask a, Mask b) { return {a.v || b.v}; }
    friend Mask operator!=(Mask a, Mask b) { return {a.v != b.v}; }
    friend Mask operator!(Mask a) { return {!a.v}; }
};

template <class T, Level L>
struct One {
    using Lane = T;
    T v = 0;
    One() = default;
    explicit One(double x) : v(static_cast<T>(x)) {}
    friend One operator+(One a, One b) { return One(a.v + b.v); }
    friend One operator-(One a, One b) { return One(a.v - b.v); }
    friend One operator*(One a, One b) { return One(a.v * b.v); }
    friend One operator/(One a, One b) { return One(a.v / b.v); }
    friend One operator&(One a, One b) { return One(static_cast<double>(a.v & b.v)); }
    friend One operator-(One a) { return One(-a.v); }
    friend Mask operator==(One a, One b) { return {a.v == b.v}; }
    friend Mask operator!=(One a, One b) { return {a.v != b.v}; }
    friend Mask operator<(One a, One b) { return {a.v < b.v}; }
    friend Mask operator<=(One a, One b) { return {a.v <= b.v}; }
    friend Mask operator>(One a, One b) { return {a.v > b.v}; }
    friend Mask operator>=(One a, One b) { return {a.v >= b.v}; }
};
// Integers that wrap around.
template <class T, Level L>
requires std::is_integral_v<T>
struct One<T, L> {
    using Lane = T;
    using Unsigned = std::make_unsigned_t<T>;
    T v = 0;
    One() = default;
    explicit One(double x) : v(static_cast<T>(x)) {}
    static One of(Unsigned x) {
        One y;
        y.v = static_cast<T>(x);
        return y;
    }
    friend One operator+(One a, One b) { return of(static_cast<Unsigned>(a.v) + static_cast<Unsigned>(b.v)); }
    friend One operator-(One a, One b) { return of(static_cast<Unsigned>(a.v) - static_cast<Unsigned>(b.v)); }
    friend One operator&(One a, One b) { return of(static_cast<Unsigned>(a.v & b.v)); }
    friend Mask operator!=(One a, One b) { return {a.v != b.v}; }
    friend One shift_left(One x, int count) { return of(static_cast<Unsigned>(x.v) << count); }
    friend One shift_right(One x, int count) { return of(static_cast<Unsigned>(x.v) >> count); }
};

template <class T, Level L>
One<T, L> one(T x) {
    One<T, L> y;
    y.v = x;
    return y;
}

// clang-format off
template <class T, Level L> One<T, L> select(Mask m, One<T, L> a, One<T, L> b) { return m.v ? a : b; }
template <class T, Level L> One<T, L> abs(One<T, L> x) { return one<T, L>(std::fabs(x.v)); }
template <class T, Level L> One<T, L> rint(One<T, L> x) { return one<T, L>(std::nearbyint(x.v)); }
template <class T, Level L> One<T, L> trunc(One<T, L> x) { return one<T, L>(std::trunc(x.v)); }
template <class T, Level L> One<T, L> exact_sqrt(One<T, L> x) { return one<T, L>(std::sqrt(x.v)); }
template <class T, Level L> One<T, L> copysign(One<T, L> x, One<T, L> s) { return one<T, L>(std::copysign(x.v, s.v)); }
template <class T, Level L> One<T, L> at_least(One<T, L> x, double l) { return select(One<T, L>(l) > x, One<T, L>(l), x); }
template <class T, Level L> One<T, L> at_most(One<T, L> x, double l) { return select(One<T, L>(l) < x, One<T, L>(l), x); }
template <class T, Level L> bool fuses(One<T, L>) { return L != Level::plain; }
template <class T, Level L> One<T, L> fma(One<T, L> a, One<T, L> b, One<T, L> c) {
    return L == Level::plain ? a * b + c : one<T, L>(std::fma(a.v, b.v, c.v)); }
template <class T, Level L> One<T, L> fnma(One<T, L> a, One<T, L> b, One<T, L> c) { return fma(-a, b, c); }
template <Level L> One<int32_t, L> bits_of(One<float, L> x) { return one<int32_t, L>(std::bit_cast<int32_t>(x.v)); }
template <Level L> One<int64_t, L> bits_of(One<double, L> x) { return one<int64_t, L>(std::bit_cast<int64_t>(x.v)); }
template <Level L> One<float, L> float_of(One<int32_t, L> x) { return one<float, L>(std::bit_cast<float>(x.v)); }
template <Level L> One<double, L> float_of(One<int64_t, L> x) { return one<double, L>(std::bit_cast<double>(x.v)); }
template <class P, class Slow> P replace_where(P fast, Mask mask, Slow slow) { return mask.v ? slow() : fast; }
template <float (*F)(float), double (*D)(double), class T, Level L> One<T, L> each(One<T, L> x) {
    if constexpr (sizeof(T) == 4) return one<T, L>(F(x.v)); else return one<T, L>(D(x.v)); }
template <float (*F)(float, float), double (*D)(double, double), class T, Level L> One<T, L> each(One<T, L> x, One<T, L> y) {
    if constexpr (sizeof(T) == 4) return one<T, L>(F(x.v, y.v)); else return one<T, L>(D(x.v, y.v)); }
template <class F, Level L, class... X> One<float, L> in_doubles(F f, One<float, L> x, X... more) {
    return One<float, L>(f(One<double, L>(x.v), One<double, L>(more.v)...).v); }
// clang-format on

using Wide = One<float, Level::avx512>;
template <class T>
bool has_avx512(One<T, Level::avx512>) {
    return true;
}
// What processors promise: 14 bits of the true value.
float estimate(double x) { return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & 0xfffffe00u); }
Wide rcp14(Wide x) { return Wide(std::isfinite(x.v) && x.v != 0 ? estimate(1.0 / x.v) : 1 / x.v); }
Wide rsqrt14(Wide x) {
    return Wide(std::isfinite(x.v) && x.v > 0 ? estimate(1 / std::sqrt(double{x.v})) : 1 / std::sqrt(x.v));
}
template <class T>
One<T, Level::avx512> scalef(One<T, Level::avx512> x, One<T, Level::avx512> n) {
    const double power = std::clamp<double>(std::floor(n.v), -3000, 3000);
    return one<T, Level::avx512>(std::isnan(n.v) ? n.v : std::ldexp(x.v, static_cast<int>(power)));
}
Wide getexp(Wide x) { return Wide(std::logb(x.v)); }
Wide getmant(Wide x) {
    const float a = std::fabs(x.v);
    return Wide(std::isnan(a) ? a : std::isinf(a) || a == 0 ? 1.0f : static_cast<float>(std::ldexp(a, -std::ilogb(a))));
}
// One code of four bits for each kind of x.
template <int Table>
Wide fixup(Wide y, Wide x) {
    const float v = x.v;
    const int kind = std::isnan(v) ? 0 : v == 0 ? 2 : v == 1 ? 3 : std::isinf(v) ? (v < 0 ? 4 : 5) : v < 0 ? 6 : 7;
    switch (Table >> (4 * kind) & 15) {
        case 0:
            return y;
        case 3:
            return Wide(std::nan(""));
        case 4:
            return Wide(-HUGE_VAL);
        case 5:
            return Wide(HUGE_VAL);
        default:
            return x;
    }
}
Wide lookup(One<int32_t, Level::avx512> place, const float (&c)[32]) { return Wide(c[place.v & 31]); }

}  // namespace one_lane

namespace {

using one_lane::Level;
using one_lane::One;

// Numbers at which functions change their behaviour, and random ones of many magnitudes.
std::vector<float> arguments() {
    std::vector<float> v;
    for (double x :
         {0.0, HUGE_VAL, 1.0,  0.5,  2.0,  1e-45, 1e-40, 1.2e-38, 1e-20,  1e-8,    0.99999, 1.00001, 2.5,  5.7,
          9.8, 10.0,     20.5, 31.4, 88.5, 88.9,  104.0, 110.0,   9999.0, 10001.0, 1e5,     1e10,    1e30, 3.4e38}) {
        v.push_back(static_cast<float>(x));
        v.push_back(static_cast<float>(-x));
    }
    v.push_back(std::nanf(""));
    std::mt19937 random(1);
    std::uniform_real_distribution<double> exponent(-6, 3), plain(-4, 4);
    for (int i = 0; i < 20000; ++i) {
        v.push_back(static_cast<float>(plain(random)));
        v.push_back(static_cast<float>((random() % 2 ? 1 : -1) * std::pow(10.0, exponent(random))));
    }
    return v;
}

// Error in units in the last place of a float.
double ulps(double want, float got) {
    const auto rounded = static_cast<float>(want);
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : HUGE_VAL;
    if (rounded == got) return want == 0 && std::signbit(want) != std::signbit(got) ? HUGE_VAL : 0;
    if (std::isinf(rounded) || std::isinf(got)) return HUGE_VAL;
    return std::fabs(want - got) / std::ldexp(1.0, std::max(std::ilogb(want) - 23, -149));
}

template <Level L, class F>
void expect_close(const char* name, F f, double (*libm)(double), double limit) {
    double worst = 0, at = 0;
    for (float x : arguments()) {
        const double e = ulps(libm(x), f(one_lane::one<float, L>(x)).v);
        if (e > worst) worst = e, at = x;
    }
    EXPECT_LE(worst, limit) << name << " at " << at << " with level " << static_cast<int>(L);
}

template <Level L>
void expect_all_close() {
    expect_close<L>(
        "sqrt", [](auto x) { return formula::sqrt(x); }, std::sqrt, 0.7);
    expect_close<L>(
        "exp", [](auto x) { return formula::exp(x); }, std::exp, 1.5);
    expect_close<L>(
        "exp2", [](auto x) { return formula::exp2(x); }, std::exp2, 1.5);
    expect_close<L>(
        "expm1", [](auto x) { return formula::expm1(x); }, std::expm1, 2);
    expect_close<L>(
        "log", [](auto x) { return formula::log(x); }, std::log, 1.5);
    expect_close<L>(
        "log2", [](auto x) { return formula::log2(x); }, std::log2, 2.5);
    expect_close<L>(
        "log10", [](auto x) { return formula::log10(x); }, std::log10, 2.5);
    expect_close<L>(
        "log1p", [](auto x) { return formula::log1p(x); }, std::log1p, 2.5);
    expect_close<L>(
        "sin", [](auto x) { return formula::sin(x); }, std::sin, 2);
    expect_close<L>(
        "cos", [](auto x) { return formula::cos(x); }, std::cos, 2);
    expect_close<L>(
        "tan", [](auto x) { return formula::tan(x); }, std::tan, 3);
    expect_close<L>(
        "asin", [](auto x) { return formula::asin(x); }, std::asin, 2.5);
    expect_close<L>(
        "acos", [](auto x) { return formula::acos(x); }, std::acos, 2.5);
    expect_close<L>(
        "atan", [](auto x) { return formula::atan(x); }, std::atan, 2);
    expect_close<L>(
        "sinh", [](auto x) { return formula::sinh(x); }, std::sinh, 3);
    expect_close<L>(
        "cosh", [](auto x) { return formula::cosh(x); }, std::cosh, 2.5);
    expect_close<L>(
        "tanh", [](auto x) { return formula::tanh(x); }, std::tanh, 3);
    expect_close<L>(
        "asinh", [](auto x) { return formula::asinh(x); }, std::asinh, 4);
    expect_close<L>(
        "acosh", [](auto x) { return formula::acosh(x); }, std::acosh, 4);
    expect_close<L>(
        "atanh", [](auto x) { return formula::atanh(x); }, std::atanh, 4);
    expect_close<L>(
        "erf", [](auto x) { return formula::erf(x); }, std::erf, 2.5);
    expect_close<L>(
        "erfc", [](auto x) { return formula::erfc(x); }, std::erfc, 5);
    expect_close<L>(
        "lgamma", [](auto x) { return formula::lgamma(x); }, libm::lgamma, 2);
    const auto cubed = [](double x) { return std::pow(x, 3.0); };
    expect_close<L>(
        "pow 3", [](auto x) { return formula::pow(x, decltype(x)(3)); }, cubed, 1.5);
    const auto raised = [](double x) { return std::pow(x, static_cast<double>(2.7f)); };
    expect_close<L>(
        "pow 2.7", [](auto x) { return formula::pow(x, decltype(x)(2.7)); }, raised, 1);
    const auto rest = [](double x) { return std::fmod(x, static_cast<double>(0.7f)); };
    expect_close<L>(
        "fmod", [](auto x) { return formula::fmod(x, decltype(x)(0.7)); }, rest, 0);
}

TEST(Functions, AreWithinTheirAccuracyWithAndWithoutFusedMultiplyAdds) {
    expect_all_close<Level::plain>();
    expect_all_close<Level::fused>();
}
TEST(Functions, AreWithinTheirAccuracyByTheInstructionsOfAvx512) { expect_all_close<Level::avx512>(); }

}  // namespace
}  // namespace lunaria
