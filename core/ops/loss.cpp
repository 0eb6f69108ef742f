// Operators: loss functions over predictions and targets of the same shape.
// Composites, but for the two cross-entropies of probabilities, whose gradients have a closed form without 0/0.
#include "core/ops/loss.h"

#include <cmath>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/open.h"

namespace lunaria {

Expr reduced(const Expr& loss, std::string_view reduction) {
    return reduction == "none" ? loss : call(reduction == "sum" ? "sum" : "mean", {loss});
}

Expr weighted_finite(const Expr& weight, const Expr& x) {
    Expr dropped = call("logical_and", {call("equal", {weight, 0.0}), call("isinf", {x})});
    return weight * call("where", {dropped, x.builder().zeros_like(x), x});
}

namespace {

// The operands of a loss must have one shape: broadcasting a target by accident is the classic mistake.
void expect_equal_shapes(const Call& call, size_t i, size_t j) {
    Shape a = call.shape(i), b = call.shape(j);
    if (a.known() && b.known()) expect_same_shape(call, i, j);
}

Expr absolute(const Expr& e) { return call("abs", {e}); }

Expr choose(const Expr& condition, const Expr& yes, const Expr& no) { return call("where", {condition, yes, no}); }

Expr expand_mse(const ExpandCall& c) {
    Expr d = c.in(0) - c.in(1);
    return reduced(d * d, c.string(2));
}

Expr expand_l1(const ExpandCall& c) { return reduced(absolute(c.in(0) - c.in(1)), c.string(2)); }

Expr expand_smooth_l1(const ExpandCall& c) {
    expect_equal_shapes(c, 0, 1);
    double beta = c.number(2);
    if (!(beta >= 0)) throw value_error(c.name(), str("beta must not be negative, got ", beta));
    Expr x = c.in(0), t = c.in(1);
    Expr loss = beta == 0 ? absolute(x - t) : call("huber_element", {x, t, beta, 1 / beta});
    return reduced(loss, c.string(3));
}

Grads grad_huber(const GradRule& g) {
    Expr d = g.in(0) - g.in(1), delta = g.in(2);
    // d between -delta and delta. No expression contains delta alone, since a recorded rule would hold it as a constant
    // of its own.
    auto bounded = [&](const Expr& e) { return call("minimum", {e, delta}); };
    auto slope = [&] { return g.dout * g.in(3) * -bounded(-bounded(d)); };
    return {cotangent(g, 0, slope), cotangent(g, 1, [&] { return -slope(); }),
            cotangent(g, 2,
                      [&] {
                          Expr beyond = absolute(d) - delta;
                          return g.dout * g.in(3) * call("maximum", {beyond, g.builder.zeros_like(beyond)});
                      }),
            cotangent(g, 3, [&] {
                return g.dout * call("huber_element", {g.in(0), g.in(1), delta, 1.0});
            })};
}

Expr expand_huber(const ExpandCall& c) {
    double delta = c.number(3);
    if (!(delta > 0)) throw value_error(c.name(), str("delta must be positive, not ", delta));
    Expr loss = call("huber_element", {c.in(0), c.in(1), delta, 1.0});
    return reduced(loss, c.string(2));
}

// Of one element: -(t log x + (1 - t) log(1 - x)), the logarithms cut off at -100.
Types infer_bernoulli(const Call& call) {
    expect_same_shape(call, 0, 1);
    return {{call.dtype, call.shape(0)}};
}

Grads grad_bernoulli(const GradRule& g) {
    Expr x = g.in(0), t = g.in(1);
    Expr spread = call("maximum", {x * (1.0 - x), 1e-12});
    Expr one = call("bernoulli_cross_entropy", {x, g.builder.ones_like(t)});
    Expr zero = call("bernoulli_cross_entropy", {x, g.builder.zeros_like(t)});
    return {g.dout * (x - t) / spread, g.dout * (one - zero)};
}

Expr expand_bce(const ExpandCall& c) {
    expect_equal_shapes(c, 0, 1);
    Expr loss = call("bernoulli_cross_entropy", {c.in(0), c.in(1)});
    if (c.has(2)) loss = loss * c.in(2);
    return reduced(loss, c.string(3));
}

// Of one element, from the logit: (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x)).
Types infer_sigmoid_cross_entropy(const Call& call) {
    expect_same_shape(call, 0, 1);
    if (call.has(2)) expect_same_shape(call, 0, 2);
    return {{call.dtype, call.shape(0)}};
}

Grads grad_sigmoid_cross_entropy(const GradRule& g) {
    Expr x = g.in(0), t = g.in(1), s = call("sigmoid", {x}), softplus = -call("logsigmoid", {x});
    if (!g.has(2)) return {g.dout * (s - t), -(g.dout * x), {}};
    Expr p = g.in(2);
    Expr slope = s * (1.0 + (p - 1.0) * t) - p * t;
    return {g.dout * slope, g.dout * ((p - 1.0) * softplus - x), g.dout * t * softplus};
}

Expr expand_bce_with_logits(const ExpandCall& c) {
    expect_equal_shapes(c, 0, 1);
    Expr x = c.in(0), t = c.in(1);
    Expr loss = c.has(3) ? call("sigmoid_cross_entropy", {x, t, c.in(3).broadcast_to(x.shape())})
                         : call("sigmoid_cross_entropy", {x, t});
    if (c.has(2)) loss = loss * c.in(2);
    return reduced(loss, c.string(4));
}

// t (log t - x), which is 0 where t is 0 even when x is -inf.
Expr expand_kl_div(const ExpandCall& c) {
    Expr x = c.in(0), t = c.in(1);
    Expr loss;
    if (c.boolean(3)) {
        Expr p = call("exp", {t});
        loss = weighted_finite(p, t) - weighted_finite(p, x);
    } else {
        loss = call("xlogy", {t, t}) - weighted_finite(t, x);
    }
    if (c.string(2) != "batchmean") return reduced(loss, c.string(2));
    if (c.rank(0) == 0) throw shape_error(c.name(), "batchmean needs at least one axis, not rank 0");
    return call("sum", {loss}) / static_cast<double>(c.shape(0)[0]);
}

Expr expand_hinge_embedding(const ExpandCall& c) {
    Expr x = c.in(0), t = c.in(1), zeros = c.builder.zeros_like(x);
    Expr near = choose(call("equal", {t, 1.0}), x, zeros);
    Expr far = choose(call("equal", {t, -1.0}), call("relu", {c.number(2) - x}), zeros);
    return reduced(near + far, c.string(3));
}

Expr expand_cosine_embedding(const ExpandCall& c) {
    expect_equal_shapes(c, 0, 1);
    if (std::abs(c.number(3)) > 1) throw value_error(c.name(), str("margin must be in -1 .. 1, not ", c.number(3)));
    Expr a = c.in(0), b = c.in(1), t = c.in(2);
    if (a.rank() == 0) throw shape_error(c.name(), "input1 must have at least one axis, not rank 0");
    int last = a.rank() - 1;
    auto square = [&](const Expr& e) { return (e * e).sum({last}) + 1e-12; };
    Expr cosine = (a * b).sum({last}) * call("rsqrt", {square(a) * square(b)});
    Expr zeros = c.builder.zeros_like(cosine);
    Expr alike = choose(call("equal", {t, 1.0}), 1.0 - cosine, zeros);
    Expr unlike = choose(call("equal", {t, -1.0}), call("relu", {cosine - c.number(3)}), zeros);
    return reduced(alike + unlike, c.string(4));
}

Expr expand_margin_ranking(const ExpandCall& c) {
    Expr gap = c.in(0) - c.in(1);
    return reduced(call("relu", {c.number(3) - c.in(2) * gap}), c.string(4));
}

Expr expand_soft_margin(const ExpandCall& c) {
    expect_equal_shapes(c, 0, 1);
    return reduced(-call("logsigmoid", {c.in(0) * c.in(1)}), c.string(2));
}

Expr distance(const Expr& a, const Expr& b, double p, double eps) {
    return call("vector_norm", {a - b + eps, p, a.rank() - 1});
}

Expr expand_triplet_margin(const ExpandCall& c) {
    Expr anchor = c.in(0), positive = c.in(1), negative = c.in(2);
    double p = c.number(4), eps = c.number(5);
    if (anchor.rank() == 0) throw shape_error(c.name(), "anchor must have at least one axis, not rank 0");
    if (!(c.number(3) > 0)) throw value_error(c.name(), str("margin must be positive, not ", c.number(3)));
    Expr near = distance(anchor, positive, p, eps), far = distance(anchor, negative, p, eps);
    if (c.boolean(6)) far = call("minimum", {far, distance(positive, negative, p, eps)});
    return reduced(call("relu", {near - far + c.number(3)}), c.string(7));
}

// The variance is held above eps without a gradient through the bound.
Expr expand_gaussian_nll(const ExpandCall& c) {
    if (!(c.number(4) > 0)) throw value_error(c.name(), str("eps must be positive, not ", c.number(4)));
    Expr x = c.in(0), t = c.in(1), var = c.in(2);
    if (var.rank() + 1 == x.rank()) {
        Shape beside = var.shape();
        beside.push_back(1);
        var = var.reshape(beside);
    }
    Expr low = call("stop_gradient", {call("relu", {c.number(4) - var})});
    var = var + low;
    Expr d = x - t;
    Expr loss = (call("log", {var}) + d * d / var) * 0.5;
    if (c.boolean(3)) loss = loss + 0.5 * std::log(2 * M_PI);
    return reduced(loss, c.string(5));
}

void add_differences(Registry& ops) {
    ops.add("mse_loss(input/logits/x: float, target/labels: float, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc("Squared differences between input and target, averaged by default.")
        .example("mse_loss(tensor{1.0, 2.0}, tensor{0.0, 4.0})", "tensor(2.5)")
        .expand(expand_mse)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[3,5], f32[5], \"none\"");
    ops.add("l1_loss(input/logits/x: float, target/labels: float, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc("Absolute differences between input and target, averaged by default.")
        .example("l1_loss(tensor{1.0, 2.0}, tensor{0.0, 4.0})", "tensor(1.5)")
        .expand(expand_l1)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[7], f32[7], \"sum\"");
    ops.add(
           "smooth_l1_loss(input/logits/x: float, target/labels: float, beta: number = 1.0, reduction: "
           "\"mean\"|\"sum\"|\"none\" = \"none\")")
        .doc(
            "Half the squared difference, divided by beta, below beta, and the absolute difference less beta / 2 "
            "above.")
        .example("smooth_l1_loss(tensor{0.5, 2.0}, tensor{0.0, 0.0})", "tensor{0.125, 1.5}")
        .expand(expand_smooth_l1)
        .open(open::smooth_l1_loss)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[7], f32[7], 0.5, \"mean\"");
    ops.add("huber_element(input: float, target: float, delta: float, scale: float)")
        .doc(
            "Half the squared difference up to delta, and delta times the absolute difference less delta / 2 beyond; "
            "times scale.")
        .example("huber_element(tensor{0.5, 2.0}, tensor{0.0, 0.0}, 1.0, 2.0)", "tensor{0.25, 3.0}")
        .elementwise()
        .grad(grad_huber)
        .method(false)
        .wide()
        .sample("f32[3,5], f32[3,5]:(2,3), 1.0, 0.5")
        .sample("f32[7], f32[7], f32[7]:(2,3), 2.0");
    ops.add(
           "huber_loss(input/logits/x: float, target/labels: float, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\", "
           "delta: number = 1.0)")
        .doc("Half the squared difference up to delta, and delta times the absolute difference less delta / 2 beyond.")
        .example("huber_loss(tensor{0.5, 2.0}, tensor{0.0, 0.0}, \"none\")", "tensor{0.125, 1.5}")
        .expand(expand_huber)
        .open(open::huber_loss)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[7], f32[7], \"sum\", 0.5");
    ops.add(
           "kl_div(logits/input/x: float, labels/target: float, reduction: \"mean\"|\"sum\"|\"none\"|\"batchmean\" = "
           "\"mean\", *, log_target: bool = false)")
        .doc("Kullback-Leibler divergence of the log-probabilities `logits` from the probabilities `labels`.")
        .example("kl_div(tensor{-0.6931, -0.6931}, tensor{1.0, 0.0}, \"sum\")", "tensor(0.6931)")
        .expand(expand_kl_div)
        .wide()
        .sample("f32[3,5], f32[3,5]:(0.1,1)")
        .sample("f32[3,5], f32[3,5], \"batchmean\", log_target=true");
}

void add_binary(Registry& ops) {
    ops.add("bernoulli_cross_entropy(input/logits: float, target/labels: float)")
        .doc("Cross-entropy of targets and probabilities, element by element, with logarithms cut off at -100.")
        .example("bernoulli_cross_entropy(tensor{0.5, 1.0}, tensor{1.0, 1.0})", "tensor{0.6931, 0.0}")
        .infer(infer_bernoulli)
        .grad(grad_bernoulli)
        .method(false)
        .batched(batch::last_axes<0>)
        .raises()
        .wide()
        .sample("f32[3,5]:(0.1,0.9), f32[3,5]:(0,1)")
        .sample("f32[7]:(0.1,0.9), f32[7]:(0,1)");
    ops.add(
           "binary_cross_entropy(logits/input/x: float, labels/target: float, weight: float? = nil, reduction: "
           "\"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc(
            "Cross-entropy of probabilities in [0, 1] and targets: -(t log x + (1 - t) log(1 - x)), averaged by "
            "default.")
        .example("binary_cross_entropy(tensor{0.5, 0.5}, tensor{1.0, 0.0})", "tensor(0.6931)")
        .expand(expand_bce)
        .wide()
        .sample("f32[3,5]:(0.1,0.9), f32[3,5]:(0,1)")
        .sample("f32[3,5]:(0.1,0.9), f32[3,5]:(0,1), f32[5], \"none\"");
    ops.add("sigmoid_cross_entropy(logits/input: float, labels/target: float, pos_weight: float? = nil)")
        .alias("sigmoid_cross_entropy_with_logits")
        .doc("Cross-entropy of targets and the sigmoid of logits, element by element, without overflow.")
        .example("sigmoid_cross_entropy(tensor{0.0, 100.0}, tensor{1.0, 1.0})", "tensor{0.6931, 0.0}")
        .infer(infer_sigmoid_cross_entropy)
        .grad(grad_sigmoid_cross_entropy)
        .batched(batch::last_axes<0>)
        .wide()
        .sample("f32[3,5], f32[3,5]:(0,1)")
        .sample("f32[7], f32[7]:(0,1), f32[7]:(0.5,2)");
    ops.add(
           "binary_cross_entropy_with_logits(logits/input/x: float, label/target/labels: float, weight: float? = nil, "
           "pos_weight: float? = nil, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc(
            "Cross-entropy of targets and the sigmoid of logits, averaged by default; pos_weight weighs the positive "
            "targets.")
        .example("binary_cross_entropy_with_logits(tensor{0.0, 0.0}, tensor{1.0, 0.0})", "tensor(0.6931)")
        .expand(expand_bce_with_logits)
        .wide()
        .sample("f32[3,5], f32[3,5]:(0,1)")
        .sample("f32[3,5], f32[3,5]:(0,1), f32[3,5]:(0.5,2), f32[5]:(0.5,2), \"none\"");
    ops.add(
           "soft_margin_loss(input/logits/x: float, target/labels: float, reduction: \"mean\"|\"sum\"|\"none\" = "
           "\"mean\")")
        .doc("Logistic loss log(1 + exp(-t x)) of scores and targets that are 1 or -1.")
        .example("soft_margin_loss(tensor{0.0, 0.0}, tensor{1.0, -1.0})", "tensor(0.6931)")
        .expand(expand_soft_margin)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[7], f32[7], \"sum\"");
}

void add_margins(Registry& ops) {
    ops.add(
           "hinge_embedding_loss(inputs/input/logits: float, targets/target/labels: float, margin: number = 1.0, "
           "reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc("The distance itself where the target is 1, what it lacks to the margin where the target is -1.")
        .example("hinge_embedding_loss(tensor{0.25, 0.25}, tensor{1.0, -1.0})", "tensor(0.5)")
        .expand(expand_hinge_embedding)
        .open(open::hinge_embedding_loss)
        .wide()
        .sample("f32[3,5], f32[3,5]")
        .sample("f32[7], f32[7], 2.0, \"sum\"");
    ops.add(
           "cosine_embedding_loss(input1/logits_x1: float, input2/logits_x2: float, target/labels: float, margin: "
           "number = 0.0, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc(
            "One less the cosine of two vectors where the target is 1, what the cosine exceeds the margin by where it "
            "is -1.")
        .example("cosine_embedding_loss(tensor{{1.0, 0.0}}, tensor{{0.0, 1.0}}, tensor{1.0})", "tensor(1.0)")
        .expand(expand_cosine_embedding)
        .wide()
        .sample("f32[3,5], f32[3,5], f32[3]")
        .sample("f32[2,4], f32[2,4], f32[2], 0.5, \"none\"");
    ops.add(
           "margin_ranking_loss(input1: float, input2: float, target: float, margin: number = 0.0, reduction: "
           "\"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc(
            "What the first score lacks to exceed the second by the margin (target 1), or the other way round (target "
            "-1).")
        .example("margin_ranking_loss(tensor{1.0}, tensor{3.0}, tensor{1.0})", "tensor(2.0)")
        .expand(expand_margin_ranking)
        .open(open::margin_ranking_loss)
        .wide()
        .sample("f32[5], f32[5], f32[5]")
        .sample("f32[3,2], f32[3,2], f32[3,2], 0.5, \"none\"");
    ops.add(
           "triplet_margin_loss(anchor: float, positive: float, negative: float, margin: number = 1.0, p: number = 2, "
           "eps: number = 1e-6, swap: bool = false, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc("What the negative lacks to be farther from the anchor than the positive by the margin.")
        .example("triplet_margin_loss(tensor{{0.0, 0.0}}, tensor{{3.0, 4.0}}, tensor{{0.0, 2.0}})", "tensor(4.0)")
        .expand(expand_triplet_margin)
        .wide()
        .sample("f32[3,5], f32[3,5], f32[3,5], 9.0")
        .sample("f32[3,4], f32[3,4], f32[3,4], 5.0, 3, swap=true, reduction=\"none\"");
    ops.add(
           "gaussian_nll_loss(x/input: float, target: float, var: float, full: bool = false, eps: number = 1e-6, "
           "reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc(
            "Negative log-likelihood of the target under a normal distribution with mean x and variance var; `full` "
            "adds the constant.")
        .example("gaussian_nll_loss(tensor{1.0, 2.0}, tensor{1.0, 4.0}, tensor{1.0, 1.0})", "tensor(1.0)")
        .expand(expand_gaussian_nll)
        .wide()
        .sample("f32[3,5], f32[3,5], f32[3,5]:(0.5,2)")
        .sample("f32[3,5], f32[3,5], f32[3,1]:(0.5,2), true, reduction=\"sum\"");
}

}  // namespace

void add_loss_ops(Registry& ops) {
    add_differences(ops);
    add_binary(ops);
    add_margins(ops);
    add_class_loss_ops(ops);
}

}  // namespace lunaria
