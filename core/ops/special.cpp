// Operators: special functions of mathematics that are computed number by number (backends/cpu/special.cpp): Bessel
// functions, gamma and beta functions and Hurwitz' zeta function.
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

// `F` is a lambda without captures, the derivative of x and the function's own value.
template <class F>
Op& function_of_one(Registry& ops, SignatureText text, const char* doc, F) {
    static_assert(std::is_empty_v<F>);
    return ops.add(text)
        .doc(doc)
        .infer([](const Call& c) -> Types {
            return {{c.dtype, c.shape(0)}};
        })
        .grad([](const GradRule& g) -> Grads { return {g.dout * F{}(g.in(0), g.out)}; })
        .batched(batch::elementwise)
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, chapter 9");
}

// f(x) / x; at 0, its `limit`.
Expr over(const Expr& f, const Expr& x, double limit) {
    const Expr zero = call("equal", {x, 0.0});
    return where(zero, limit, f / where(zero, 1.0, x));
}

void add_bessel_ops(Registry& ops) {
    function_of_one(
        ops, "bessel_j0(x/input: float)",
        "Bessel function of the first kind of order 0. Next to its zeros within 4 units in the last place of "
        "sqrt(2 / (pi x)), as the others that have zeros are.",
        [](const Expr& x, const Expr&) { return -fn("bessel_j1", x); })
        .example("bessel_j0(tensor{0.0, 1.0})", "tensor{1.0, 0.7652}")
        .sample("f32[2,3]")
        .sample("f32[5]:(-9,9)");
    function_of_one(ops, "bessel_j1(x/input: float)", "Bessel function of the first kind of order 1.",
                    [](const Expr& x, const Expr& y) { return fn("bessel_j0", x) - over(y, x, 0.5); })
        .example("bessel_j1(tensor{0.0, 1.0})", "tensor{0.0, 0.4401}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-9,-1)");
    function_of_one(ops, "bessel_y0(x/input: float)",
                    "Bessel function of the second kind of order 0; NaN of negative numbers.",
                    [](const Expr& x, const Expr&) { return -fn("bessel_y1", x); })
        .example("bessel_y0(tensor{1.0, 2.0})", "tensor{0.0883, 0.5104}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function_of_one(ops, "bessel_y1(x/input: float)",
                    "Bessel function of the second kind of order 1; NaN of negative numbers.",
                    [](const Expr& x, const Expr& y) { return fn("bessel_y0", x) - y / x; })
        .example("bessel_y1(tensor{1.0, 2.0})", "tensor{-0.7812, -0.107}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function_of_one(ops, "bessel_i0(x/input: float)", "Modified Bessel function of the first kind of order 0.",
                    [](const Expr& x, const Expr&) { return fn("bessel_i1", x); })
        .alias("i0")
        .example("bessel_i0(tensor{0.0, 1.0})", "tensor{1.0, 1.2661}")
        .sample("f32[2,3]")
        .sample("f32[5]:(-3,3)");
    function_of_one(ops, "bessel_i1(x/input: float)", "Modified Bessel function of the first kind of order 1.",
                    [](const Expr& x, const Expr& y) { return fn("bessel_i0", x) - over(y, x, 0.5); })
        .example("bessel_i1(tensor{0.0, 1.0})", "tensor{0.0, 0.5652}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-3,-1)");
    function_of_one(ops, "bessel_i0e(x/input: float)", "Scaled modified Bessel function, bessel_i0(x) e^-|x|.",
                    [](const Expr& x, const Expr& y) { return fn("bessel_i1e", x) - fn("sign", x) * y; })
        .example("bessel_i0e(tensor{0.0, 1.0})", "tensor{1.0, 0.4658}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-9,-1)");
    function_of_one(
        ops, "bessel_i1e(x/input: float)", "Scaled modified Bessel function, bessel_i1(x) e^-|x|.",
        [](const Expr& x, const Expr& y) { return fn("bessel_i0e", x) - fn("sign", x) * y - over(y, x, 0.5); })
        .example("bessel_i1e(tensor{0.0, 1.0})", "tensor{0.0, 0.2079}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-9,-1)");
    function_of_one(ops, "bessel_k0(x/input: float)",
                    "Modified Bessel function of the second kind of order 0; NaN of negative numbers.",
                    [](const Expr& x, const Expr&) { return -fn("bessel_k1", x); })
        .example("bessel_k0(tensor{1.0, 2.0})", "tensor{0.421, 0.1139}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,4)");
    function_of_one(ops, "bessel_k1(x/input: float)",
                    "Modified Bessel function of the second kind of order 1; NaN of negative numbers.",
                    [](const Expr& x, const Expr& y) { return -fn("bessel_k0", x) - y / x; })
        .example("bessel_k1(tensor{1.0, 2.0})", "tensor{0.6019, 0.1399}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,4)");
    function_of_one(ops, "bessel_k0e(x/input: float)", "Scaled modified Bessel function, bessel_k0(x) e^x.",
                    [](const Expr& x, const Expr& y) { return y - fn("bessel_k1e", x); })
        .example("bessel_k0e(tensor{1.0, 2.0})", "tensor{1.1445, 0.8416}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function_of_one(ops, "bessel_k1e(x/input: float)", "Scaled modified Bessel function, bessel_k1(x) e^x.",
                    [](const Expr& x, const Expr& y) { return y - fn("bessel_k0e", x) - y / x; })
        .example("bessel_k1e(tensor{1.0, 2.0})", "tensor{1.6362, 1.0335}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
}

Op& function_of_two(Registry& ops, SignatureText text, const char* doc) {
    return ops.add(text).doc(doc).infer(broadcast_all).batched(batch::elementwise);
}

// Operand i in f64: the slopes below are small differences of large logarithms.
Expr twice(const GradRule& g, size_t i) {
    const Expr x = g.in(i);
    return g.args[i].is_tensor() || g.args[i].is_node() ? x.cast(DType::f64) : x;
}
Expr exp_of(const GradRule& g, const Expr& logarithm) { return fn("exp", logarithm).cast(g.out.dtype()); }
// exp(logarithm) over a share whose logarithm is g.out; infinite where the share is 0.
Expr over_share(const GradRule& g, const Expr& logarithm) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    return where(call("equal", {g.out, -inf}), inf, exp_of(g, logarithm - g.out.cast(DType::f64)));
}
// A share times the slope of its logarithm, which may be infinite where the share is 0.
Expr of_share(const GradRule& g, const Expr& slope) {
    const Expr none = call("equal", {g.out, 0.0});
    return g.dout * where(none, 0.0, g.out * slope);
}

// log of the density of the gamma distribution with shape a, which is the slope of igamma by x.
Expr log_gamma_density(const GradRule& g) {
    const Expr a = twice(g, 0), x = twice(g, 1);
    return call("xlogy", {a - 1.0, x}) - x - fn("lgamma", a);
}

Grads igamma_grad(const GradRule& g, bool upper) {
    const double sign = upper ? -1 : 1;
    return {cotangent(g, 0,
                      [&] {
                          return of_share(g, call("log_igamma_slope", {g.in(0), g.in(1), {"upper", Value(upper)}}));
                      }),
            cotangent(g, 1, [&] { return g.dout * exp_of(g, log_gamma_density(g)) * sign; })};
}
Grads log_igamma_grad(const GradRule& g) {
    const bool upper = g.boolean(2);
    return {cotangent(g, 0,
                      [&] {
                          return g.dout * call("log_igamma_slope", {g.in(0), g.in(1), {"upper", Value(upper)}});
                      }),
            cotangent(g, 1, [&] { return g.dout * over_share(g, log_gamma_density(g)) * (upper ? -1.0 : 1.0); }),
            {}};
}

// The same of the beta distribution and betainc.
Expr log_beta_density(const GradRule& g) {
    const Expr a = twice(g, 0), b = twice(g, 1), x = twice(g, 2);
    return call("xlogy", {a - 1.0, x}) + call("xlogy", {b - 1.0, 1.0 - x}) - call("betaln", {a, b});
}
Expr log_beta_slope(const GradRule& g, int64_t by) {
    return call("log_betainc_slope", {g.in(0), g.in(1), g.in(2), {"upper", Value(g.boolean(3))}, {"by", Value(by)}});
}
Grads betainc_grad(const GradRule& g) {
    const double sign = g.boolean(3) ? -1 : 1;
    return {cotangent(g, 0, [&] { return of_share(g, log_beta_slope(g, 0)); }),
            cotangent(g, 1, [&] { return of_share(g, log_beta_slope(g, 1)); }),
            cotangent(g, 2, [&] { return g.dout * exp_of(g, log_beta_density(g)) * sign; }),
            {}};
}
Grads log_betainc_grad(const GradRule& g) {
    const double sign = g.boolean(3) ? -1 : 1;
    return {cotangent(g, 0, [&] { return g.dout * log_beta_slope(g, 0); }),
            cotangent(g, 1, [&] { return g.dout * log_beta_slope(g, 1); }),
            cotangent(g, 2, [&] { return g.dout * over_share(g, log_beta_density(g)) * sign; }),
            {}};
}

void add_beta_ops(Registry& ops) {
    function_of_two(ops, "betaln(a: float, b: float)",
                    "Logarithm of the beta function, within 4 units in the last place of the largest of the logarithms "
                    "that it is a "
                    "sum of.")
        .example("betaln(tensor{1.0, 2.0}, tensor{1.0, 3.0})", "tensor{0.0, -2.4849}")
        .grad([](const GradRule& g) -> Grads {
            auto slope = [&](size_t i) {
                return cotangent(g, i, [&] {
                    const Expr difference = fn("digamma", twice(g, i)) - fn("digamma", twice(g, 0) + twice(g, 1));
                    return g.dout * difference.cast(g.out.dtype());
                });
            };
            return {slope(0), slope(1)};
        })
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 6.2")
        .wide()
        .sample("2, f32[2,3]:(0.5,4)")
        .sample("f32[5]:(0.5,9), 20");
    function_of_two(ops, "betainc(a: float, b: float, x: float, *, upper: bool = false)",
                    "Regularised incomplete beta function I_x(a, b): 0 at x = 0, 1 at x = 1; with upper, 1 less that. "
                    "Within 4 units in the last place of f32, and 32 of f64 times the largest of a, b, 1 / a, 1 / b "
                    "and the logarithm "
                    "of the result.")
        .example("betainc(tensor{1.0, 2.0}, tensor{1.0, 2.0}, tensor{0.5, 0.25})", "tensor{0.5, 0.1562}")
        .grad(betainc_grad)
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5")
        .wide()
        .sample("2, 3, f32[2,3]:(0.1,0.9)")
        .sample("4, 3, f32[5]:(0.1,0.9), upper=true");
    function_of_two(ops, "log_betainc(a: float, b: float, x: float, *, upper: bool = false)",
                    "Logarithm of betainc, also where that is too small to be a number or next to 1.")
        .example("log_betainc(tensor{200.0}, tensor{1.0}, tensor{0.01})", "tensor{-921.034}")
        .grad(log_betainc_grad)
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5")
        .method(false)
        .wide()
        .sample("2, 3, f32[2,3]:(0.1,0.9)")
        .sample("4, 3, f32[5]:(0.1,0.9), upper=true");
    function_of_two(ops, "log_betainc_slope(a: float, b: float, x: float, *, upper: bool = false, by: int = 0)",
                    "Derivative of log_betainc by a (by = 0) or b (by = 1).")
        .example("log_betainc_slope(tensor{1.0}, tensor{1.0}, tensor{0.5})", "tensor{-0.6931}")
        .method(false)
        .refuse_grad("second derivatives of log_betainc by a and b are not known")
        .sample("f32[2,3]:(0.5,4), f32[2,3]:(0.5,4), f32[2,3]:(0.1,0.9)");
}

void add_gamma_ops(Registry& ops) {
    function_of_one(ops, "tgamma(x/input: float)",
                    "Gamma function; NaN of negative whole numbers. Of f64 within 6 units in the last place.",
                    [](const Expr& x, const Expr& y) { return y * fn("digamma", x); })
        .example("tgamma(tensor{0.5, 5.0})", "tensor{1.7725, 24.0}")
        .wide()
        .sample("f32[2,3]:(0.5,4)")
        .sample("f32[5]:(0.5,4)");
    function_of_two(ops, "igamma(input/a: float, other/x: float)",
                    "Regularised lower incomplete gamma function P(a, x): 0 at x = 0, 1 at infinity. Within 4 units in "
                    "the last place of f32, and 8 of f64 times the larger of 1 and the logarithm of the result.")
        .example("igamma(tensor{1.0, 2.0}, tensor{1.0, 1.0})", "tensor{0.6321, 0.2642}")
        .grad([](const GradRule& g) -> Grads { return igamma_grad(g, false); })
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5")
        .wide()
        .sample("2, f32[2,3]:(0.5,4)")
        .sample("1, f32[5]:(0.5,9)");
    function_of_two(ops, "igammac(input/a: float, other/x: float)",
                    "Regularised upper incomplete gamma function Q(a, x) = 1 - igamma(a, x), as accurate as that.")
        .example("igammac(tensor{1.0, 2.0}, tensor{1.0, 1.0})", "tensor{0.3679, 0.7358}")
        .grad([](const GradRule& g) -> Grads { return igamma_grad(g, true); })
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5")
        .wide()
        .sample("2, f32[2,3]:(0.5,4)")
        .sample("1, f32[5]:(0.5,9)");
    function_of_two(
        ops, "log_igamma(a: float, x: float, *, upper: bool = false)",
        "Logarithm of igamma or, with upper, of igammac, also where that is too small to be a number or next to "
        "1.")
        .example("log_igamma(tensor{1.0}, tensor{300.0}, {upper = true})", "tensor{-300.0}")
        .grad(log_igamma_grad)
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5")
        .method(false)
        .wide()
        .sample("2, f32[2,3]:(0.5,4)")
        .sample("4, f32[5]:(1,9), upper=true");
    function_of_two(ops, "log_igamma_slope(a: float, x: float, *, upper: bool = false)",
                    "Derivative of log_igamma by a.")
        .example("log_igamma_slope(tensor{1.0}, tensor{1.0})", "tensor{-0.6831}")
        .method(false)
        .refuse_grad("second derivatives of log_igamma by a are not known")
        .sample("f32[2,3]:(0.5,4), f32[2,3]:(0.5,4)");
    ops.add("mvlgamma(input/x: float, p: int)")
        .doc("Logarithm of the gamma function of p dimensions; every number must be larger than (p - 1) / 2.")
        .example("mvlgamma(tensor{3.0}, 2)", "tensor{1.5502}")
        .expand([](const ExpandCall& c) {
            constexpr double log_pi = 1.14472988584940017414;
            const int64_t p = c.integer(1);
            expect_positive(c, 1, p);
            if (p > 10000) throw value_error(c.name(), str("p is too large: ", p));
            Expr sum = fn("lgamma", c.in(0));
            for (int64_t j = 1; j < p; ++j) sum = sum + fn("lgamma", c.in(0) - 0.5 * static_cast<double>(j));
            return sum + 0.25 * static_cast<double>(p * (p - 1)) * log_pi;
        })
        .wide()
        .sample("f32[2,3]:(2,4), 3")
        .sample("f32[5]:(1,4), 1");
}

void add_zeta_ops(Registry& ops) {
    function_of_two(ops, "zeta(input/x: float, other/q: float)",
                    "Hurwitz' zeta function: the sum of (k + q)^-x over k = 0, 1, 2 …; infinite at x = 1, NaN below.")
        .example("zeta(tensor{2.0, 4.0}, 1.0)", "tensor{1.6449, 1.0823}")
        .grad([](const GradRule& g) -> Grads {
            const Expr s = g.in(0), q = g.in(1);
            return {cotangent(g, 0,
                              [&] {
                                  return g.dout * call("zeta_slope", {s, q});
                              }),
                    cotangent(g, 1, [&] {
                        return -(g.dout * s * call("zeta", {s + 1.0, q}));
                    })};
        })
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 23.2")
        .wide()
        .sample("2, f32[2,3]:(0.5,4)")
        .sample("3, f32[5]:(1,9)");
    function_of_two(ops, "zeta_slope(x: float, q: float)", "Derivative of zeta(x, q) by x.")
        .example("zeta_slope(tensor{2.0}, tensor{1.0})", "tensor{-0.9375}")
        .method(false)
        .refuse_grad("second derivatives of zeta by x are not known")
        .sample("f32[2,3]:(2,4), f32[2,3]:(0.5,4)");
    ops.add("polygamma(n: int, input/x: float)")
        .doc("The n-th derivative of digamma. Of f64 within 8 units in the last place.")
        .example("polygamma(1, tensor{1.0, 2.0})", "tensor{1.6449, 0.6449}")
        .expand([](const ExpandCall& c) {
            const int64_t n = c.integer(0);
            expect_not_negative(c, 0, n);
            if (n == 0) return fn("digamma", c.in(1));
            if (n > 1000) throw value_error(c.name(), str("n is too large: ", n));
            const auto order = static_cast<double>(n);
            // In f64: the zeta function may be too small for f32 where its product with n! is not. n! as its
            // logarithm: it overflows from 171 on.
            const Expr sum = c.call("zeta", {order + 1, c.in(1).cast(DType::f64)});
            const Expr result =
                n > 150 ? fn("exp", fn("log", sum) + std::lgamma(order + 1)) : sum * std::tgamma(order + 1);
            return (n % 2 == 0 ? -result : result).cast(c.dtype);
        })
        .method(false)
        .wide()
        .sample("1, f32[2,3]:(0.5,4)")
        .sample("2, f32[5]:(1,9)");
}

}  // namespace

void add_special_ops(Registry& ops) {
    add_bessel_ops(ops);
    add_gamma_ops(ops);
    add_beta_ops(ops);
    add_zeta_ops(ops);
}

}  // namespace lunaria
