// Operators: softmax and its kin.
#include <limits>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/operator/row_pass.h"
#include "core/ops/families.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {

// A 0-d tensor counts as a line of one element.
Types infer_softmax(const Call& call) {
    if (call.rank(0) > 0 || call.integer(1) < -1 || call.integer(1) > 0) (void)call.axis(1, 0);
    return {{call.dtype_or(2, call.dtype), call.shape(0)}};
}

Shape line_axes(const Call& call, size_t i, size_t of) { return call.rank(of) ? Shape{call.axis(i, of)} : Shape{}; }

// The result of an operator of one operand and an axis before it was rounded to halves, which keep few digits of many
// small shares.
Expr exact_result(const GradRule& g) {
    const DType t = g.type(0).dtype;
    return is_half(t) ? g.call(g.name(), {g.in(0).cast(DType::f32), g.args[1]}) : g.out;
}

Grads grad_softmax(const GradRule& g) {
    return {call("softmax_grad", {g.dout, exact_result(g), g.args[1]}).cast(g.type(0).dtype)};
}

Grads grad_log_softmax(const GradRule& g) {
    return {call("log_softmax_grad", {g.dout, exact_result(g), g.args[1]}).cast(g.type(0).dtype)};
}

Types infer_softmax_grad(const Call& call) {
    expect_same_shape(call, 0, 1);
    return {{call.dtype, call.shape(0)}};
}

// softmax_grad(d, y) = y (d - sum(d y)). For a cotangent c the gradient by d is softmax_grad(c, y), and the gradient by
// y follows from the product rule.
Grads grad_softmax_grad(const GradRule& g) {
    Shape axes = line_axes(g, 2, 0);
    Expr d = g.in(0), y = g.in(1), c = g.dout;
    Expr dy = c * (d - (d * y).sum(axes, true)) - d * (c * y).sum(axes, true);
    return {call("softmax_grad", {c, y, g.args[2]}), dy};
}

// log_softmax_grad(d, y) = d - exp(y) sum(d).
Grads grad_log_softmax_grad(const GradRule& g) {
    Shape axes = line_axes(g, 2, 0);
    Expr d = g.in(0), c = g.dout;
    Expr p = call("exp", {g.in(1)});
    return {c - (c * p).sum(axes, true), -(c * p) * d.sum(axes, true)};
}

Types infer_logsumexp(const Call& call) {
    Shape axes = call.axes(1, 0);
    return {{call.dtype, reduced_shape(call.shape(0), axes, call.boolean(2))}};
}

Grads grad_logsumexp(const GradRule& g) {
    Shape axes = g.axes(1, 0);
    Expr out = keep_axes(g.out, g.shape(0), axes);
    // A line of -inf has the gradient 0; -inf - -inf would be NaN.
    Expr empty = call("equal", {out, -std::numeric_limits<double>::infinity()});
    Expr shift = call("where", {empty, g.builder.zeros_like(out), out});
    return {call("exp", {g.in(0) - shift}) * keep_axes(g.dout, g.shape(0), axes)};
}

// exp(x) for x <= 0. Results that would be subnormal are 0, as in the host's kernels.
RowValue exp_of_difference(RowPass& p, RowValue x) {
    const RowValue least = p.number(size_of(p.call.dtype) == 4 ? -87 : -708);
    const RowValue e = p.formula("exp", {x});
    return p.as_host() ? p.formula("where", {p.formula("less", {x, least}), p.number(0), e}) : e;
}
RowValue softmax_row(RowPass& p) {
    const RowValue x = p.in(0), e = exp_of_difference(p, x - p.max(x));
    return e * p.formula("reciprocal", {p.sum(e)});
}
RowValue log_softmax_row(RowPass& p) {
    const RowValue x = p.in(0), away = x - p.max(x);
    return away - p.formula("log", {p.sum(exp_of_difference(p, away))});
}
RowValue softmax_grad_row(RowPass& p) {
    const RowValue d = p.in(0), y = p.in(1);
    return y * (d - p.sum(d * y));
}
RowValue log_softmax_grad_row(RowPass& p) {
    const RowValue d = p.in(0);
    return d - p.formula("exp", {p.in(1)}) * p.sum(d);
}

// The straight-through estimator: with `hard` the value is the one-hot vector of the largest, the gradient that of the
// soft sample.
Expr expand_gumbel_softmax(const ExpandCall& c) {
    if (!(c.number(1) > 0)) throw value_error(c.name(), str("tau must be positive, not ", c.number(1)));
    Expr x = c.in(0);
    int axis = c.axis(3, 0);
    // -log(-log(u)) with u in (0, 1): exponential noise first, which is never 0.
    Expr u = call("rand_like", {x});
    Expr exponential = -call("log1p", {-u});
    Expr noise = -call("log", {call("maximum", {exponential, 1e-30})});
    Expr soft = call("softmax", {(x + noise) / c.number(1), axis});
    if (!c.boolean(2)) return soft;
    Expr index = call("argmax", {soft, axis, true});
    Expr hard = call(
        "scatter", {c.builder.zeros_like(soft), axis, index, c.builder.ones_like(call("narrow", {soft, axis, 0, 1}))});
    return call("stop_gradient", {hard - soft}) + soft;
}

}  // namespace

void add_softmax_ops(Registry& ops) {
    ops.add("softmax(input/x/logits: float, axis/dim: int = -1, *, dtype: dtype? = nil)")
        .doc("Exponentials divided by their sum along an axis: positive numbers that add up to 1.")
        .example("softmax(tensor{0.0, 0.0})", "tensor{0.5, 0.5}")
        .infer(infer_softmax)
        .grad(grad_softmax)
        .batched(batch::along<1>)
        .row_pass(one_axis<1>, softmax_row)
        .cost(16)
        .sample("f32[3,5]")
        .sample("f32[2,3,4], axis=1")
        .sample("f32[2,3], axis=0");
    ops.add("log_softmax(logits/input/x: float, axis/dim: int = -1, *, dtype: dtype? = nil)")
        .doc("Logarithm of softmax along an axis, exact where softmax itself would round to 0.")
        .example("log_softmax(tensor{0.0, 0.0})", "tensor{-0.6931, -0.6931}")
        .infer(infer_softmax)
        .grad(grad_log_softmax)
        .batched(batch::along<1>)
        .row_pass(one_axis<1>, log_softmax_row)
        .cost(16)
        .sample("f32[3,5]")
        .sample("f32[2,3,4], axis=1")
        .sample("f32[2,3], axis=0");
    ops.add("softmin(x/input: float, axis/dim: int = -1, *, dtype: dtype? = nil)")
        .doc("Softmax of the negated tensor along an axis.")
        .example("softmin(tensor{0.0, 0.0})", "tensor{0.5, 0.5}")
        .expand([](const ExpandCall& c) {
            return call("softmax", {-c.in(0), c.args[1], {"dtype", c.args[2]}});
        })
        .sample("f32[3,5]")
        .sample("f32[2,3,4], axis=1");
    ops.add("softmax_grad(dout: float, y: float, axis/dim: int = -1)")
        .doc("Gradient of softmax: y (dout - sum(dout y)) along an axis, where y is what softmax gave.")
        .example("softmax_grad(tensor{1.0, 0.0}, tensor{0.5, 0.5})", "tensor{0.25, -0.25}")
        .infer(infer_softmax_grad)
        .grad(grad_softmax_grad)
        .method(false)
        .batched(batch::along<2>)
        .row_pass(one_axis<2>, softmax_grad_row)
        .cost(4)
        .wide()
        .sample("f32[3,5], f32[3,5]:(0.1,0.9)")
        .sample("f32[2,3,4], f32[2,3,4]:(0.1,0.9), axis=1");
    ops.add("log_softmax_grad(dout: float, y: float, axis/dim: int = -1)")
        .doc("Gradient of log_softmax: dout - exp(y) sum(dout) along an axis, where y is what log_softmax gave.")
        .example("log_softmax_grad(tensor{1.0, 0.0}, tensor{0.0, 0.0})", "tensor{0.0, -1.0}")
        .infer(infer_softmax_grad)
        .grad(grad_log_softmax_grad)
        .method(false)
        .batched(batch::along<2>)
        .row_pass(one_axis<2>, log_softmax_grad_row)
        .cost(12)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[2,3,4], f32[2,3,4], axis=1");
    ops.add("logsumexp(input/x: float, dim/axis: ints? = nil, keepdim/keepdims/keep_dims: bool = false)")
        .doc("Logarithm of the sum of exponentials over the given axes, or over all, without overflow.")
        .example("logsumexp(tensor{0.0, 0.0})", "tensor(0.6931)")
        .infer(infer_logsumexp)
        .grad(grad_logsumexp)
        .batched(batch::reduction<1>)
        .wide()
        .cut("@reduce &")
        .sample("f32[3,5], 1")
        .sample("f32[2,3,4], {0,2}, true")
        .sample("f32[7]");
    ops.add("gumbel_softmax(logits/input/x: float, tau: number = 1.0, hard: bool = false, dim/axis: int = -1)")
        .doc(
            "Samples from the Gumbel-softmax distribution; with `hard` one-hot vectors whose gradient is that of the "
            "soft sample.")
        .source("Jang, Gu, Poole: Categorical Reparameterization with Gumbel-Softmax, 2017")
        .example("sum(gumbel_softmax(tensor{1.0, 2.0, 3.0}))", "tensor(1.0)")
        .effect(Effect::random)
        .expand(expand_gumbel_softmax)
        .wide()
        .sample("f32[3,5]")
        .sample("f32[2,3], 0.5, true, 0");
}

}  // namespace lunaria
