// Formulas of operators with differentiated attributes as operands, each with the operator's result. An attribute
// without a place in its formula, such as one at which a condition changes, has the derivative 0. Values that are not
// selected must not be infinite: their derivative times 0 would be NaN.
#include "core/ops/open.h"

#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/loss.h"
#include "core/ops/matrix.h"

namespace lunaria::open {

namespace {

Expr number(const ExpandCall& c, double x) { return c.builder.constant(Value(x)); }

Expr greater(const Expr& a, const Arg& b) { return call("greater", {a, b}); }
Expr equal(const Expr& a, const Arg& b) { return call("equal", {a, b}); }

// A tensor of ones, as the operator makes it, times the value.
Expr filled(const Expr& ones, const Expr& value) { return (ones * value).cast(ones.dtype()); }

// x where it is positive, otherwise the result of `negative`.
template <class F>
Expr unit(const ExpandCall& c, F&& negative) {
    const Expr x = c.in(0), positive = greater(x, 0.0);
    return where(positive, x, negative(where(positive, 0.0, x), c.in(1))).cast(c.dtype);
}

Expr absolute(const Expr& x) { return fn("abs", x); }

Expr scaled(const ExpandCall& c, const Expr& product) { return (c.in(0) * c.in(3) + product * c.in(4)).cast(c.dtype); }

// x shifted and scaled to mean 0 and variance 1 along the axes.
Expr shifted(const Expr& x, const Shape& axes, const Expr& eps) {
    const Expr centred = x - call("mean", {x, axes, true});
    return centred / fn("sqrt", call("mean", {centred * centred, axes, true}) + eps);
}
Expr affine(Expr y, const Expr& weight, const Expr& bias) {
    if (weight) y = y * weight;
    return bias ? y + bias : y;
}
Expr operand_or_none(const ExpandCall& c, size_t i) { return c.has(i) ? c.in(i) : Expr(); }

Expr grouped(const ExpandCall& c, int64_t groups, size_t weight, const Expr& eps) {
    const Expr x = c.in(0);
    const Shape shape = x.shape();
    expect_rank_at_least(c, 0, 2);
    Shape channels;
    for (int i = 0; i < shape.rank(); ++i) channels.push_back(i == 1 ? shape[1] : 1);
    const int64_t size = shape[0] * groups;
    const Expr y = shifted(x.reshape({shape[0], groups, size ? shape.size() / size : 0}), {2}, eps).reshape(shape);
    auto beside = [&](size_t i) { return c.has(i) ? c.in(i).reshape(channels) : Expr(); };
    return affine(y, beside(weight), beside(weight + 1)).cast(c.dtype);
}

Expr normalised_rms(const Expr& x, const Expr& gamma, const Expr& eps, Expr& rstd) {
    rstd = 1.0 / fn("sqrt", call("mean", {x * x, Shape{-1}, true}) + eps);
    return x * rstd * gamma;
}

// The correction changes only the divisor of the sum of squares.
Expr variance(const ExpandCall& c) {
    const Expr plain = c.call("var", {c.in(0), c.args[1], 0.0, c.args[3]});
    const double count = static_cast<double>(c.shape(0).size()) / static_cast<double>(plain.shape().size());
    return plain * (count / (count - c.in(2)));
}
Expr with_mean(const ExpandCall& c, const Expr& spread) {
    return c.builder.list({{spread, c.call("mean", {c.in(0), c.args[1], c.args[3]})}});
}

}  // namespace

Expr full(const ExpandCall& c) { return filled(c.call("full", {c.args[0], 1.0, c.args[2]}), c.in(1)); }
Expr fill(const ExpandCall& c) { return filled(c.call("full", {c.args[1], 1.0, c.args[0]}), c.in(2)); }
Expr full_like(const ExpandCall& c) { return filled(c.call("full_like", {c.in(0), 1.0, c.args[2]}), c.in(1)); }
Expr new_full(const ExpandCall& c) { return filled(c.call("new_full", {c.in(0), c.args[1], 1.0, c.args[3]}), c.in(2)); }

Expr pad(const ExpandCall& c) {
    // Selected, not added: elements and padding may be infinite.
    const Expr zeros = c.call("full_like", {c.in(0), 0.0, Value()});
    const Expr beside = c.call("pad", {zeros, c.args[1], c.args[2], 1.0});
    return where(greater(beside, 0.5), c.in(3), c.call("pad", {c.in(0), c.args[1], c.args[2], 0.0}))
        .cast(c.type(0).dtype);
}

Expr linspace(const ExpandCall& c) {
    const Expr t = c.call("linspace", {0.0, 1.0, c.args[2], c.args[3]});
    return ((1.0 - t) * c.in(0) + t * c.in(1)).cast(t.dtype());
}
Expr logspace(const ExpandCall& c) {
    const Expr t = c.call("linspace", {0.0, 1.0, c.args[2], c.args[4]});
    const Expr base = c.args[3].is_number() ? number(c, std::log(c.number(3))) : fn("log", c.in(3));
    return fn("exp", ((1.0 - t) * c.in(0) + t * c.in(1)) * base).cast(t.dtype());
}

Expr leaky_relu(const ExpandCall& c) {
    return unit(c, [](const Expr& x, const Expr& slope) { return x * slope; });
}
Expr elu(const ExpandCall& c) {
    return unit(c, [](const Expr& x, const Expr& alpha) { return fn("expm1", x) * alpha; });
}
Expr celu(const ExpandCall& c) {
    return unit(c, [](const Expr& x, const Expr& alpha) { return fn("expm1", x / alpha) * alpha; });
}
Expr softplus(const ExpandCall& c) {
    const Expr x = c.in(0), z = x * c.in(1), linear = greater(z, c.in(2));
    return where(linear, x, -fn("logsigmoid", -where(linear, 0.0, z)) / c.in(1)).cast(c.dtype);
}
Expr threshold(const ExpandCall& c) {
    const Expr x = c.in(0);
    return where(greater(x, c.in(1)), x, c.in(2)).cast(c.dtype);
}
Expr hardtanh(const ExpandCall& c) { return c.call("clamp", {c.in(0), c.in(1), c.in(2)}).cast(c.dtype); }
Expr hardshrink(const ExpandCall& c) {
    const Expr x = c.in(0);
    return where(greater(absolute(x), c.in(1)), x, 0.0).cast(c.dtype);
}
Expr softshrink(const ExpandCall& c) {
    const Expr x = c.in(0);
    return where(greater(absolute(x), c.in(1)), x - fn("sign", x) * c.in(1), 0.0).cast(c.dtype);
}

Expr smooth_l1_loss(const ExpandCall& c) {
    const Expr beta = c.in(2), none = equal(beta, 0.0);
    const Expr d = absolute(c.in(0) - c.in(1)), far = d - beta * 0.5;
    const Expr near = d * d * (0.5 / where(none, 1.0, beta));
    return reduced(where(call("less", {d, beta}), near, far), c.string(3));
}
Expr huber_loss(const ExpandCall& c) {
    const Expr d = absolute(c.in(0) - c.in(1)), delta = c.in(3);
    return reduced(where(call("less_equal", {d, delta}), d * d * 0.5, (d - delta * 0.5) * delta), c.string(2));
}
Expr hinge_embedding_loss(const ExpandCall& c) {
    const Expr x = c.in(0), target = c.in(1);
    const Expr near = where(equal(target, 1.0), x, 0.0);
    return reduced(near + where(equal(target, -1.0), fn("relu", c.in(2) - x), 0.0), c.string(3));
}
Expr margin_ranking_loss(const ExpandCall& c) {
    return reduced(fn("relu", c.in(3) - c.in(2) * (c.in(0) - c.in(1))), c.string(4));
}
// The loss is linear in the smoothing.
Expr smoothed_loss(const ExpandCall& c) {
    auto loss = [&](double smoothing) {
        return c.call(c.name(), {c.in(0), c.in(1), c.args[2], c.args[3], c.args[4], smoothing});
    };
    return (loss(0.0) * (1.0 - c.in(5)) + loss(1.0) * c.in(5)).cast(c.dtype);
}

Expr addmm(const ExpandCall& c) { return scaled(c, c.call("mm", {c.in(1), c.in(2)})); }
Expr baddbmm(const ExpandCall& c) { return scaled(c, c.call("bmm", {c.in(1), c.in(2)})); }
Expr addbmm(const ExpandCall& c) { return scaled(c, c.call("bmm", {c.in(1), c.in(2)}).sum({0})); }
Expr addmv(const ExpandCall& c) { return scaled(c, c.call("mv", {c.in(1), c.in(2)})); }
Expr addr(const ExpandCall& c) { return scaled(c, c.call("outer", {c.in(1), c.in(2)})); }
Expr index_add(const ExpandCall& c) {
    return c.call("index_add", {c.in(0), c.in(1), (c.in(2) * c.in(4)).cast(c.dtype), c.args[3]});
}

Expr layer_norm(const ExpandCall& c) {
    Shape axes;
    const auto count = static_cast<int64_t>(c.ints(1).size());
    for (int64_t i = 1; i <= count; ++i) axes.push_back(-i);
    return affine(shifted(c.in(0), axes, c.in(4)), operand_or_none(c, 2), operand_or_none(c, 3)).cast(c.dtype);
}
Expr group_norm(const ExpandCall& c) { return grouped(c, c.integer(1), 2, c.in(4)); }
Expr instance_norm(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    return grouped(c, c.shape(0)[1], 1, c.in(3));
}
Expr rms_norm(const ExpandCall& c) {
    Expr rstd;
    const Expr y = normalised_rms(c.in(0), c.in(1), c.in(2), rstd);
    return c.builder.list({{y, rstd}});
}
Expr add_layer_norm(const ExpandCall& c) {
    const Expr x = c.in(0) + c.in(1);
    return affine(shifted(x, {-1}, c.in(4)), c.in(2), c.in(3)).cast(c.dtype);
}
Expr add_rms_norm(const ExpandCall& c) {
    Expr rstd;
    const Expr x = c.in(0) + c.in(1);
    const Expr y = normalised_rms(x, c.in(2), c.in(3), rstd);
    return c.builder.list({{y, rstd, x}});
}

Expr var(const ExpandCall& c) { return variance(c).cast(c.dtype); }
Expr std(const ExpandCall& c) { return fn("sqrt", variance(c)).cast(c.dtype); }
Expr var_mean(const ExpandCall& c) { return with_mean(c, var(c)); }
Expr std_mean(const ExpandCall& c) { return with_mean(c, std(c)); }

Expr cosine_similarity(const ExpandCall& c) {
    auto of_length_one = [&](const Expr& v) {
        const Expr size = fn("sqrt", call("sum", {v * v, c.args[2], true}));
        return v / call("maximum", {size, c.in(3)});
    };
    return call("sum", {of_length_one(c.in(0)) * of_length_one(c.in(1)), c.args[2]}).cast(c.dtype);
}
Expr logit(const ExpandCall& c) {
    const Expr x = c.call("clamp", {c.in(0), c.in(1), 1.0 - c.in(1)});
    return fn("log_odds", x).cast(c.dtype);
}
Expr lrn(const ExpandCall& c) {
    // With these numbers the operator itself gives x / (1 + s): s follows without another window.
    const Expr v = c.in(0), ones = c.call("lrn", {v, c.args[1], 1.0, 1.0, 1.0});
    const Expr nonzero = call("not_equal", {v, 0.0});
    const Expr s = where(nonzero, v / where(nonzero, ones, 1.0) - 1.0, 0.0);
    return (v / call("pow", {s * c.in(3) + c.in(2), c.in(4)})).cast(c.dtype);
}
Expr hamming_window(const ExpandCall& c) {
    const Expr wave = c.call("hamming_window", {c.args[0], c.args[1], 0.0, 1.0, c.args[4]});
    if (c.integer(0) == 1) return wave * 0.0 + 1.0;
    return (wave * c.in(3) + c.in(2)).cast(wave.dtype());
}
Expr trapz(const ExpandCall& c) {
    if (c.has(1)) return c.call("trapz", {c.in(0), c.in(1), {"dim", c.args[3]}});
    return (c.call("trapz", {c.in(0), {"dim", c.args[3]}}) * c.in(2)).cast(c.dtype);
}
Expr attention(const ExpandCall& c) {
    const Expr query = (c.in(0) * c.in(3)).cast(c.dtype);
    return c.call("attention", {query, c.in(1), c.in(2), 1.0, c.args[4], c.args[5]});
}

}  // namespace lunaria::open
