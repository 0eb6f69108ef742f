// Operators: activation functions.
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

Expr as(const Expr& mask, const Expr& like) { return mask.cast(like.dtype()); }
Expr above(const Expr& x, double limit, const Expr& like) { return as(call("greater", {x, limit}), like); }

// 1 in the open range, 0 outside.
Expr between(const Expr& x, double low, double high, const Expr& like) {
    return above(x, low, like) * as(call("less", {x, high}), like);
}

void add_rectifiers(Registry& ops) {
    ops.add("relu(input/x: same)")
        .doc("Computes max(0, x); NaN stays NaN.")
        .example("relu(tensor{-1.0, 2.0})", "tensor{0.0, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            // By the result, which the following operators keep anyway.
            return {cotangent(g, 0, [&] { return call("relu_grad", {g.dout, g.out}); })};
        })
        .sample("f32[2,3]:(0.1,2)")
        .sample("f32[5]:(-2,-0.1)");

    ops.add("relu6(x/input: same)")
        .doc("The number x moved into the range from 0 to 6.")
        .example("relu6(tensor{-1.0, 2.0, 9.0})", "tensor{0.0, 2.0, 6.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * between(g.in(0), 0, 6, g.out); })};
        })
        .sample("f32[2,3]:(0.1,5.9)")
        .sample("f32[5]:(6.1,9)");

    ops.add("leaky_relu(input/x: float, alpha/negative_slope: number = 0.2)")
        .doc("Gives x for positive and alpha * x for other numbers.")
        .example("leaky_relu(tensor{-1.0, 2.0}, 0.1)", "tensor{-0.1, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr positive = call("greater", {g.in(0), 0.0});
            return {cotangent(g, 0, [&] { return where(positive, g.dout, g.dout * g.number(1)); }), {}};
        })
        .open(open::leaky_relu)
        .sample("f32[2,3]:(-2,-0.1)")
        .sample("f32[5]:(0.1,2), 0.05");

    ops.add("prelu(input/x: float, weight/w: float)")
        .doc("Gives x for positive and weight * x for other numbers, with one weight or one for each channel (axis 1).")
        .example("prelu(tensor{-1.0, 2.0}, tensor{0.25})", "tensor{-0.25, 2.0}")
        .expand([](const ExpandCall& c) {
            Expr x = c.in(0), w = c.in(1);
            Shape shape = x.shape(), spread;
            int64_t weights = w.shape().size();
            int64_t channels = shape.rank() > 1 ? shape[1] : 1;
            if (weights != 1 && weights != channels)
                throw shape_error(c.name(), str("weight has ", weights, " numbers and input of shape ", shape, " has ",
                                                channels, " channels: give one weight or one for each channel"));
            for (int axis = 0; axis < shape.rank(); ++axis) spread.push_back(axis == 1 ? weights : 1);
            if (shape.rank() < 2) spread = Shape{1};
            if (shape.rank() == 0) spread = Shape{};
            return where(c.call("greater", {x, 0.0}), x, x * w.reshape(spread));
        })
        .sample("f32[2,3,4]:(-2,-0.1), f32[3]")
        .sample("f32[5]:(-2,-0.1), f32[1]");

    ops.add("hardtanh(input/x: same, min_val: number = -1.0, max_val: number = 1.0)")
        .doc("The number x moved into the range from min_val to max_val.")
        .example("hardtanh(tensor{-3.0, 0.5, 2.0})", "tensor{-1.0, 0.5, 1.0}")
        .expand([](const ExpandCall& c) {
            return c.call("clamp", {c.in(0), c.args[1], c.args[2]});
        })
        .open(open::hardtanh)
        .sample("f32[2,3]:(-0.9,0.9)")
        .sample("f32[5]:(2,3), -0.5, 1.5");

    ops.add("hardsigmoid(input/x: float)")
        .doc("Computes x / 6 + 1/2 moved into the range from 0 to 1.")
        .example("hardsigmoid(tensor{-4.0, 0.0, 1.5})", "tensor{0.0, 0.5, 0.75}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * between(g.in(0), -3, 3, g.out) * (1.0 / 6); })};
        })
        .sample("f32[2,3]:(-2.9,2.9)")
        .sample("f32[5]:(3.1,4)");

    ops.add("hardswish(input/x: float)")
        .doc("Computes x * hardsigmoid(x).")
        .example("hardswish(tensor{-4.0, 3.0, 1.0})", "tensor{0.0, 3.0, 0.6667}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            // Selected, not added up: beyond the bounds x may be infinite.
            Expr x = g.in(0), inner = where(call("greater_equal", {x, 3.0}), 1.0, x * (1.0 / 3) + 0.5);
            return {cotangent(g, 0, [&] { return g.dout * where(call("less_equal", {x, -3.0}), 0.0, inner); })};
        })
        .sample("f32[2,3]:(-2.9,2.9)")
        .sample("f32[5]:(3.1,4)");

    ops.add("hardshrink(input/x: float, lambd: number = 0.5)")
        .doc("0 where |x| is at most lambd, else x.")
        .example("hardshrink(tensor{-1.0, 0.3, 2.0})", "tensor{-1.0, 0.0, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * above(fn("abs", g.in(0)), g.number(1), g.out); }), {}};
        })
        .open(open::hardshrink)
        .sample("f32[2,3]:(-0.4,0.4)")
        .sample("f32[5]:(1.1,2), 1.0");

    ops.add("softshrink(input/x: float, lambd: number = 0.5)")
        .doc("The number x moved towards 0 by lambd, and 0 where |x| is at most lambd.")
        .example("softshrink(tensor{-1.0, 0.3, 2.0})", "tensor{-0.5, 0.0, 1.5}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * above(fn("abs", g.in(0)), g.number(1), g.out); }), {}};
        })
        .alias("soft_shrink")
        .open(open::softshrink)
        .sample("f32[2,3]:(-0.4,0.4)")
        .sample("f32[5]:(1.1,2), 1.0");

    ops.add("threshold(input/x: float, thr: number, value: number)")
        .doc("Gives x where it is greater than thr, value elsewhere.")
        .example("threshold(tensor{-1.0, 2.0}, 0, 9)", "tensor{9.0, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * above(g.in(0), g.number(1), g.out); }), {}, {}};
        })
        .open(open::threshold)
        .sample("f32[2,3]:(0.5,1), 0.3, -1.5")
        .sample("f32[5]:(-1,-0.5), -0.4, 2.0");
}

void add_exponential_units(Registry& ops) {
    ops.add("elu(input_x/input/x: float, alpha: number = 1.0)")
        .doc("Gives x for positive and alpha * (exp(x) - 1) for other numbers.")
        .example("elu(tensor{-1.0, 2.0})", "tensor{-0.6321, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr x = g.in(0), positive = call("greater", {x, 0.0});
            // Bounds the argument of the exponential where its value is not selected: inf * 0 would be NaN further on.
            return {
                cotangent(
                    g, 0,
                    [&] { return g.dout * where(positive, 1.0, fn("exp", where(positive, 0.0, x)) * g.number(1)); }),
                {}};
        })
        .open(open::elu)
        .sample("f32[2,3]:(-2,-0.1)")
        .sample("f32[5]:(0.1,2), 1.5");

    ops.add("celu(x/input: float, alpha: number = 1.0)")
        .doc("Gives x for positive and alpha * (exp(x / alpha) - 1) for other numbers.")
        .example("celu(tensor{-1.0, 2.0}, 2.0)", "tensor{-0.7869, 2.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr x = g.in(0), positive = call("greater", {x, 0.0});
            return {
                cotangent(
                    g, 0,
                    [&] { return g.dout * where(positive, 1.0, fn("exp", where(positive, 0.0, x) / g.number(1))); }),
                {}};
        })
        .open(open::celu)
        .sample("f32[2,3]:(-2,-0.1)")
        .sample("f32[5]:(0.1,2), 1.5");

    ops.add("selu(input_x/input/x: float)")
        .doc("Scaled exponential linear unit, with the constants that keep mean 0 and variance 1.")
        .example("selu(tensor{-1.0, 2.0})", "tensor{-1.1113, 2.1014}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            constexpr double scale = 1.0507009873554804934, alpha = 1.6732632423543772848;
            Expr x = g.in(0), positive = call("greater", {x, 0.0});
            return {cotangent(g, 0, [&] {
                return g.dout * where(positive, scale, fn("exp", where(positive, 0.0, x)) * (scale * alpha));
            })};
        })
        .sample("f32[2,3]:(-2,-0.1)")
        .sample("f32[5]:(0.1,2)");

    ops.add("softplus(input/x: float, beta: number = 1, threshold: number = 20)")
        .doc("Computes log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.")
        .example("softplus(tensor{0.0, 30.0})", "tensor{0.6931, 30.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            Expr z = g.in(0) * g.number(1);
            return {cotangent(g, 0,
                              [&] {
                                  return g.dout * where(call("greater", {z, g.number(2)}), 1.0, fn("sigmoid", z));
                              }),
                    {},
                    {}};
        })
        .open(open::softplus)
        .sample("f32[2,3]")
        .sample("f32[5], 2, 20");
}

void add_sigmoids(Registry& ops) {
    ops.add("sigmoid(input/x: float)")
        .doc("1 / (1 + exp(-x)).")
        .example("sigmoid(tensor{0.0, 2.0})", "tensor{0.5, 0.8808}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return call("sigmoid_grad", {g.dout, mirrored(g.out)}); })};
        })
        .sample("f32[2,3]")
        .sample("f32[5]");

    ops.add("logsigmoid(x/input: float)")
        .doc("Computes log(sigmoid(x)) without overflow.")
        .example("logsigmoid(tensor{0.0, -200.0})", "tensor{-0.6931, -200.0}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * fn("sigmoid", -g.in(0)); })};
        })
        .alias("log_sigmoid")
        .sample("f32[2,3]")
        .sample("f32[5]");

    ops.add("silu(input/x: float)")
        .doc("Computes x * sigmoid(x), also called swish.")
        .example("silu(tensor{0.0, 2.0})", "tensor{0.0, 1.7616}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return call("silu_grad", {g.dout, g.in(0)}); })};
        })
        .alias("swish")
        .sample("f32[2,3]")
        .sample("f32[5]");

    ops.add("mish(x/input: float)")
        .doc("Computes x * tanh(softplus(x)).")
        .example("mish(tensor{0.0, 2.0})", "tensor{0.0, 1.9440}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] {
                Expr x = g.in(0), t = fn("tanh", fn("softplus", x));
                return g.dout * (t + within_slope(x) * fn("sigmoid", x) * (1.0 - t * t));
            })};
        })
        .sample("f32[2,3]")
        .sample("f32[5]");

    ops.add("softsign(x/input: float)")
        .doc("Computes x / (1 + |x|).")
        .example("softsign(tensor{-1.0, 3.0})", "tensor{-0.5, 0.75}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout / fn("square", fn("abs", g.in(0)) + 1.0); })};
        })
        .sample("f32[2,3]:(0.1,2)")
        .sample("f32[5]:(-2,-0.1)");

    ops.add("tanhshrink(input/x: float)")
        .doc("Computes x - tanh(x).")
        .example("tanhshrink(tensor{0.0, 1.0})", "tensor{0.0, 0.2384}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return g.dout * fn("square", fn("tanh", g.in(0))); })};
        })
        .sample("f32[2,3]")
        .sample("f32[5]");
}

void add_gelus(Registry& ops) {
    ops.add("gelu(input/x: float, approximate: \"none\"|\"tanh\" = \"none\")")
        .doc(
            "Gaussian error linear unit: x times the normal distribution function, exact or by its tanh approximation.")
        .example("gelu(tensor{0.0, 1.0})", "tensor{0.0, 0.8413}")
        .expand([](const ExpandCall& c) { return fn(c.string(1) == "tanh" ? "gelu_tanh" : "gelu_erf", c.in(0)); })
        .sample("f32[2,3]")
        .sample("f32[5], \"tanh\"");

    ops.add("gelu_erf(x: float)")
        .doc("Computes x times the normal distribution function.")
        .example("gelu_erf(tensor{0.0, 1.0})", "tensor{0.0, 0.8413}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return call("gelu_erf_grad", {g.dout, g.in(0)}); })};
        })
        .sample("f32[2,3]")
        .sample("f32[5]");

    ops.add("gelu_tanh(x: float)")
        .doc("The tanh approximation of gelu.")
        .example("gelu_tanh(tensor{0.0, 1.0})", "tensor{0.0, 0.8412}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] { return call("gelu_tanh_grad", {g.dout, g.in(0)}); })};
        })
        .sample("f32[2,3]")
        .sample("f32[5]");

    ops.add("fast_gelu(x/input: float)")
        .doc("Computes x * sigmoid(1.702 x), a cheap approximation of gelu.")
        .example("fast_gelu(tensor{0.0, 1.0})", "tensor{0.0, 0.8458}")
        .elementwise()
        .grad([](const GradRule& g) -> Grads {
            return {cotangent(g, 0, [&] {
                Expr x = g.in(0), s = fn("sigmoid", x * 1.702);
                return g.dout * (s + within_slope(x) * s * (1.0 - s) * 1.702);
            })};
        })
        .sample("f32[2,3]")
        .sample("f32[5]");
}

// The two halves of an axis.
std::pair<Expr, Expr> halves(const ExpandCall& c, size_t axis_argument) {
    Expr x = c.in(0);
    if (c.rank(0) == 0) throw shape_error(c.name(), "a tensor without axes has no halves");
    int axis = c.axis(axis_argument, 0);
    int64_t size = c.shape(0)[axis];
    if (size % 2 != 0)
        throw shape_error(c.name(), str("axis ", axis, " of shape ", c.shape(0), " must have an even size"));
    auto half = [&](int64_t start) { return c.call("narrow", {x, axis, start, size / 2}); };
    return {half(0), half(size / 2)};
}

void add_gated_units(Registry& ops) {
    ops.add("glu(x/input: float, axis/dim: int = -1)")
        .doc("First half of an axis times the sigmoid of the second.")
        .example("glu(tensor{2.0, 0.0})", "tensor{1.0}")
        .expand([](const ExpandCall& c) {
            auto [a, b] = halves(c, 1);
            return a * fn("sigmoid", b);
        })
        .sample("f32[2,6]")
        .sample("f32[4,3], axis=0");

    ops.add("swiglu(input/x: float, axis/dim: int = -1)")
        .doc("Computes silu of the first half of an axis times the second half.")
        .example("swiglu(tensor{2.0, 3.0})", "tensor{5.2848}")
        .expand([](const ExpandCall& c) {
            auto [a, b] = halves(c, 1);
            return fn("silu", a) * b;
        })
        .sample("f32[2,6]")
        .sample("f32[4,3], axis=0");
}

}  // namespace

void add_activation_ops(Registry& ops) {
    add_rectifiers(ops);
    add_exponential_units(ops);
    add_sigmoids(ops);
    add_gelus(ops);
    add_gated_units(ops);
}

}  // namespace lunaria
