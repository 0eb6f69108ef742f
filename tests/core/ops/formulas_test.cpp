// Formulas work with number types whose values are not known: nothing in them may branch on a value.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/formula_lists.h"

namespace lunaria {

// Counts the operations of an expression instead of computing it: a vector type as core/ops/functions.h asks for.
namespace counting {

struct Mask {
    int operations = 0;
    friend Mask operator&(Mask a, Mask b) { return {a.operations + b.operations + 1}; }
    friend Mask operator|(Mask a, Mask b) { return a & b; }
    friend Mask operator!=(Mask a, Mask b) { return a & b; }
    friend Mask operator!(Mask a) { return {a.operations + 1}; }
};
template <class T>
struct Number {
    using Lane = T;
    int operations = 0;
    Number() = default;
    explicit Number(double) {}
    static Number after(int n) {
        Number x;
        x.operations = n;
        return x;
    }
    friend Number operator+(Number a, Number b) { return after(a.operations + b.operations + 1); }
    friend Number operator-(Number a, Number b) { return a + b; }
    friend Number operator*(Number a, Number b) { return a + b; }
    friend Number operator/(Number a, Number b) { return a + b; }
    friend Number operator&(Number a, Number b) { return a + b; }
    friend Number operator-(Number a) { return after(a.operations + 1); }
    friend Mask operator<(Number a, Number b) { return {(a + b).operations}; }
    friend Mask operator<=(Number a, Number b) { return a < b; }
    friend Mask operator>(Number a, Number b) { return a < b; }
    friend Mask operator>=(Number a, Number b) { return a < b; }
    friend Mask operator==(Number a, Number b) { return a < b; }
    friend Mask operator!=(Number a, Number b) { return a < b; }
};

// clang-format off
template <class T> Number<T> select(Mask m, Number<T> a, Number<T> b) {
    return Number<T>::after(m.operations + a.operations + b.operations + 1); }
template <class T> Number<T> abs(Number<T> a) { return -a; }
template <class T> Number<T> exact_sqrt(Number<T> a) { return -a; }
template <class T> Number<T> floor(Number<T> a) { return -a; }
template <class T> Number<T> ceil(Number<T> a) { return -a; }
template <class T> Number<T> trunc(Number<T> a) { return -a; }
template <class T> Number<T> rint(Number<T> a) { return -a; }
template <class T> Number<T> copysign(Number<T> a, Number<T> b) { return a + b; }
template <class T> Number<T> at_least(Number<T> a, double) { return -a; }
template <class T> Number<T> at_most(Number<T> a, double) { return -a; }
template <class T> bool fuses(Number<T>) { return true; }
template <class T> Number<T> fma(Number<T> a, Number<T> b, Number<T> c) {
    return Number<T>::after(a.operations + b.operations + c.operations + 1); }
template <class T> Number<T> fnma(Number<T> a, Number<T> b, Number<T> c) { return fma(a, b, c); }
inline Number<int32_t> bits_of(Number<float> a) { return Number<int32_t>::after(a.operations); }
inline Number<int64_t> bits_of(Number<double> a) { return Number<int64_t>::after(a.operations); }
inline Number<float> float_of(Number<int32_t> a) { return Number<float>::after(a.operations); }
inline Number<double> float_of(Number<int64_t> a) { return Number<double>::after(a.operations); }
template <class T> Number<T> shift_left(Number<T> a, int) { return -a; }
template <class T> Number<T> shift_right(Number<T> a, int) { return -a; }
template <class T, class Slow> Number<T> replace_where(Number<T> fast, Mask mask, Slow slow) {
    return select(mask, slow(), fast); }
template <float (*)(float), double (*)(double), class T> Number<T> each(Number<T> a) { return -a; }
template <float (*)(float, float), double (*)(double, double), class T> Number<T> each(Number<T> a, Number<T> b) { return a + b; }
template <class F, class... X> Number<float> in_doubles(F f, X... x) {
    return Number<float>::after(f(Number<double>::after(x.operations)...).operations); }
// clang-format on

}  // namespace counting

namespace {

template <class F, class T>
int operations() {
    F f;
    counting::Number<T> x;
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
    EXPECT_GT((operations<F, float>()), 0) << F::name;
    EXPECT_GT((operations<F, double>()), 0) << F::name;
}
template <class... F>
void expect_work(formula::Formulas<F...>) {
    (expect_work_of<F>(), ...);
}

TEST(Formulas, CountTheirOperationsWithoutValues) {
    expect_work(formula::FloatFormulas{});
    EXPECT_EQ((operations<formula::Add, float>()), 1);
    EXPECT_EQ((operations<formula::Addcmul, float>()), 2);
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
