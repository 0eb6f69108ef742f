// Formulas work with number types whose values are not known: nothing in them may branch on a value.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/formulas_all.h"

namespace lunaria {

// Counts the operations of an expression instead of computing it.
namespace counting {

struct Mask {
    int operations = 0;
};
struct Number {
    int operations = 0;
    Number() = default;
    explicit Number(double) {}
    static Number after(int n) {
        Number x;
        x.operations = n;
        return x;
    }
};

// clang-format off
inline Number of(Number a, Number b) { return Number::after(a.operations + b.operations + 1); }
inline Mask test(Number a, Number b) { return {a.operations + b.operations + 1}; }
inline Mask both(Mask a, Mask b) { return {a.operations + b.operations + 1}; }
inline Number operator+(Number a, Number b) { return of(a, b); }
inline Number operator-(Number a, Number b) { return of(a, b); }
inline Number operator*(Number a, Number b) { return of(a, b); }
inline Number operator/(Number a, Number b) { return of(a, b); }
inline Number operator-(Number a) { return Number::after(a.operations + 1); }
inline Mask operator<(Number a, Number b) { return test(a, b); }
inline Mask operator<=(Number a, Number b) { return test(a, b); }
inline Mask operator>(Number a, Number b) { return test(a, b); }
inline Mask operator>=(Number a, Number b) { return test(a, b); }
inline Mask operator==(Number a, Number b) { return test(a, b); }
inline Mask operator!=(Number a, Number b) { return test(a, b); }
inline Mask operator&(Mask a, Mask b) { return both(a, b); }
inline Mask operator|(Mask a, Mask b) { return both(a, b); }
inline Mask operator!=(Mask a, Mask b) { return both(a, b); }
inline Number select(Mask m, Number a, Number b) { return Number::after(m.operations + a.operations + b.operations + 1); }
inline Number abs(Number a) { return -a; }
inline Number sqrt(Number a) { return -a; }
inline Number floor(Number a) { return -a; }
inline Number ceil(Number a) { return -a; }
inline Number trunc(Number a) { return -a; }
inline Number rint(Number a) { return -a; }
inline Number exp(Number a) { return -a; }
inline Number exp2(Number a) { return -a; }
inline Number expm1(Number a) { return -a; }
inline Number expm1_negative(Number a) { return -a; }
inline Number log(Number a) { return -a; }
inline Number log2(Number a) { return -a; }
inline Number log10(Number a) { return -a; }
inline Number log1p(Number a) { return -a; }
inline Number sin(Number a) { return -a; }
inline Number cos(Number a) { return -a; }
inline Number tan(Number a) { return -a; }
inline Number asin(Number a) { return -a; }
inline Number acos(Number a) { return -a; }
inline Number atan(Number a) { return -a; }
inline Number sinh(Number a) { return -a; }
inline Number cosh(Number a) { return -a; }
inline Number tanh(Number a) { return -a; }
inline Number asinh(Number a) { return -a; }
inline Number acosh(Number a) { return -a; }
inline Number atanh(Number a) { return -a; }
inline Number erf(Number a) { return -a; }
inline Number erfinv(Number a) { return -a; }
inline Number erfcx(Number a) { return -a; }
inline Number ndtr(Number a) { return -a; }
inline Number ndtri(Number a) { return -a; }
inline Number log_ndtr(Number a) { return -a; }
inline Number digamma(Number a) { return -a; }
inline Number trigamma(Number a) { return -a; }
inline Number erfc(Number a) { return -a; }
inline Number normal_cdf(Number a) { return -a; }
inline Number lgamma(Number a) { return -a; }
inline Number pow(Number a, Number b) { return of(a, b); }
inline Number atan2(Number a, Number b) { return of(a, b); }
inline Number fmod(Number a, Number b) { return of(a, b); }
inline Number hypot(Number a, Number b) { return of(a, b); }
inline Number copysign(Number a, Number b) { return of(a, b); }
// clang-format on

}  // namespace counting

namespace {

using counting::Number;

template <class F>
int operations() {
    F f;
    Number x;
    if constexpr (requires { f(x); })
        return f(x).operations;
    else if constexpr (requires { f(x, x); })
        return f(x, x).operations;
    else if constexpr (requires { f(x, x, x); })
        return f(x, x, x).operations;
    else if constexpr (requires { f(x, x, x, x); })
        return f(x, x, x, x).operations;
    else
        return f(x, x, x, x, x).operations;
}

template <class F>
void expect_work_of() {
    EXPECT_GT(operations<F>(), 0) << F::name;
}
template <class... F>
void expect_work(formula::Formulas<F...>) {
    (expect_work_of<F>(), ...);
}

TEST(Formulas, CountTheirOperationsWithoutValues) {
    expect_work(formula::RealFormulas{});
    EXPECT_EQ(operations<formula::Add>(), 1);
    EXPECT_EQ(operations<formula::Addcmul>(), 3);
}

TEST(Formulas, AgreeWithKnownValuesInDoublePrecision) {
    EXPECT_NEAR(formula::Digamma{}(1.0), -0.57721566490153286, 1e-13);
    EXPECT_NEAR(formula::Digamma{}(-0.5), 0.03648997397857652, 1e-13);
    EXPECT_NEAR(formula::Erfinv{}(0.5), 0.47693627620446987, 1e-15);
    EXPECT_NEAR(formula::Erfinv{}(-0.999), -2.3267537655135247, 1e-12);
    EXPECT_NEAR(formula::Mish{}(1.0), 0.86509838826731034, 1e-15);
    EXPECT_NEAR(formula::Gelu{}(-3.0), -0.00404969409489, 1e-13);
    EXPECT_EQ(formula::Sign{}(-0.5), -1.0);
    EXPECT_TRUE(std::isnan(formula::Erfinv{}(1.5)));
}

}  // namespace
}  // namespace lunaria
