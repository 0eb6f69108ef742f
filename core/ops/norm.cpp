// Operators: normalisation.
// Each norm is a primitive with a gradient that is a primitive too and recomputes mean and deviation from x, which
// costs less than keeping them: a backpropagator holds only x and the weight. The gradients of those gradients are
// written once, for any choice of axes, with elementary operators.
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/operator/row_pass.h"
#include "core/ops/families.h"
#include "core/ops/open.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {

// The axes of x that share a mean, and the shape of the weight beside x.
struct NormLayout {
    Shape shape;         // x as the formulas see it (group_norm splits an axis)
    Shape axes;          // of the statistics
    Shape weight;        // weight and bias as they broadcast against `shape`
    Shape weight_axes;   // axes of `shape` over which a gradient of the weight is summed
    Shape weight_shape;  // as the user gave it
};

struct NormTerms {
    Expr xhat, rstd;  // normalised x, reciprocal of the deviation
};

NormTerms normalised(const Expr& x, const Shape& axes, double eps) {
    Expr centred = x - call("mean", {x, axes, true});
    Expr rstd = call("rsqrt", {call("mean", {centred * centred, axes, true}) + eps});
    return {centred * rstd, rstd};
}

// r (v - mean(v) - xhat mean(v xhat)): the effect of the normalisation on a cotangent v; self-adjoint.
Expr pulled_back(const Expr& v, const NormTerms& t, const Shape& axes) {
    Expr mean = call("mean", {v, axes, true});
    return t.rstd * (v - mean - t.xhat * call("mean", {v * t.xhat, axes, true}));
}

// Gradient of (dx, dweight, dbias) = norm_grad(dy, x, weight) for the cotangents a, b, c of its results.
// With g = dy w, A = mean(a xhat), G = mean(g xhat): <a, dx> is r S with
// S / n = mean(a g) - mean(a) mean(g) - A G, dS/dxhat = -(A g + G a) and dr/dx = -r^2 xhat / n.
Grads grad_norm_grad(const GradRule& g, const NormLayout& at, double eps) {
    Expr dy = g.in(0).reshape(at.shape), x = g.in(1).reshape(at.shape);
    bool weighted = g.has(2);
    Expr w = weighted ? g.in(2).reshape(at.weight) : Expr();
    NormTerms t = normalised(x, at.axes, eps);
    Expr ddy, dx, dw;
    auto add = [](Expr& sum, const Expr& term) { sum = sum ? sum + term : term; };
    if (g.douts[0]) {
        Expr a = g.douts[0].reshape(at.shape), gy = weighted ? dy * w : dy;
        Expr pulled = pulled_back(a, t, at.axes);
        add(ddy, weighted ? pulled * w : pulled);
        if (weighted) add(dw, (dy * pulled).sum(at.weight_axes, true));
        Expr along = call("mean", {a * t.xhat, at.axes, true}), slope = call("mean", {gy * t.xhat, at.axes, true});
        Expr inner = call("mean", {a * gy, at.axes, true}) -
                     call("mean", {a, at.axes, true}) * call("mean", {gy, at.axes, true}) - along * slope;
        add(dx, -(inner * t.rstd * t.rstd * t.xhat));
        add(dx, t.rstd * pulled_back(-(along * gy + slope * a), t, at.axes));
    }
    if (g.douts.size() > 1 && g.douts[1]) {
        Expr b = g.douts[1].reshape(at.weight);
        add(ddy, b * t.xhat);
        add(dx, pulled_back(dy * b, t, at.axes));
    }
    if (g.douts.size() > 2 && g.douts[2]) add(ddy, g.douts[2].reshape(at.weight).broadcast_to(at.shape));
    auto back = [&](const Expr& e, size_t i) { return e ? e.reshape(g.shape(i)) : Expr(); };
    Grads grads(g.args.size());
    grads[0] = back(ddy, 0);
    grads[1] = back(dx, 1);
    if (weighted) grads[2] = back(dw, 2);
    return grads;
}

void expect_channels(const Call& call, size_t i, int64_t channels) {
    if (!call.has(i)) return;
    Shape shape = call.shape(i);
    if (shape.rank() != 1 || (shape[0] != channels && shape[0] != kUnknownDim && channels != kUnknownDim))
        throw shape_error(call.name(), str(param_name(call, i), " has shape ", shape, ": it must be (", channels,
                                           "), one value per channel (axis 1) of the input"));
}

void expect_eps(const Call& call, size_t i) {
    if (!(call.number(i) >= 0)) throw value_error(call.name(), str("eps must not be negative, got ", call.number(i)));
}

// layer_norm(input, normalized_shape, weight, bias, eps)
Shape last_axes(const Shape& shape, int count) {
    Shape axes;
    for (int i = shape.rank() - count; i < shape.rank(); ++i) axes.push_back(i);
    return axes;
}

void expect_trailing(const Call& call, size_t i, const Shape& shape) {
    Shape x = call.shape(0);
    bool fits = shape.rank() <= x.rank() && shape.rank() > 0;
    for (int k = 1; fits && k <= shape.rank(); ++k) {
        int64_t a = shape[shape.rank() - k], b = x[x.rank() - k];
        fits = a == b || a == kUnknownDim || b == kUnknownDim;
    }
    if (!fits)
        throw shape_error(call.name(), str(param_name(call, i), " ", shape,
                                           " must be the last axes of the input, whose shape is ", x));
}

Types infer_layer_norm(const Call& call) {
    auto sizes = call.ints(1);
    Shape normalized{std::span<const int64_t>(sizes)};
    expect_trailing(call, 1, normalized);
    for (size_t i : {size_t{2}, size_t{3}})
        if (call.has(i) && !(call.shape(i) == normalized) && call.shape(i).known())
            throw shape_error(call.name(), str(param_name(call, i), " has shape ", call.shape(i),
                                               ": it must be normalized_shape ", normalized));
    expect_eps(call, 4);
    return {{call.dtype, call.shape(0)}};
}

Grads grad_layer_norm(const GradRule& g) {
    int64_t count = static_cast<int64_t>(g.ints(1).size());
    Expr grads = call("layer_norm_grad", {g.dout, g.in(0), g.in(2), count, g.args[4]});
    return {grads[0], {}, g.has(2) ? grads[1] : Expr(), g.has(3) ? grads[2] : Expr(), {}};
}

// The first two arguments of a norm's gradient: that of the result, and the input.
void expect_same_shapes(const Call& call) {
    if (!(call.shape(0) == call.shape(1)) && call.shape(0).known() && call.shape(1).known())
        throw shape_error(call.name(), str("the gradient has shape ", call.shape(0), " and the input ", call.shape(1),
                                           ": they must be the same"));
}

// layer_norm_grad(dy, x, weight, count, eps): of the last `count` axes.
Types infer_layer_norm_grad(const Call& call) {
    Shape x = call.shape(1), weight;
    expect_same_shapes(call);
    int count = static_cast<int>(call.integer(3));
    if (count < 1 || count > x.rank())
        throw value_error(call.name(), str("count must be in 1 .. ", x.rank(), ", not ", count));
    for (int i = x.rank() - count; i < x.rank(); ++i) weight.push_back(x[i]);
    if (call.has(2) && !(call.shape(2) == weight) && call.shape(2).known() && weight.known())
        throw shape_error(call.name(), str("weight has shape ", call.shape(2), ": it must be ", weight, ", the last ",
                                           count, " axes of the input"));
    return {{call.dtype, x}, {call.dtype, weight}, {call.dtype, weight}};
}

Grads grad_layer_norm_grad(const GradRule& g) {
    Shape x = g.shape(1), weight = g.outs[1].shape(), batch;
    for (int i = 0; i < x.rank() - weight.rank(); ++i) batch.push_back(i);
    Shape beside = weight;
    while (beside.rank() < x.rank()) beside.insert(0, 1);
    return grad_norm_grad(g, {x, last_axes(x, weight.rank()), beside, batch, weight}, g.number(4));
}

// group_norm(input, num_groups, weight, bias, eps)
void expect_groups(const Call& call, size_t of, size_t i) {
    expect_rank_at_least(call, of, 2);
    int64_t groups = call.integer(i), channels = call.shape(of)[1];
    if (groups <= 0) throw value_error(call.name(), str("num_groups must be positive, not ", groups));
    if (channels != kUnknownDim && channels % groups != 0)
        throw value_error(call.name(),
                          str("num_groups (", groups, ") must divide the number of channels (", channels, ")"));
}

Types infer_group_norm(const Call& call) {
    expect_groups(call, 0, 1);
    expect_channels(call, 2, call.shape(0)[1]);
    expect_channels(call, 3, call.shape(0)[1]);
    expect_eps(call, 4);
    return {{call.dtype, call.shape(0)}};
}

Grads grad_group_norm(const GradRule& g) {
    Expr grads = call("group_norm_grad", {g.dout, g.in(0), g.in(2), g.args[1], g.args[4]});
    return {grads[0], {}, g.has(2) ? grads[1] : Expr(), g.has(3) ? grads[2] : Expr(), {}};
}

// The gradients of norms with one weight per channel: (dy, x, weight, …).
Types infer_channel_grad(const Call& call) {
    expect_rank_at_least(call, 1, 2);
    expect_same_shapes(call);
    expect_channels(call, 2, call.shape(1)[1]);
    Shape channels{call.shape(1)[1]};
    return {{call.dtype, call.shape(1)}, {call.dtype, channels}, {call.dtype, channels}};
}

Grads grad_group_norm_grad(const GradRule& g) {
    Shape x = g.shape(1);
    int64_t groups = g.integer(3), channels = x[1], inner = 1;
    for (int i = 2; i < x.rank(); ++i) inner *= x[i];
    NormLayout at{
        {x[0], groups, channels / groups, inner}, {2, 3}, {1, groups, channels / groups, 1}, {0, 3}, {channels}};
    return grad_norm_grad(g, at, g.number(4));
}

void expect_batch(const Call& call) {
    Shape x = call.shape(0);
    for (int i = 0; i < x.rank(); ++i)
        if (i != 1 && x[i] == 0)
            throw value_error(call.name(), str("the batch is empty: the shape ", x, " has zero elements per channel, ",
                                               "so there are no statistics to normalise with"));
}

// batch_norm_train(x, weight, bias, eps)
Types infer_batch_norm_train(const Call& call) {
    expect_rank_at_least(call, 0, 2);
    Shape x = call.shape(0);
    expect_channels(call, 1, x[1]);
    expect_channels(call, 2, x[1]);
    expect_eps(call, 3);
    expect_batch(call);
    return {{call.dtype, x}, {call.dtype, {x[1]}}, {call.dtype, {x[1]}}};
}

Shape all_but_channels(const Shape& x) {
    Shape axes{0};
    for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
    return axes;
}

Shape beside_channels(const Shape& x) {
    Shape shape;
    shape.resize(x.rank());
    shape[1] = x[1];
    return shape;
}

Grads grad_batch_norm_train(const GradRule& g) {
    Shape x = g.shape(0), axes = all_but_channels(x), beside = beside_channels(x);
    Expr dx, dw, db;
    if (g.douts[0]) {
        Expr grads = call("batch_norm_grad", {g.douts[0], g.in(0), g.in(1), g.args[3]});
        dx = grads[0];
        dw = grads[1];
        db = grads[2];
    }
    double n = static_cast<double>(reduced_count(x, axes));
    auto add = [&](const Expr& term) { dx = dx ? dx + term : term; };
    // Halves cannot hold the count of a batch.
    auto wide = [&](const Expr& d) { return is_half(g.dtype) ? d.cast(DType::f32) : d; };
    if (g.douts[1]) add((wide(g.douts[1]) / n).reshape(beside).broadcast_to(x));
    if (g.douts[2]) add((g.in(0) - g.outs[1].reshape(beside)) * (wide(g.douts[2]) * (2 / n)).reshape(beside));
    return {dx, g.has(1) ? dw : Expr(), g.has(2) ? db : Expr(), {}};
}

Grads grad_batch_norm_grad(const GradRule& g) {
    Shape x = g.shape(1), axes = all_but_channels(x);
    return grad_norm_grad(g, {x, axes, beside_channels(x), axes, {x[1]}}, g.number(3));
}

// batch_norm(input_x, running_mean, running_var, weight, bias, training, momentum, eps)
Expr expand_batch_norm(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    Shape x = c.shape(0);
    for (size_t i = 1; i <= 4; ++i) expect_channels(c, i, x[1]);
    if (c.boolean(5)) expect_batch(c);
    if (c.boolean(5)) return call("batch_norm_train", {c.in(0), c.in(3), c.in(4), c.args[7]})[0];
    if (!c.has(1) || !c.has(2))
        throw argument_error(c.name(), "running_mean and running_var are needed unless training is true");
    expect_eps(c, 7);
    // One multiplication and one addition per element: everything else has the size of the channels.
    Expr scale = call("rsqrt", {c.in(2) + c.number(7)});
    if (c.has(3)) scale = scale * c.in(3);
    Expr shift = -(c.in(1) * scale);
    if (c.has(4)) shift = shift + c.in(4);
    Shape beside = beside_channels(x);
    return c.in(0) * scale.reshape(beside) + shift.reshape(beside);
}

// rms_norm(x, gamma, epsilon) -> (y, rstd)
Types infer_rms_norm(const Call& call) {
    Shape x = call.shape(0), gamma = call.shape(1);
    expect_trailing(call, 1, gamma);
    expect_eps(call, 2);
    return {{call.dtype, x}, {call.dtype, reduced_shape(x, last_axes(x, gamma.rank()), true)}};
}

Grads grad_rms_norm(const GradRule& g) {
    Shape x = g.shape(0), axes = last_axes(x, g.rank(1)), batch;
    for (int i = 0; i < x.rank() - g.rank(1); ++i) batch.push_back(i);
    Expr rstd = g.outs[1], xhat = g.in(0) * rstd, dx, dgamma;
    if (g.douts[0]) {
        Expr dy = g.douts[0], v = dy * g.in(1);
        dx = rstd * (v - xhat * call("mean", {v * xhat, axes, true}));
        dgamma = (dy * xhat).sum(batch);
    }
    if (g.douts[1]) {
        double n = static_cast<double>(reduced_count(x, axes));
        Expr term = xhat * rstd * rstd * g.douts[1] / -n;
        dx = dx ? dx + term : term;
    }
    return {dx, dgamma, {}};
}

Expr expand_add_layer_norm(const ExpandCall& c) {
    Expr sum = c.in(0) + c.in(1);
    Shape normalized = c.shape(2);
    return call("layer_norm", {sum, normalized, c.in(2), c.in(3), c.args[4]});
}

Shape last_axes_of_layer(const Call& c) {
    Shape axes;
    const int rank = c.rank(0);
    for (int i = rank - static_cast<int>(c.ints(1).size()); i < rank; ++i) axes.push_back(i);
    return axes;
}
RowValue layer_norm_row(RowPass& p) {
    const RowValue x = p.in(0), mean = p.mean(x);
    const RowValue centred = x - mean, variance = p.formula("div", {p.squares(centred), p.number(p.length())});
    RowValue y = centred * p.formula("rsqrt", {variance + p.number(p.call.number(4))});
    if (p.call.has(2)) y = y * p.in(2);
    return p.call.has(3) ? y + p.in(3) : y;
}

}  // namespace

void add_norm_ops(Registry& ops) {
    ops.add(
           "layer_norm(input/x/input_x: float, normalized_shape: ints, weight/gamma: float? = nil, bias/beta: float? = "
           "nil, eps/epsilon: number = 1e-5)")
        .doc("Shifts and scales the last axes to mean 0 and variance 1, then applies weight and bias.")
        .source("Ba, Kiros, Hinton: Layer Normalization, 2016")
        .example("layer_norm(tensor{{1.0, 3.0}}, {2})", "tensor{{-1.0, 1.0}}")
        .infer(infer_layer_norm)
        .grad(grad_layer_norm)
        .batched(batch::layer_norm)
        .row_pass(last_axes_of_layer, layer_norm_row)
        .cost(6)
        .open(open::layer_norm)
        .sample("f32[3,5], {5}, f32[5], f32[5]")
        .sample("f32[2,3,4], {3,4}, f32[3,4], f32[3,4]")
        .sample("f32[3,7], {7}, eps=0.001");
    ops.add(
           "layer_norm_grad(dy: float, x: float, weight: float?, count: int, eps: number = 1e-5) -> (dx, dweight, "
           "dbias)")
        .doc("Gradients of layer_norm over the last `count` axes with respect to its input, weight and bias.")
        .example("layer_norm_grad(tensor{{1.0, 1.0}}, tensor{{1.0, 3.0}}, nil, 1)", "tensor{{0.0, 0.0}}")
        .infer(infer_layer_norm_grad)
        .grad(grad_layer_norm_grad)
        .method(false)
        .batched(batch::layer_norm_grad)
        .wide()
        .cut("@layer_norm_grad")
        .sample("f32[3,5], f32[3,5], f32[5], 1")
        .sample("f32[2,3,4], f32[2,3,4], f32[3,4], 2");
    ops.add(
           "group_norm(input/x: float, num_groups: int, weight/gamma: float? = nil, bias/beta: float? = nil, "
           "eps/epsilon: number = 1e-5)")
        .doc("Normalises each group of channels (axis 1) of each sample, then applies a weight and a bias per channel.")
        .source("Wu, He: Group Normalization, 2018")
        .example("group_norm(tensor{{1.0, 3.0}}, 1)", "tensor{{-1.0, 1.0}}")
        .infer(infer_group_norm)
        .grad(grad_group_norm)
        .batched(batch::shared_weights)
        .open(open::group_norm)
        .cut("@group_norm")
        .sample("f32[2,4,3], 2, f32[4], f32[4]")
        .sample("f32[2,6,3,2], 3")
        .sample("f32[3,4], 1, f32[4]");
    ops.add(
           "group_norm_grad(dy: float, x: float, weight: float?, num_groups: int, eps: number = 1e-5) -> (dx, dweight, "
           "dbias)")
        .doc("Gradients of group_norm with respect to its input, weight and bias.")
        .example("group_norm_grad(tensor{{1.0, 1.0}}, tensor{{1.0, 3.0}}, nil, 1)", "tensor{{0.0, 0.0}}")
        .infer([](const Call& call) -> Types {
            expect_groups(call, 1, 3);
            return infer_channel_grad(call);
        })
        .grad(grad_group_norm_grad)
        .method(false)
        .wide()
        .cut("@group_norm grad")
        .sample("f32[2,4,3], f32[2,4,3], f32[4], 2")
        .sample("f32[2,6,3,2], f32[2,6,3,2], f32[6], 3");
    ops.add(
           "instance_norm(input/x: float, weight/gamma: float? = nil, bias/beta: float? = nil, eps/epsilon: number = "
           "1e-5)")
        .doc("Normalises each channel (axis 1) of each sample, then applies a weight and a bias per channel.")
        .example("instance_norm(tensor{{{1.0, 3.0}}})", "tensor{{{-1.0, 1.0}}}")
        .expand([](const ExpandCall& c) {
            expect_rank_at_least(c, 0, 3);
            return call("group_norm", {c.in(0), c.shape(0)[1], c.in(1), c.in(2), c.args[3]});
        })
        .open(open::instance_norm)
        .sample("f32[2,3,5], f32[3], f32[3]")
        .sample("f32[2,3,2,2]");
    ops.add(
           "batch_norm(input_x/input/x: float, running_mean/mean: float? = nil, running_var/variance: float? = nil, "
           "weight/scale/gamma: float? = nil, bias/offset/beta: float? = nil, training: bool = false, momentum: number "
           "= 0.1, eps/epsilon: number = 1e-5)")
        .doc(
            "Normalises each channel (axis 1) over the batch: with the running statistics, or with those of the batch "
            "when training. The running statistics are not changed.")
        .source("Ioffe, Szegedy: Batch Normalization, 2015")
        .example("batch_norm(tensor{{1.0}, {3.0}}, tensor{0.0}, tensor{1.0}, tensor{1.0}, tensor{0.0}, true)",
                 "tensor{{-1.0}, {1.0}}")
        .expand(expand_batch_norm)
        .wide()
        .sample("f32[4,3], f32[3], f32[3]:(0.5,2), f32[3], f32[3]")
        .sample("f32[2,3,5], f32[3], f32[3]:(0.5,2), f32[3], f32[3], true");
    ops.add(
           "batch_norm_train(x/input: float, weight: float? = nil, bias: float? = nil, eps: number = 1e-5) -> (y, "
           "mean, var)")
        .doc(
            "Batch normalisation with the statistics of the batch, which it also gives: mean and biased variance per "
            "channel (axis 1).")
        .example("batch_norm_train(tensor{{1.0}, {3.0}})", "tensor{{-1.0}, {1.0}}")
        .infer(infer_batch_norm_train)
        .grad(grad_batch_norm_train)
        .cut("@batch_norm")
        .sample("f32[4,3], f32[3], f32[3]")
        .sample("f32[2,3,5], f32[3], f32[3]")
        .sample("f32[3,2,2,3]");
    ops.add("batch_norm_grad(dy: float, x: float, weight: float?, eps: number = 1e-5) -> (dx, dweight, dbias)")
        .doc("Gradients of batch_norm_train with respect to its input, weight and bias.")
        .example("batch_norm_grad(tensor{{1.0}, {1.0}}, tensor{{1.0}, {3.0}}, nil)", "tensor{{0.0}, {0.0}}")
        .infer([](const Call& call) -> Types {
            expect_rank_at_least(call, 1, 2);
            return infer_channel_grad(call);
        })
        .grad(grad_batch_norm_grad)
        .method(false)
        .wide()
        .cut("@batch_norm")
        .sample("f32[4,3], f32[4,3], f32[3]")
        .sample("f32[2,3,5], f32[2,3,5], f32[3]");
    ops.add("rms_norm(x/input: float, gamma/weight: float, epsilon/eps: number = 1e-6) -> (y, rstd)")
        .doc(
            "Divides the last axes by their root mean square and multiplies by gamma; also gives the reciprocal of the "
            "root.")
        .source("Zhang, Sennrich: Root Mean Square Layer Normalization, 2019")
        .example("rms_norm(tensor{{3.0, 3.0}}, tensor{1.0, 2.0})", "tensor{{1.0, 2.0}}")
        .infer(infer_rms_norm)
        .grad(grad_rms_norm)
        .batched(batch::of_first)
        .open(open::rms_norm)
        .wide()
        .cut("@layer_norm rms")
        .sample("f32[3,5], f32[5]")
        .sample("f32[2,3,4], f32[3,4]");
    ops.add("add_rms_norm(x1: float, x2: float, gamma: float, epsilon/eps: number = 1e-6) -> (y, rstd, x)")
        .doc("Adds two tensors and applies rms_norm; also gives the reciprocal of the root mean square and the sum.")
        .example("add_rms_norm(tensor{{1.0, 1.0}}, tensor{{2.0, 2.0}}, tensor{1.0, 2.0})", "tensor{{1.0, 2.0}}")
        .expand([](const ExpandCall& c) {
            Expr sum = c.in(0) + c.in(1);
            Expr normed = call("rms_norm", {sum, c.in(2), c.args[3]});
            return c.builder.list({{normed[0], normed[1], sum}});
        })
        .open(open::add_rms_norm)
        .wide()
        .sample("f32[3,5], f32[3,5], f32[5]")
        .sample("f32[2,3,4], f32[2,3,4], f32[4]");
    ops.add("add_layer_norm(x1: float, x2: float, gamma: float, beta: float, epsilon/eps: number = 1e-5)")
        .doc("Adds two tensors and applies layer_norm over the axes of gamma.")
        .example("add_layer_norm(tensor{{1.0, 1.0}}, tensor{{0.0, 2.0}}, tensor{1.0, 1.0}, tensor{0.0, 0.0})",
                 "tensor{{-1.0, 1.0}}")
        .expand(expand_add_layer_norm)
        .open(open::add_layer_norm)
        .wide()
        .sample("f32[3,5], f32[3,5], f32[5], f32[5]")
        .sample("f32[2,3,4], f32[2,3,4], f32[3,4], f32[3,4]");
}

}  // namespace lunaria
