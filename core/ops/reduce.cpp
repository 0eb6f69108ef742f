// Operators: reductions over axes.
// Gradient rules bring the cotangent back to the shape with reduced axes of size 1, where everything broadcasts.
#include "core/ops/reduce.h"

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/operator/row_pass.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/open.h"

namespace lunaria {

Shape reduced_shape(const Shape& shape, const Shape& axes, bool keep) {
    Shape out;
    for (int axis = 0; axis < shape.rank(); ++axis) {
        bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
        if (!reduced)
            out.push_back(shape[axis]);
        else if (keep)
            out.push_back(1);
    }
    return out;
}

int64_t reduced_count(const Shape& shape, const Shape& axes) {
    int64_t n = 1;
    for (int64_t axis : axes) {
        int64_t size = shape[static_cast<int>(axis)];
        if (size == kUnknownDim) return kUnknownDim;
        n *= size;
    }
    return n;
}

void expect_not_empty(const Call& call, const Shape& axes) {
    if (reduced_count(call.shape(0), axes) != 0) return;
    throw value_error(call.name(),
                      str("there is nothing to choose from: a reduced axis of the shape ", call.shape(0), " is empty"))
        .hint("reduce over an axis with at least one element");
}

void expect_real(const Call& call, size_t i) {
    if (is_complex(call.type(i).dtype))
        throw dtype_error(call.name(), str(param_name(call, i), " must be real: complex numbers have no order"));
}

Expr keep_axes(const Expr& e, const Shape& shape, const Shape& axes) {
    return e.reshape(reduced_shape(shape, axes, true));
}

namespace {

// Integers are summed in i64, whatever their width, so that sums of small types do not wrap.
DType sum_dtype(const Call& call) {
    DType t = call.type(0).dtype;
    return call.dtype_or(3, is_integer(t) || t == DType::boolean ? sum_of(t) : t);
}

Types reduce_to(const Call& call, DType dtype) {
    return {{dtype, reduced_shape(call.shape(0), call.axes(1, 0), call.boolean(2))}};
}

Types infer_mean(const Call& call) {
    const DType t = call.dtype_or(3, call.dtype);
    // Of floats it is NaN.
    if (!is_float(t) && !is_complex(t)) expect_not_empty(call, call.axes(1, 0));
    return reduce_to(call, t);
}

Types infer_extremum(const Call& call) {
    expect_real(call, 0);
    expect_not_empty(call, call.axes(1, 0));
    return reduce_to(call, call.type(0).dtype);
}

Types infer_bool(const Call& call) { return reduce_to(call, DType::boolean); }

// One axis or, without it, the whole tensor as if it were flat.
Types infer_arg(const Call& call) {
    expect_real(call, 0);
    Shape axes = call.axes(1, 0);
    expect_not_empty(call, axes);
    return reduce_to(call, DType::i64);
}

// max and min: values and indices along an axis; only the value of the whole tensor without one.
Types infer_with_index(const Call& call) {
    Types types = infer_extremum(call);
    if (call.has(1)) types.push_back({DType::i64, types[0].shape});
    return types;
}

Expr spread_back(const GradRule& g, const Expr& e, const Shape& axes) {
    // A single number broadcasts against anything as it is.
    Expr kept = e.rank() == 0 ? e : keep_axes(e, g.shape(0), axes);
    // A size that is known only when the program runs is taken from the operand then.
    return g.shape(0).known() ? kept.broadcast_to(g.shape(0)) : g.call("expand_as", {kept, g.in(0)});
}

Grads grad_sum(const GradRule& g) { return {spread_back(g, g.dout.cast(g.type(0).dtype), g.axes(1, 0))}; }

Grads grad_mean(const GradRule& g) {
    Shape axes = g.axes(1, 0);
    const double n = static_cast<double>(reduced_count(g.shape(0), axes));
    // Divided before it is spread, and not in a half, which cannot hold the count.
    const Expr share = (is_half(g.dout.dtype()) ? g.dout.cast(DType::f32) : g.dout) / n;
    return {spread_back(g, share.cast(g.type(0).dtype), axes)};
}

// Equal extrema share the cotangent evenly.
Expr share_extremum(const GradRule& g, const Shape& axes) {
    Expr chosen = call("equal", {g.in(0), keep_axes(g.out, g.shape(0), axes)}).cast(g.dout.dtype());
    return chosen * (keep_axes(g.dout, g.shape(0), axes) / chosen.sum(axes, true));
}

Grads grad_extremum(const GradRule& g) { return {share_extremum(g, g.axes(1, 0))}; }

// The element whose index was given gets all of it.
Grads grad_with_index(const GradRule& g) {
    if (!g.has(1)) return {share_extremum(g, g.axes(1, 0))};
    Shape axes = g.axes(1, 0);
    Expr zeros = g.builder.zeros_like(g.in(0));
    if (g.rank(0) == 0) return {g.dout};
    return {
        call("scatter", {zeros, axes[0], keep_axes(g.outs[1], g.shape(0), axes), keep_axes(g.dout, g.shape(0), axes)})};
}

// The product of all other elements without a division, which would fail at zeros: it is the last running product.
Grads grad_prod(const GradRule& g) {
    Shape axes = g.axes(1, 0), perm, kept, inverse;
    if (g.rank(0) == 0) return {g.dout};
    for (int axis = 0; axis < g.rank(0); ++axis)
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
            perm.push_back(axis);
            kept.push_back(g.shape(0)[axis]);
        }
    int outer = kept.rank();
    for (int axis = 0; axis < g.rank(0); ++axis)
        if (std::find(axes.begin(), axes.end(), axis) != axes.end()) perm.push_back(axis);
    Shape moved;
    for (int64_t axis : perm) moved.push_back(g.shape(0)[static_cast<int>(axis)]);
    inverse.resize(perm.rank());
    for (int i = 0; i < perm.rank(); ++i) inverse[static_cast<int>(perm[i])] = i;
    int64_t n = reduced_count(g.shape(0), axes);
    Shape lines = kept;
    lines.push_back(n);
    Shape one = kept;
    one.push_back(1);
    Expr x = mirrored(g.in(0).cast(g.dout.dtype())).transpose(perm).reshape(lines);
    Expr dout = g.dout.reshape(one);
    if (n == 0) return {g.builder.zeros_like(g.in(0))};
    Expr dx = dout;
    if (n > 1) {
        Expr zeros = g.builder.zeros_like(call("narrow", {x, outer, 0, n - 1}));
        Expr last = call("concat", {g.builder.list({{zeros, dout}}), outer});
        dx = call("cumprod_grad", {last, x, outer});
    }
    return {dx.reshape(moved).transpose(inverse).cast(g.type(0).dtype)};
}

Types infer_var(const Call& call) {
    return {{call.dtype, reduced_shape(call.shape(0), call.axes(1, 0), call.boolean(3))}};
}

double freedom(const Call& call, const Shape& axes) {
    return static_cast<double>(reduced_count(call.shape(0), axes)) - call.number(2);
}

Grads grad_var(const GradRule& g) {
    Shape axes = g.axes(1, 0);
    Expr centred = g.in(0) - call("mean", {g.in(0), axes, true});
    return {centred * (keep_axes(g.dout, g.shape(0), axes) * (2.0 / freedom(g, axes)))};
}

// Where the deviation is 0 all differences from the mean are 0 as well: dividing by 1 instead gives the gradient 0.
Grads grad_std(const GradRule& g) {
    Shape axes = g.axes(1, 0);
    Expr centred = g.in(0) - call("mean", {g.in(0), axes, true});
    Expr zero = call("equal", {g.out, 0.0});
    Expr safe = call("where", {zero, g.builder.ones_like(g.out), g.out});
    return {centred * keep_axes(g.dout / (safe * freedom(g, axes)), g.shape(0), axes)};
}

Expr pair(const ExpandCall& c, const Expr& a, const Expr& b) { return c.builder.list({{a, b}}); }

Expr expand_nan_free(const ExpandCall& c) {
    Expr x = c.in(0);
    if (!is_float(x.dtype())) return x;
    return call("where", {call("isnan", {x}), 0.0, x});
}

void add_sums(Registry& ops) {
    ops.add(
           "sum(input/x: tensor, dim/axis: ints? = nil, keepdim/keepdims/keep_dims: bool = false, *, dtype: dtype? = "
           "nil)")
        .doc("Sum over the given axes, or over all. Integers and bools are summed as int64.")
        .example("sum(tensor{{1.0, 2.0}, {3.0, 4.0}}, 0)", "tensor{4.0, 6.0}")
        .infer(infer_sum)
        .grad(grad_sum)
        .batched(batch::reduction<1>)
        .reduction(
            some_axes<1>, [](RowPass& p) { return p.sum(p.in(0)); }, Fusion::sum)
        .linear({0})
        .cut("@reduce sum")
        .sample("f32[2,3,5], dim={0,2}")
        .sample("f32[7], keepdim=true")
        .sample("f32[3,4], dim=-1, keepdim=true")
        .sample("i32[3,4], dim=1");
    ops.add(
           "mean(x/input: float, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false, *, dtype: dtype? = "
           "nil)")
        .doc("Arithmetic mean over the given axes, or over all.")
        .example("mean(tensor{{1.0, 2.0}, {3.0, 4.0}}, 1)", "tensor{1.5, 3.5}")
        .infer(infer_mean)
        .grad(grad_mean)
        .batched(batch::reduction<1>)
        .reduction(some_axes<1>, [](RowPass& p) { return p.mean(p.in(0)); })
        .linear({0})
        .cut("@reduce mean")
        .sample("f32[2,3,5], axis={0,2}")
        .sample("f32[7], keep_dims=true")
        .sample("f32[3,4], axis=1");
    ops.add(
           "prod(input/x: tensor, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false, *, dtype: dtype? = "
           "nil)")
        .alias("reduce_prod")
        .doc("Product over the given axes, or over all. Integers and bools are multiplied as int64.")
        .example("prod(tensor{{1.0, 2.0}, {3.0, 4.0}}, 1)", "tensor{2.0, 12.0}")
        .infer(infer_sum)
        .grad(grad_prod)
        .batched(batch::reduction<1>)
        .wide()
        .cut("@reduce prod")
        .sample("f32[2,3,5], axis=1")
        .sample("f32[2,3], axis=nil")
        .sample("f32[2,3,2], axis={0,2}, keep_dims=true");
    ops.add("reduce_sum(x/input: tensor, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false)")
        .doc("Sum over the given axes, or over all, in the dtype of the tensor.")
        .example("reduce_sum(tensor{{1.0, 2.0}, {3.0, 4.0}})", "tensor(10.0)")
        .expand([](const ExpandCall& c) {
            return c.call("sum", {c.in(0), c.args[1], c.args[2]}).cast(c.type(0).dtype);
        })
        .sample("f32[2,3], axis=0, keep_dims=true")
        .sample("i32[5]");
    ops.add("reduce_mean(x/input: float, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false)")
        .doc("Arithmetic mean over the given axes, or over all.")
        .example("reduce_mean(tensor{{1.0, 2.0}, {3.0, 4.0}})", "tensor(2.5)")
        .expand([](const ExpandCall& c) {
            return c.call("mean", {c.in(0), c.args[1], c.args[2]});
        })
        .sample("f32[2,3], axis=0, keep_dims=true")
        .sample("f32[5]");
    ops.add(
           "nansum(input/x: tensor, axis/dim: ints? = nil, keepdims/keepdim/keep_dims: bool = false, *, dtype: dtype? "
           "= nil)")
        .doc("Sum over the given axes, or over all, with NaN counted as 0.")
        .example("nansum(tensor{1.0, 0/0, 3.0})", "tensor(4.0)")
        .infer(infer_sum)
        .expand([](const ExpandCall& c) {
            return call("sum", {expand_nan_free(c), c.args[1], c.args[2], {"dtype", c.args[3]}});
        })
        .cut("@reduce sum")
        .sample("f32[2,3], axis=0, keepdims=true")
        .sample("f32[5]");
    ops.add(
           "nanmean(input/x: float, axis/dim: ints? = nil, keepdims/keepdim/keep_dims: bool = false, *, dtype: dtype? "
           "= nil)")
        .doc("Arithmetic mean over the given axes, or over all, of the elements that are not NaN.")
        .example("nanmean(tensor{1.0, 0/0, 3.0})", "tensor(2.0)")
        .expand([](const ExpandCall& c) {
            Expr total = call("sum", {expand_nan_free(c), c.args[1], c.args[2]});
            Expr present = call("logical_not", {call("isnan", {c.in(0)})});
            Expr mean = total / call("sum", {present, c.args[1], c.args[2]}).cast(total.dtype());
            return c.has(3) ? mean.cast(c.args[3].dtype()) : mean;
        })
        .wide()
        .sample("f32[2,3], axis=0, keepdims=true")
        .sample("f32[5]");
    ops.add(
           "count_nonzero(x/input: tensor, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false, *, dtype: "
           "dtype = \"int32\")")
        .doc("How many elements differ from 0, along the given axes or in all. NaN differs from 0.")
        .example("count_nonzero(tensor{0, 3, 0, 5})", "tensor(2)")
        .expand([](const ExpandCall& c) {
            Expr nonzero = c.type(0).dtype == DType::boolean ? c.in(0) : call("not_equal", {c.in(0), 0});
            return call("sum", {nonzero, c.args[1], c.args[2]}).cast(c.args[3].dtype());
        })
        .sample("i32[4,5]:(0,2), axis=1")
        .sample("bool[7]");
}

void add_extrema(Registry& ops) {
    ops.add("amax(input/x: tensor, axis/dim: ints? = nil, keepdims/keepdim/keep_dims: bool = false)")
        .alias("reduce_max")
        .doc("Largest element along the given axes, or of all. NaN is larger than everything; a zero has no sign.")
        .example("amax(tensor{{1.0, 5.0}, {3.0, 4.0}}, 1)", "tensor{5.0, 4.0}")
        .infer(infer_extremum)
        .grad(grad_extremum)
        .batched(batch::reduction<1>)
        .reduction(some_axes<1>, [](RowPass& p) { return p.max(p.in(0)) + p.number(0); })
        .wide()
        .cut("@reduce max")
        .sample("f32[2,3,5], axis={0,2}")
        .sample("f32[7]")
        .sample("i32[3,4], axis=0, keepdims=true");
    ops.add("amin(input/x: tensor, axis/dim: ints? = nil, keepdims/keepdim/keep_dims: bool = false)")
        .alias("reduce_min")
        .doc("Smallest element along the given axes, or of all; NaN where there is one. A zero has no sign.")
        .example("amin(tensor{{1.0, 5.0}, {3.0, 4.0}}, 1)", "tensor{1.0, 3.0}")
        .infer(infer_extremum)
        .grad(grad_extremum)
        .batched(batch::reduction<1>)
        .reduction(some_axes<1>, [](RowPass& p) { return p.min(p.in(0)) + p.number(0); })
        .wide()
        .cut("@reduce min")
        .sample("f32[2,3,5], axis={0,2}")
        .sample("f32[7]")
        .sample("i32[3,4], axis=0, keepdims=true");
    ops.add("max(input/x: tensor, axis/dim: int? = nil, keepdims/keepdim/keep_dims: bool = false)")
        .doc("Largest elements along an axis and their indices. Without an axis only the largest of all elements.")
        .example("max(tensor{{1.0, 5.0}, {3.0, 4.0}}, 1)", "tensor{5.0, 4.0}")
        .infer(infer_with_index)
        .grad(grad_with_index)
        .batched(batch::largest)
        .wide()
        .cut("@reduce max")
        .sample("f32[2,3,5], axis=1")
        .sample("f32[7]")
        .sample("f32[3,4], axis=-1, keepdims=true");
    ops.add("min(input/x: tensor, axis/dim: int? = nil, keepdims/keepdim/keep_dims: bool = false)")
        .doc("Smallest elements along an axis and their indices. Without an axis only the smallest of all elements.")
        .example("min(tensor{{1.0, 5.0}, {3.0, 4.0}}, 1)", "tensor{1.0, 3.0}")
        .infer(infer_with_index)
        .grad(grad_with_index)
        .batched(batch::smallest)
        .wide()
        .cut("@reduce min")
        .sample("f32[2,3,5], axis=1")
        .sample("f32[7]")
        .sample("f32[3,4], axis=-1, keepdims=true");
    ops.add("argmax(input/x: tensor, dim/axis: int? = nil, keepdim/keepdims/keep_dims: bool = false)")
        .doc("Index of the largest element along an axis (the first of equal ones), or in the flattened tensor.")
        .example("argmax(tensor{1.0, 5.0, 5.0})", "tensor(1)")
        .infer(infer_arg)
        .no_grad("an index is piecewise constant")
        .batched(batch::reduction_by_one)
        .cut("@reduce &")
        .sample("f32[3,5], dim=1")
        .sample("f32[2,3,2], dim=0, keepdim=true")
        .sample("i32[4,3]");
    ops.add("argmin(input/x: tensor, axis/dim: int? = nil, keepdims/keepdim/keep_dims: bool = false)")
        .doc("Index of the smallest element along an axis (the first of equal ones), or in the flattened tensor.")
        .example("argmin(tensor{3.0, 1.0, 1.0})", "tensor(1)")
        .infer(infer_arg)
        .no_grad("an index is piecewise constant")
        .batched(batch::reduction_by_one)
        .cut("@reduce &")
        .sample("f32[3,5], axis=1")
        .sample("f32[2,3,2], axis=0, keepdims=true")
        .sample("i32[4,3]");
    ops.add(
           "aminmax(input/x: tensor, *, axis/dim: ints? = nil, keepdims/keepdim/keep_dims: bool = false) -> (min, max)")
        .doc("Smallest and largest elements along the given axes, or of all.")
        .example("aminmax(tensor{3.0, 1.0, 2.0})", "tensor(1.0)")
        .expand([](const ExpandCall& c) {
            return pair(c, c.call("amin", {c.in(0), c.args[1], c.args[2]}),
                        c.call("amax", {c.in(0), c.args[1], c.args[2]}));
        })
        .sample("f32[3,5], axis=1")
        .sample("f32[7]");
    ops.add("all(input/x: tensor, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false)")
        .alias("reduce_all")
        .doc("Whether all elements differ from 0, along the given axes or in the whole tensor.")
        .example("all(tensor{1, 1, 0})", "tensor(false)")
        .infer(infer_bool)
        .no_grad("the result is bool")
        .batched(batch::reduction<1>)
        .cut("@reduce all")
        .sample("bool[3,5], axis=1")
        .sample("f32[7]")
        .sample("i32[2,3]:(0,3), axis=0, keep_dims=true");
    ops.add("any(input/x: tensor, axis/dim: ints? = nil, keep_dims/keepdims/keepdim: bool = false)")
        .alias("reduce_any")
        .doc("Whether at least one element differs from 0, along the given axes or in the whole tensor.")
        .example("any(tensor{0, 1, 0})", "tensor(true)")
        .infer(infer_bool)
        .no_grad("the result is bool")
        .batched(batch::reduction<1>)
        .cut("@reduce any")
        .sample("bool[3,5], axis=1")
        .sample("f32[7]")
        .sample("i32[2,3]:(0,3), axis=0, keep_dims=true");
}

void add_spread(Registry& ops) {
    ops.add(
           "var(input/x: float, axis/dim: ints? = nil, ddof/correction/unbiased: scalar = 0, "
           "keepdims/keepdim/keep_dims: bool = false)")
        .doc("Variance over the given axes, or over all: mean squared difference from the mean, divided by n - ddof.")
        .example("var(tensor{1.0, 2.0, 3.0, 4.0})", "tensor(1.25)")
        .infer(infer_var)
        .grad(grad_var)
        .batched(batch::reduction<1>)
        .open(open::var)
        .wide()
        .cut("@reduce &")
        .sample("f32[2,3,5], axis={0,2}, ddof=1")
        .sample("f32[7]");
    ops.add(
           "std(input/x: float, axis/dim: ints? = nil, ddof/correction/unbiased: scalar = 0, "
           "keepdims/keepdim/keep_dims: bool = false)")
        .doc("Standard deviation over the given axes, or over all: the square root of var.")
        .example("std(tensor{1.0, 2.0, 3.0, 4.0})", "tensor(1.1180)")
        .infer(infer_var)
        .grad(grad_std)
        .batched(batch::reduction<1>)
        .open(open::std)
        .wide()
        .cut("@reduce &")
        .sample("f32[2,3,5], axis={0,2}, ddof=1")
        .sample("f32[7]");
    ops.add(
           "var_mean(input/x: float, axis/dim: ints? = nil, ddof/correction/unbiased: scalar = 0, "
           "keepdims/keepdim/keep_dims: bool = false) -> (var, mean)")
        .doc("Variance and mean over the given axes, or over all.")
        .example("var_mean(tensor{1.0, 2.0, 3.0, 4.0})", "tensor(1.25)")
        .expand([](const ExpandCall& c) {
            return pair(c, c.call("var", {c.in(0), c.args[1], c.args[2], c.args[3]}),
                        c.call("mean", {c.in(0), c.args[1], c.args[3]}));
        })
        .open(open::var_mean)
        .sample("f32[2,3,5], axis=1, ddof=1")
        .sample("f32[7]");
    ops.add(
           "std_mean(input/x: float, axis/dim: ints? = nil, ddof/correction/unbiased: scalar = 0, "
           "keepdims/keepdim/keep_dims: bool = false) -> (std, mean)")
        .doc("Standard deviation and mean over the given axes, or over all.")
        .example("std_mean(tensor{1.0, 2.0, 3.0, 4.0})", "tensor(1.1180)")
        .expand([](const ExpandCall& c) {
            return pair(c, c.call("std", {c.in(0), c.args[1], c.args[2], c.args[3]}),
                        c.call("mean", {c.in(0), c.args[1], c.args[3]}));
        })
        .open(open::std_mean)
        .sample("f32[2,3,5], axis=1, ddof=1")
        .sample("f32[7]");
}

}  // namespace

Types infer_sum(const Call& call) { return reduce_to(call, sum_dtype(call)); }

void add_reduce_ops(Registry& ops) {
    add_sums(ops);
    add_extrema(ops);
    add_spread(ops);
    add_vector_norm_ops(ops);
    add_scan_ops(ops);
}

}  // namespace lunaria
