// Operators: elementwise functions of one number. Gradient rules use the result where they can, since it is at hand
// anyway.
#include <cmath>
#include <vector>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

// A unary entry with the derivative as an expression of the argument x and the result y.
template <class Slope>
Op& function(Registry& ops, SignatureText signature, const char* doc, Slope) {
    return ops.add(signature).doc(doc).elementwise().grad([](const GradRule& g) -> Grads {
        return {cotangent(g, 0, [&] { return g.dout * mirrored(Slope{}(g.in(0), g.out)); })};
    });
}

// For a complex number x the result is the direction x / |x|, which changes only where x moves across it: the part of
// the cotangent along the direction is removed.
Grads grad_sign(const GradRule& g) {
    if (!is_complex(g.out.dtype())) return zero_gradient(g);
    const Expr length = fn("abs", g.in(0)), zero = call("equal", {length, 0.0});
    const Expr along = fn("real", mirrored(g.out) * g.dout);
    return {(g.dout - g.out * along) / where(zero, 1.0, length)};
}

Op& step_function(Registry& ops, SignatureText signature, const char* doc) {
    return ops.add(signature).doc(doc).elementwise().grad(zero_gradient);
}

void add_arithmetic(Registry& ops) {
    ops.add("abs(input/x: same)")
        .doc("Absolute value; of complex numbers their distance from 0, which is real.")
        .infer([](const Call& c) -> Types {
            return {{part_of(c.dtype), c.shape(0)}};
        })
        .elementwise()
        .grad(
            [](const GradRule& g) -> Grads { return {cotangent(g, 0, [&] { return g.dout * fn("sign", g.in(0)); })}; })
        .example("abs(tensor{-1.5, 2.0})", "tensor{1.5, 2.0}")
        .alias("absolute")
        .sample("f32[2,3]:(0.2,2)")
        .sample("f32[5]:(-2,-0.2)");
    ops.add("neg(input/x: same)")
        .doc("Number with the other sign.")
        .example("neg(tensor{1, -2})", "tensor{-1, 2}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return {cotangent(g, 0, [&] { return -g.dout; })}; })
        .alias("negative")
        .linear({0})
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("positive(input/x: same)")
        .doc("The operand itself.")
        .example("positive(tensor{1, -2})", "tensor{1, -2}")
        .expand([](const ExpandCall& c) { return c.in(0); })
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("sign(input/x: same)")
        .doc(
            "-1, 0 or 1 for negative numbers, 0 and positive numbers; 0 for NaN. Of complex numbers x / |x|, and 0 of "
            "0.")
        .elementwise()
        .grad(grad_sign)
        .example("sign(tensor{-3, 0, 5})", "tensor{-1, 0, 1}")
        .alias("sgn")
        .sample("f32[2,3]:(0.2,2)")
        .sample("f32[5]:(-2,-0.2)");
    function(ops, "square(input/x: same)", "Square of a number.", [](const Expr& x, const Expr&) { return x * 2.0; })
        .example("square(tensor{3, -4})", "tensor{9, 16}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    // 0 at 0, where the slope is infinite.
    function(ops, "sqrt(x/input: float)", "Square root.",
             [](const Expr&, const Expr& y) {
                 Expr zero = call("equal", {y, 0.0});
                 return where(zero, 0.0, 0.5 / where(zero, 1.0, y));
             })
        .example("sqrt(tensor{4.0, 2.25})", "tensor{2.0, 1.5}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function(ops, "rsqrt(input/x: float)", "Reciprocal of the square root.",
             [](const Expr&, const Expr& y) { return y * y * y * -0.5; })
        .example("rsqrt(tensor{4.0, 0.25})", "tensor{0.5, 2.0}")
        .wide()
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function(ops, "reciprocal(input/x: float)", "1 divided by a number.",
             [](const Expr&, const Expr& y) { return -(y * y); })
        .example("reciprocal(tensor{4.0, -0.5})", "tensor{0.25, -2.0}")
        .alias("inv")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(-2,-0.5)");
    function(ops, "deg2rad(x/input: float)", "Degrees as radians.",
             [](const Expr&, const Expr&) { return 0.017453292519943295769; })
        .example("deg2rad(tensor{180.0})", "tensor{3.1416}")
        .alias("radians")
        .linear({0})
        .sample("f32[2,3]")
        .sample("f32[5]:(-90,90)");
    function(ops, "rad2deg(x/input: float)", "Radians as degrees.",
             [](const Expr&, const Expr&) { return 57.295779513082320877; })
        .example("rad2deg(tensor{1.0})", "tensor{57.2958}")
        .alias("degrees")
        .linear({0})
        .sample("f32[2,3]")
        .sample("f32[5]:(-2,2)");
}

void add_rounding(Registry& ops) {
    step_function(ops, "floor(input/x: same)", "The next integer below.")
        .example("floor(tensor{1.7, -1.2})", "tensor{1.0, -2.0}")
        .sample("f32[2,3]:(1.1,1.9)")
        .sample("f32[5]:(-1.9,-1.1)");
    step_function(ops, "ceil(input/x: same)", "The next integer above.")
        .example("ceil(tensor{1.2, -1.7})", "tensor{2.0, -1.0}")
        .sample("f32[2,3]:(1.1,1.9)")
        .sample("f32[5]:(-1.9,-1.1)");
    step_function(ops, "trunc(input/x: same)", "The next integer towards zero.")
        .example("trunc(tensor{1.7, -1.7})", "tensor{1.0, -1.0}")
        .alias("fix")
        .sample("f32[2,3]:(1.1,1.9)")
        .sample("f32[5]:(-1.9,-1.1)");
    step_function(ops, "round_to_even(input/x: same)", "The nearest integer; halves go to the even one.")
        .example("round_to_even(tensor{1.7, 2.5})", "tensor{2.0, 2.0}")
        .alias("rint")
        .sample("f32[2,3]:(1.1,1.4)")
        .sample("f32[5]:(-1.4,-1.1)");
    ops.add("round(input/x: same, *, decimals: int = 0)")
        .doc("The nearest number with so many decimals; halves go to the even one.")
        .example("round(tensor{0.5, 1.5, 2.51})", "tensor{0.0, 2.0, 3.0}")
        .example("round(tensor{3.14159}, {decimals = 2})", "tensor{3.14}")
        .expand([](const ExpandCall& c) {
            Expr x = c.in(0);
            if (c.integer(1) == 0) return fn("round_to_even", x);
            double scale = std::pow(10.0, static_cast<double>(c.integer(1)));
            return fn("round_to_even", x * scale) / scale;
        })
        .wide()
        .sample("f32[2,3]:(1.1,1.4)")
        .sample("f32[5]:(-1.44,-1.41), decimals=1");
    function(ops, "frac(x/input: float)", "What is left after trunc, with the sign of x.",
             [](const Expr&, const Expr&) { return 1.0; })
        .example("frac(tensor{1.75, -1.25})", "tensor{0.75, -0.25}")
        .sample("f32[2,3]:(1.1,1.9)")
        .sample("f32[5]:(-1.9,-1.1)");
    ops.add("nan_to_num(input/x: float, nan: float? = nil, posinf: float? = nil, neginf: float? = nil)")
        .doc("NaN replaced (by 0 unless given), infinities replaced (by the largest finite numbers unless given).")
        .example("nan_to_num(tensor{0/0, 1/0, 2.0}, 0.0, 7.0)", "tensor{0.0, 7.0, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr x = g.in(0);
            auto part = [&](size_t i, const Expr& mask) {
                return cotangent(g, i, [&] { return where(mask, g.dout, 0.0); });
            };
            return {part(0, fn("isfinite", x)), part(1, fn("isnan", x)), part(2, fn("isposinf", x)),
                    part(3, fn("isneginf", x))};
        })
        .sample("f32[2,3]")
        .sample("f32[5], 1.0, 2.0, -2.0");
}

void add_exponentials(Registry& ops) {
    function(ops, "exp(input/x: float)", "The number e to the power x.", [](const Expr&, const Expr& y) { return y; })
        .example("exp(tensor{0.0, 1.0})", "tensor{1.0, 2.7183}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "exp2(input/x: float)", "2 to the power x.",
             [](const Expr&, const Expr& y) { return y * 0.69314718055994530942; })
        .example("exp2(tensor{3.0, -1.0})", "tensor{8.0, 0.5}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "expm1(input/x: float)", "Computes exp(x) - 1, also accurate for small x.",
             [](const Expr& x, const Expr&) { return fn("exp", x); })
        .example("expm1(tensor{0.0, 1.0})", "tensor{0.0, 1.7183}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("log(input/x: float)")
        .doc("Natural logarithm.")
        .elementwise()
        .grad([](const GradRule& g) -> Grads { return {cotangent(g, 0, [&] { return g.dout / mirrored(g.in(0)); })}; })
        .example("log(tensor{1.0, 2.0})", "tensor{0.0, 0.6931}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function(ops, "log2(input/x: float)", "Logarithm to base 2.",
             [](const Expr& x, const Expr&) { return 1.4426950408889634074 / x; })
        .example("log2(tensor{8.0, 0.5})", "tensor{3.0, -1.0}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function(ops, "log10(input/x: float)", "Logarithm to base 10.",
             [](const Expr& x, const Expr&) { return 0.43429448190325182765 / x; })
        .example("log10(tensor{100.0, 0.1})", "tensor{2.0, -1.0}")
        .sample("f32[2,3]:(0.5,2)")
        .sample("f32[5]:(1,9)");
    function(ops, "log1p(input/x: float)", "Computes log(1 + x), also accurate for small x.",
             [](const Expr& x, const Expr&) { return 1.0 / (x + 1.0); })
        .example("log1p(tensor{0.0, 1.0})", "tensor{0.0, 0.6931}")
        .sample("f32[2,3]:(-0.5,2)")
        .sample("f32[5]:(1,9)");
    ops.add("logit(input/x: float, eps: number? = nil)")
        .doc("Computes log(x / (1 - x)); with eps, x is first moved into the range from eps to 1 - eps.")
        .example("logit(tensor{0.5, 0.75})", "tensor{0.0, 1.0986}")
        .expand([](const ExpandCall& c) {
            Expr x = c.in(0);
            if (c.has(1)) x = c.call("clamp", {x, c.number(1), 1.0 - c.number(1)});
            return fn("log_odds", x);
        })
        .open(open::logit)
        .wide()
        .sample("f32[2,3]:(0.2,0.8)")
        .sample("f32[5]:(0.2,0.8), 0.01");
    function(ops, "log_odds(x: float)", "Computes log(x / (1 - x)), also accurate around x = 1/2: logit without eps.",
             [](const Expr& x, const Expr&) { return 1.0 / (x * (1.0 - x)); })
        .example("log_odds(tensor{0.5, 0.75})", "tensor{0.0, 1.0986}")
        .method(false)
        .wide()
        .sample("f32[2,3]:(0.2,0.8)")
        .sample("f32[5]:(0.2,0.8)");
}

// With u = pi x the n-th derivative of f = sin(u) / u is (sin(u + n pi / 2) - n f^(n-1)) / u, which cancels where u is
// small: there it is the power series.
Expr expand_sinc_slope(const ExpandCall& c) {
    constexpr double pi = 3.14159265358979323846;
    const Expr x = c.in(0), u = x * pi;
    const int64_t order = c.integer(1);
    const double most = 1.5 + static_cast<double>(order) / 2;
    const Expr is_near = call("less", {fn("abs", u), most});

    // The sum over m of (-1)^m u^(2m - n) / ((2m + 1) (2m - n)!), beginning with its first power of u, 0 or 1.
    std::vector<double> factors;
    const int64_t odd = order % 2, first = (order + odd) / 2;
    double size = 1, factorial = 1;
    for (int64_t j = 0; size > 1e-19; ++j) {
        const auto power = static_cast<double>(odd + 2 * j);
        if (j > 0) factorial *= power * (power - 1);
        const auto m = first + j;
        factors.push_back((m % 2 ? -1 : 1) / (static_cast<double>(2 * m + 1) * factorial));
        size = std::pow(most, 2 * j) / factorial;
    }
    const Expr small = where(is_near, u, 0.0), square = small * small;
    Expr series = square * factors.back() + factors[factors.size() - 2];
    for (size_t j = factors.size() - 2; j-- > 0;) series = series * square + factors[j];
    if (odd) series = series * small;

    const Expr away = where(is_near, 1.0, u);
    // Whole turns are subtracted before the multiplication rounds.
    const Expr angle = where(is_near, pi, (x - fn("round_to_even", x * 0.5) * 2.0) * pi);
    const Expr sine = fn("sin", angle), cosine = fn("cos", angle);
    Expr slope = sine / away;
    for (int64_t n = 1; n <= order; ++n) {
        const Expr& turned = n % 2 ? cosine : sine;
        slope = ((n % 4 >= 2 ? -turned : turned) - slope * static_cast<double>(n)) / away;
    }
    return where(is_near, series, slope) * std::pow(pi, static_cast<double>(order));
}

void add_trigonometry(Registry& ops) {
    function(ops, "sin(input/x: float)", "Sine of an angle in radians.",
             [](const Expr& x, const Expr&) { return fn("cos", x); })
        .example("sin(tensor{0.0, 1.5708})", "tensor{0.0, 1.0}")
        .sample("f32[2,3]")
        .sample("f32[5]:(-9,9)");
    function(ops, "cos(input/x: float)", "Cosine of an angle in radians.",
             [](const Expr& x, const Expr&) { return -fn("sin", x); })
        .example("cos(tensor{0.0, 3.1416})", "tensor{1.0, -1.0}")
        .sample("f32[2,3]")
        .sample("f32[5]:(-9,9)");
    function(ops, "tan(input/x: float)", "Tangent of an angle in radians.",
             [](const Expr&, const Expr& y) { return y * y + 1.0; })
        .example("tan(tensor{0.0, 0.7854})", "tensor{0.0, 1.0}")
        .sample("f32[2,3]:(-1,1)")
        .sample("f32[5]:(2,4)");
    function(ops, "asin(input/x: float)", "Angle whose sine is x.",
             [](const Expr& x, const Expr&) { return fn("rsqrt", (1.0 - x) * (x + 1.0)); })
        .example("asin(tensor{0.0, 1.0})", "tensor{0.0, 1.5708}")
        .alias("arcsin")
        .wide()
        .sample("f32[2,3]:(-0.8,0.8)")
        .sample("f32[5]:(-0.8,0.8)");
    function(ops, "acos(input/x: float)", "Angle whose cosine is x.",
             [](const Expr& x, const Expr&) { return -fn("rsqrt", (1.0 - x) * (x + 1.0)); })
        .example("acos(tensor{1.0, 0.0})", "tensor{0.0, 1.5708}")
        .alias("arccos")
        .wide()
        .sample("f32[2,3]:(-0.8,0.8)")
        .sample("f32[5]:(-0.8,0.8)");
    function(ops, "atan(input/x: float)", "Angle whose tangent is x.",
             [](const Expr& x, const Expr&) { return 1.0 / (x * x + 1.0); })
        .example("atan(tensor{0.0, 1.0})", "tensor{0.0, 0.7854}")
        .alias("arctan")
        .wide()
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "sinh(input/x: float)", "Hyperbolic sine.", [](const Expr& x, const Expr&) { return fn("cosh", x); })
        .example("sinh(tensor{0.0, 1.0})", "tensor{0.0, 1.1752}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "cosh(input/x: float)", "Hyperbolic cosine.",
             [](const Expr& x, const Expr&) { return fn("sinh", x); })
        .example("cosh(tensor{0.0, 1.0})", "tensor{1.0, 1.5431}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("tanh(input/x: float)")
        .doc("Hyperbolic tangent.")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return call("tanh_grad", {g.dout, mirrored(g.out)}); })};
        })
        .example("tanh(tensor{0.0, 1.0})", "tensor{0.0, 0.7616}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "asinh(input/x: float)", "Inverse hyperbolic sine.",
             [](const Expr& x, const Expr&) { return fn("rsqrt", x * x + 1.0); })
        .example("asinh(tensor{0.0, 1.1752})", "tensor{0.0, 1.0}")
        .alias("arcsinh")
        .wide()
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "acosh(input/x: float)", "Inverse hyperbolic cosine.",
             [](const Expr& x, const Expr&) {
                 // One root of the product has the other sign where a complex x has a negative real part.
                 return is_complex(x.dtype()) ? fn("rsqrt", x - 1.0) * fn("rsqrt", x + 1.0)
                                              : fn("rsqrt", (x - 1.0) * (x + 1.0));
             })
        .example("acosh(tensor{1.0, 1.5431})", "tensor{0.0, 1.0}")
        .alias("arccosh")
        .wide()
        .sample("f32[2,3]:(1.5,3)")
        .sample("f32[5]:(1.5,3)");
    function(ops, "atanh(input/x: float)", "Inverse hyperbolic tangent.",
             [](const Expr& x, const Expr&) { return 1.0 / ((1.0 - x) * (x + 1.0)); })
        .example("atanh(tensor{0.0, 0.7616})", "tensor{0.0, 1.0}")
        .alias("arctanh")
        .wide()
        .sample("f32[2,3]:(-0.8,0.8)")
        .sample("f32[5]:(-0.8,0.8)");
    function(ops, "sinc(input/x: float)", "Gives sin(pi x) / (pi x), and 1 at 0.",
             [](const Expr& x, const Expr&) {
                 return call("sinc_slope", {x, int64_t{1}});
             })
        .example("sinc(tensor{0.0, 0.5})", "tensor{1.0, 0.6366}")
        .sample("f32[2,3]:(0.3,2)")
        .sample("f32[5]:(-2,-0.3)");
    ops.add("sinc_slope(input/x: float, n: int = 1)")
        .doc("The n-th derivative of sinc.")
        .example("sinc_slope(tensor{0.0, 1.0}, 2)", "tensor{-3.2899, 2.0}")
        .infer([](const Call& c) -> Types {
            expect_positive(c, 1, c.integer(1));
            if (c.integer(1) > 32) throw value_error(c.name(), str("n is ", c.integer(1), ": at most 32 are known"));
            return {{c.dtype, c.shape(0)}};
        })
        .expand(expand_sinc_slope)
        .grad([](const GradRule& g) -> Grads {
            return {g.dout * g.call("sinc_slope", {g.in(0), g.integer(1) + 1}), {}};
        })
        .method(false)
        .wide()
        .cut("...->...")
        .sample("f32[2,3]:(-0.4,3)")
        .sample("f32[5]:(-3,0.3), 2");
}

void add_special(Registry& ops) {
    constexpr double two_over_root_pi = 1.1283791670955125739;
    function(ops, "erf(input/x: float)", "Error function.",
             [](const Expr& x, const Expr&) { return fn("exp", -(x * x)) * two_over_root_pi; })
        .example("erf(tensor{0.0, 1.0})", "tensor{0.0, 0.8427}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    function(ops, "erfc(input/x: float)", "1 - erf(x), also accurate for large x.",
             [](const Expr& x, const Expr&) { return fn("exp", -(x * x)) * -two_over_root_pi; })
        .example("erfc(tensor{0.0, 1.0})", "tensor{1.0, 0.1573}")
        .sample("f32[2,3]")
        .sample("f32[5]");
    // 2 x erfcx(x) - 2 / sqrt(pi), which cancels far to the right: from 20 on by the asymptotic series.
    function(ops, "erfcx(input/x: float)", "Scaled complementary error function, exp(x^2) erfc(x).",
             [](const Expr& x, const Expr& y) {
                 const Expr far = call("greater", {x, 20.0}), r = 1.0 / where(far, x, 20.0), s = r * r;
                 const Expr series = s * (1.0 - s * (1.5 - s * (3.75 - s * (13.125 - s * 59.0625))));
                 return where(far, series * (-0.5 * two_over_root_pi), 2.0 * where(far, 1.0, x) * y - two_over_root_pi);
             })
        .example("erfcx(tensor{0.0, 10.0})", "tensor{1.0, 0.0561}")
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1")
        .wide()
        .sample("f32[2,3]")
        .sample("f32[5]:(21,40)");
    function(ops, "erfinv(input/x: float)", "The number whose erf is x.",
             [](const Expr&, const Expr& y) { return fn("exp", y * y) * 0.88622692545275801365; })
        .example("erfinv(tensor{0.0, 0.8427})", "tensor{0.0, 1.0}")
        .wide()
        .sample("f32[2,3]:(-0.8,0.8)")
        .sample("f32[5]:(-0.8,0.8)");
    function(ops, "ndtr(input/x: float)", "Distribution function of the normal distribution.",
             [](const Expr& x, const Expr&) { return fn("exp", x * x * -0.5) * 0.39894228040143267794; })
        .example("ndtr(tensor{0.0, 1.96})", "tensor{0.5, 0.975}")
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2")
        .wide()
        .sample("f32[2,3]")
        .sample("f32[5]:(-9,3)");
    function(ops, "ndtri(input/p: float)", "Quantile of the normal distribution, the inverse of ndtr.",
             [](const Expr&, const Expr& y) { return fn("exp", y * y * 0.5) * 2.50662827463100050242; })
        .example("ndtri(tensor{0.5, 0.975})", "tensor{0.0, 1.96}")
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2")
        .wide()
        .sample("f32[2,3]:(0.1,0.9)")
        .sample("f32[5]:(0.1,0.9)");
    // The slope is the density over the distribution function, both of which underflow far to the left.
    function(
        ops, "log_ndtr(input/x: float)",
        "Logarithm of the distribution function of the normal distribution, also accurate in both tails.",
        [](const Expr& x, const Expr&) { return 0.79788456080286535588 / fn("erfcx", x * -0.70710678118654752440); })
        .example("log_ndtr(tensor{0.0, -20.0})", "tensor{-0.6931, -203.9172}")
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2")
        .wide()
        .sample("f32[2,3]")
        .sample("f32[5]:(-9,3)");
    function(ops, "lgamma(input/x: float)", "Logarithm of the absolute value of the gamma function.",
             [](const Expr& x, const Expr&) { return fn("digamma", x); })
        .example("lgamma(tensor{1.0, 5.0})", "tensor{0.0, 3.1781}")
        .sample("f32[2,3]:(0.5,4)")
        .sample("f32[5]:(0.5,4)");
    function(ops, "digamma(input/x: float)",
             "Derivative of lgamma. Of x < 0 within 4 units in the last place of digamma(1 - x) and pi / tan(pi x).",
             [](const Expr& x, const Expr&) { return fn("trigamma", x); })
        .example("digamma(tensor{1.0, 2.0})", "tensor{-0.5772, 0.4228}")
        .sample("f32[2,3]:(0.5,4)")
        .sample("f32[5]:(0.5,4)");
    function(ops, "trigamma(input/x: float)", "Derivative of digamma.",
             [](const Expr& x, const Expr&) {
                 return call("zeta", {3.0, x}) * -2.0;
             })
        .example("trigamma(tensor{1.0, 2.0})", "tensor{1.6449, 0.6449}")
        .source("Abramowitz and Stegun, Handbook of Mathematical Functions, 6.4")
        .wide()
        .sample("f32[2,3]:(0.6,4)")
        .sample("f32[5]:(-0.8,-0.2)");
}

}  // namespace

void add_function_ops(Registry& ops) {
    add_arithmetic(ops);
    add_rounding(ops);
    add_exponentials(ops);
    add_trigonometry(ops);
    add_special(ops);
}

}  // namespace lunaria
