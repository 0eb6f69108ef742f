// Operators: scans (running sums, products, extrema) and differences along an axis. linear_recurrence closes the family
// under differentiation: the gradients of cumprod, logcumsumexp and of the recurrence itself are recurrences again, in
// linear time and without a division.
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/open.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {

DType scan_dtype(const Call& call) {
    DType t = call.type(0).dtype;
    return call.dtype_or(2, is_integer(t) || t == DType::boolean ? sum_of(t) : t);
}

Types infer_scan(const Call& call) {
    if (call.rank(0) > 0) (void)call.axis(1, 0);
    return {{scan_dtype(call), call.shape(0)}};
}

// A 0-d tensor counts as a line of one element.
Types infer_running_extremum(const Call& call) {
    expect_real(call, 0);
    if (call.rank(0) > 0) (void)call.axis(1, 0);
    return {call.type(0), {DType::i64, call.shape(0)}};
}

Types infer_recurrence(const Call& call) {
    expect_same_shape(call, 0, 1);
    (void)call.axis(2, 0);
    return {{call.dtype, call.shape(0)}};
}

// Moves a line by one place: element i becomes element i - 1, and the first is `fill`.
Expr delayed(const Expr& x, int axis, const Expr& fill) {
    int64_t n = x.shape()[axis];
    if (n == 1) return fill;
    return call("concat", {x.builder().list({{fill, call("narrow", {x, axis, 0, n - 1})}}), axis});
}

Expr first_zeros(const Expr& x, int axis) { return x.builder().zeros_like(call("narrow", {x, axis, 0, 1})); }

Grads grad_cumsum(const GradRule& g) {
    Expr dx =
        call("cumsum", {g.dout.cast(g.type(0).dtype), g.args[1], {"exclusive", g.args[3]}, {"reverse", !g.boolean(4)}});
    return {dx};
}

Grads grad_cumprod(const GradRule& g) {
    Expr x = mirrored(g.in(0).cast(g.dout.dtype()));
    if (g.rank(0) == 0) return {g.dout.cast(g.type(0).dtype)};
    if (g.shape(0).size() == 0) return {g.builder.zeros_like(g.in(0))};
    return {call("cumprod_grad", {g.dout, x, g.axis(1, 0)}).cast(g.type(0).dtype)};
}

// The product of the elements before each element.
Expr products_before(const Expr& x, int axis) {
    return delayed(call("cumprod", {x, axis}), axis, x.builder().ones_like(first_zeros(x, axis)));
}

// The host's own kernel keeps a product in range that leaves it on the way; other devices have the range of doubles.
Expr expand_cumprod_grad(const ExpandCall& c) {
    if (c.shape(0).size() == 0) return c.builder.zeros_like(c.in(1));
    const DType computed = is_complex(c.dtype) ? DType::c128 : DType::f64;
    const int axis = c.axis(2, 0);
    const Expr d = c.in(0).cast(computed), x = c.in(1).cast(computed);
    return (products_before(x, axis) * call("linear_recurrence", {x, d, axis, {"reverse", true}})).cast(c.dtype);
}

// With the product b of the elements before, t of the recurrence and a cotangent e, the adjoint is linear in d: the
// recurrence u[i] = x[i] u[i-1] + e[i] b[i]. By x it is t[i] u[i-1], plus the gradient that e t as a cotangent of b
// gives.
Grads grad_cumprod_grad(const GradRule& g) {
    if (g.shape(0).size() == 0) return {g.builder.zeros_like(g.in(0)), g.builder.zeros_like(g.in(1)), {}};
    const int axis = g.axis(2, 0);
    const int64_t n = g.shape(0)[axis];
    const Expr x = mirrored(g.in(1)), d = mirrored(g.in(0)), none = first_zeros(x, axis);
    const Expr t = call("linear_recurrence", {x, d, axis, {"reverse", true}});
    const Expr u = call("linear_recurrence", {x, g.dout * products_before(x, axis), axis});
    Expr dx = t * delayed(u, axis, none);
    if (n > 1) {
        const Expr moved =
            call("concat", {g.builder.list({{call("narrow", {g.dout * t, axis, 1, n - 1}), none}}), axis});
        dx = dx + call("cumprod_grad", {moved, x, axis});
    }
    return {u, dx, {}};
}

Grads grad_running_extremum(const GradRule& g) {
    if (g.rank(0) == 0) return {g.dout};
    return {call("tensor_scatter_elements",
                 {g.builder.zeros_like(g.in(0)), g.outs[1], g.dout, {"axis", g.axis(1, 0)}, {"reduction", "add"}})};
}

// t[i] = dout[i] + exp(y[i] - y[i+1]) t[i+1] and dx = exp(x - y) t: y never falls, so neither exponential overflows,
// as exp(x) * cumsum(dout * exp(-y)) would.
Grads grad_logcumsumexp(const GradRule& g) {
    if (g.rank(0) == 0) return {g.dout};
    if (g.shape(0).size() == 0) return {g.builder.zeros_like(g.in(0))};
    int axis = g.axis(1, 0);
    Expr before = delayed(g.out, axis, call("narrow", {g.out, axis, 0, 1}));
    // Equal neighbours are told apart because -inf - -inf is NaN.
    Expr gap = call("where", {call("equal", {before, g.out}), g.builder.zeros_like(g.out), before - g.out});
    Expr t = call("linear_recurrence", {call("exp", {gap}), g.dout, axis, {"reverse", true}});
    Expr nothing = call("isinf", {g.out});
    Expr rise = call("where", {nothing, g.builder.zeros_like(g.out), g.in(0) - g.out});
    return {call("where", {nothing, g.builder.zeros_like(t), call("exp", {rise}) * t})};
}

// The weight of the edge between i - 1 and i is a[i] in both directions, so that the adjoint of a recurrence is the
// recurrence the other way with the same weights.
Grads grad_recurrence(const GradRule& g) {
    if (g.shape(0).size() == 0) return {g.builder.zeros_like(g.in(0)), g.builder.zeros_like(g.in(1))};
    int axis = g.axis(2, 0);
    bool reverse = g.boolean(3);
    const Expr adjoint = call("linear_recurrence", {mirrored(g.in(0)), g.dout, axis, {"reverse", !reverse}});
    const Expr out = mirrored(g.out);
    const Expr& falling = reverse ? out : adjoint;
    const Expr& rising = reverse ? adjoint : out;
    return {falling * delayed(rising, axis, first_zeros(rising, axis)), adjoint};
}

Expr difference(const Expr& x, int axis) {
    int64_t n = x.shape()[axis];
    Expr high = call("narrow", {x, axis, 1, n - 1}), low = call("narrow", {x, axis, 0, n - 1});
    return x.dtype() == DType::boolean ? call("not_equal", {high, low}) : high - low;
}

Expr expand_diff(const ExpandCall& c) {
    if (c.rank(0) == 0) throw shape_error(c.name(), "x must have at least one axis, not rank 0");
    int axis = c.axis(2, 0);
    expect_not_negative(c, 1, c.integer(1));
    std::vector<Expr> parts;
    for (size_t i : {size_t{3}, size_t{0}, size_t{4}})
        if (c.has(i)) parts.push_back(c.in(i));
    Expr x = parts.size() == 1 ? parts[0] : call("concat", {c.builder.list(parts), axis});
    for (int64_t i = 0; i < c.integer(1); ++i) {
        if (x.shape()[axis] == 0) return x;
        x = difference(x, axis);
    }
    return x;
}

Expr expand_trapz(const ExpandCall& c) {
    if (c.rank(0) == 0) throw shape_error(c.name(), "y must have at least one axis, not rank 0");
    int axis = c.axis(3, 0);
    Expr y = c.in(0);
    int64_t n = y.shape()[axis];
    if (n < 2) return c.builder.zeros_like(y).sum({axis});
    Expr heights = call("narrow", {y, axis, 1, n - 1}) + call("narrow", {y, axis, 0, n - 1});
    if (!c.has(1)) return heights.sum({axis}) * (c.number(2) * 0.5);
    Expr x = c.in(1);
    Expr width = difference(x, x.rank() == 1 ? 0 : axis);
    if (x.rank() == 1) {
        Shape shape;
        shape.resize(y.rank());
        shape[axis] = n - 1;
        width = width.reshape(shape);
    }
    return (heights * width).sum({axis}) * 0.5;
}

void add_running_extremum(Registry& ops) {
    ops.add("cummax(input/x: tensor, axis/dim: int) -> (values, indices)")
        .doc("Largest element so far along an axis, and its index (the last of equal ones).")
        .example("cummax(tensor{1.0, 3.0, 2.0}, 0)", "tensor{1.0, 3.0, 3.0}")
        .infer(infer_running_extremum)
        .grad(grad_running_extremum)
        .batched(batch::along<1>)
        .sample("f32[3,5], 1")
        .sample("f32[4,2,3], 0");
    ops.add("cummin(input/x: tensor, axis/dim: int) -> (values, indices)")
        .doc("Smallest element so far along an axis, and its index (the last of equal ones).")
        .example("cummin(tensor{3.0, 1.0, 2.0}, 0)", "tensor{3.0, 1.0, 1.0}")
        .infer(infer_running_extremum)
        .grad(grad_running_extremum)
        .batched(batch::along<1>)
        .sample("f32[3,5], 1")
        .sample("f32[4,2,3], 0");
}

}  // namespace

void add_scan_ops(Registry& ops) {
    ops.add(
           "cumsum(x/input: tensor, axis/dim: int, dtype: dtype? = nil, *, exclusive: bool = false, reverse: bool = "
           "false)")
        .doc(
            "Running sum along an axis. With `exclusive` the element itself is left out; with `reverse` it runs from "
            "the end.")
        .example("cumsum(tensor{1.0, 2.0, 3.0}, 0)", "tensor{1.0, 3.0, 6.0}")
        .infer(infer_scan)
        .grad(grad_cumsum)
        .batched(batch::along<1>)
        .linear({0})
        .sample("f32[3,5], 1")
        .sample("f32[4,2,3], 0, reverse=true")
        .sample("f32[5], 0, exclusive=true")
        .sample("i32[3,4], -1");
    ops.add("cumprod(input/x: tensor, dim/axis: int, dtype: dtype? = nil)")
        .doc("Running product along an axis.")
        .example("cumprod(tensor{1.0, 2.0, 3.0}, 0)", "tensor{1.0, 2.0, 6.0}")
        .infer(infer_scan)
        .grad(grad_cumprod)
        .batched(batch::along<1>)
        .wide()
        .sample("f32[3,5], 1")
        .sample("f32[4,2,3], 0");
    ops.add("cumprod_grad(dout: float, x: float, axis/dim: int)")
        .doc(
            "Gradient of cumprod: the product of what stands before an element times t, where t[i] = dout[i] + x[i+1] "
            "t[i+1], without leaving the range of numbers on the way.")
        .example("cumprod_grad(tensor{0.0, 1.0}, tensor{2.0, 3.0}, 0)", "tensor{3.0, 2.0}")
        .infer(infer_recurrence)
        .expand(expand_cumprod_grad)
        .grad(grad_cumprod_grad)
        .method(false)
        .batched(batch::along<2>)
        .wide()
        .sample("f32[3,5], f32[3,5], 1")
        .sample("f32[4,2,3], f32[4,2,3], 0");
    add_running_extremum(ops);
    ops.add("logcumsumexp(input/x: float, axis/dim: int)")
        .doc("Logarithm of the running sum of exponentials along an axis, without overflow.")
        .example("logcumsumexp(tensor{0.0, 0.0}, 0)", "tensor{0.0, 0.6931}")
        .infer([](const Call& call) -> Types {
            if (call.rank(0) > 0) (void)call.axis(1, 0);
            return same_as_first(call);
        })
        .grad(grad_logcumsumexp)
        .batched(batch::along<1>)
        .wide()
        .sample("f32[3,5], 1")
        .sample("f32[4,2,3], 0");
    ops.add("linear_recurrence(a: float, b: float, axis/dim: int = -1, *, reverse: bool = false)")
        .doc(
            "Solves s[i] = a[i] s[i-1] + b[i] along an axis, starting from 0; with `reverse` s[i] = a[i+1] s[i+1] + "
            "b[i].")
        .example("linear_recurrence(tensor{2.0, 2.0, 2.0}, tensor{1.0, 1.0, 1.0})", "tensor{1.0, 3.0, 7.0}")
        .infer(infer_recurrence)
        .grad(grad_recurrence)
        .batched(batch::along<2>)
        .wide()
        .sample("f32[3,5], f32[3,5], 1")
        .sample("f32[4,2], f32[4,2], 0, reverse=true");
    ops.add("diff(x/input: tensor, n: int = 1, axis/dim: int = -1, prepend: tensor? = nil, append: tensor? = nil)")
        .doc("Differences of neighbours along an axis, taken n times.")
        .example("diff(tensor{1.0, 4.0, 9.0})", "tensor{3.0, 5.0}")
        .expand(expand_diff)
        .wide()
        .sample("f32[3,5], 2, axis=0")
        .sample("f32[7]")
        .sample("f32[3,2], prepend=f32[3,1]");
    ops.add("trapz(y: float, x: float? = nil, *, dx: number = 1.0, dim/axis: int = -1)")
        .doc("Integral along an axis by the trapezoidal rule, with the points x or with equal steps dx.")
        .example("trapz(tensor{1.0, 2.0, 3.0})", "tensor(4.0)")
        .expand(expand_trapz)
        .open(open::trapz)
        .wide()
        .sample("f32[3,5], dx=0.5")
        .sample("f32[3,5], f32[5]");
}

}  // namespace lunaria
