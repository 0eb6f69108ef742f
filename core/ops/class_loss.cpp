// Operators: losses over classes.
// valid_labels turns class labels into indices that can be gathered safely and a mask of those that count; labels out
// of range are an error there, so that no other operator checks them. An element that does not count is replaced by 0
// (where), never multiplied by 0: its loss may be infinite.
#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/loss.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

// The axis of the classes: 1, or 0 of a single sample.
int class_axis(const Call& call) {
    if (call.rank(0) == 0) throw shape_error(call.name(), "the input must have an axis of classes, not rank 0");
    return call.rank(0) == 1 ? 0 : 1;
}

void expect_label_shape(const Call& call, int axis) {
    Shape wanted = call.shape(0), given = call.shape(1);
    wanted.erase(axis);
    if (wanted == given || (wanted.rank() == given.rank() && (!wanted.known() || !given.known()))) return;
    throw shape_error(call.name(),
                      str("the input has shape ", call.shape(0), " and the labels have shape ", given,
                          ": with classes on axis ", axis, " there must be one label per sample, shape ", wanted));
}

void expect_class_weight(const Call& call, size_t i, int64_t classes) {
    if (!call.has(i) || call.shape(i) == Shape{classes} || !call.shape(i).known()) return;
    throw shape_error(call.name(),
                      str("weight has shape ", call.shape(i), ": it must be (", classes, "), one per class"));
}

void expect_smoothing(const Call& call, size_t i) {
    double s = call.number(i);
    if (!(s >= 0 && s <= 1)) throw value_error(call.name(), str("label_smoothing must be in 0 .. 1, not ", s));
}

// A vector with one value per class, in a shape that broadcasts against the input.
Expr beside_classes(const Expr& weight, const Shape& shape, int axis) {
    Shape beside;
    beside.resize(shape.rank());
    beside[axis] = shape[axis];
    return weight.reshape(beside);
}

Shape with_axis(Shape shape, int axis) {
    shape.insert(axis, 1);
    return shape;
}

// Arguments of nll_loss and cross_entropy: (input, labels, weight, ignore_index, reduction, label_smoothing).
Expr label_loss(const ExpandCall& c, const Expr& logp, int axis) {
    Shape shape = c.shape(0), samples = c.shape(1);
    int64_t classes = shape[axis];
    Expr checked = call("valid_labels", {c.in(1), classes, c.args[3], {"where", c.name()}});
    Expr index = checked[0], keep = checked[1];
    Expr picked = call("gather_elements", {logp, axis, index.reshape(with_axis(samples, axis))}).reshape(samples);
    Expr weight, weights;
    if (c.has(2)) {
        weight = c.in(2);
        weights = call("gather", {weight, index, 0});
    }
    double smoothing = c.number(5);
    Expr loss = -(weight ? weighted_finite(weights, picked) : picked);
    if (smoothing > 0) {
        Expr all = weight ? weighted_finite(beside_classes(weight, shape, axis).broadcast_to(shape), logp) : logp;
        Expr smooth = -all.sum({axis});
        loss = loss * (1 - smoothing) + smooth * (smoothing / static_cast<double>(classes));
    }
    loss = call("where", {keep, loss, 0.0});
    if (c.string(4) != "mean") return reduced(loss, c.string(4));
    Expr count = weight ? call("sum", {call("where", {keep, weights, 0.0})}) : call("sum", {keep}).cast(loss.dtype());
    return call("sum", {loss}) / count;
}

// Targets are probabilities.
Expr probability_loss(const ExpandCall& c, const Expr& logp, int axis) {
    double smoothing = c.number(5), classes = static_cast<double>(c.shape(0)[axis]);
    Expr target = c.in(1);
    if (smoothing > 0) target = target * (1 - smoothing) + smoothing / classes;
    Expr terms = weighted_finite(target, logp);
    if (c.has(2)) terms = terms * beside_classes(c.in(2), c.shape(0), axis);
    Expr loss = -terms.sum({axis});
    return reduced(loss, c.string(4));
}

Expr expand_nll(const ExpandCall& c) {
    int axis = class_axis(c);
    expect_label_shape(c, axis);
    expect_class_weight(c, 2, c.shape(0)[axis]);
    expect_smoothing(c, 5);
    return label_loss(c, c.in(0), axis);
}

Expr expand_cross_entropy(const ExpandCall& c) {
    int axis = class_axis(c);
    expect_class_weight(c, 2, c.shape(0)[axis]);
    expect_smoothing(c, 5);
    bool soft = is_float(c.type(1).dtype);
    if (soft)
        expect_same_shape(c, 0, 1);
    else
        expect_label_shape(c, axis);
    if (c.shape(0).size() == 0 && c.string(4) == "mean")
        throw value_error(c.name(),
                          str("the batch is empty (shape ", c.shape(0), "): a mean over zero samples has no value"));
    Expr logp = call("log_softmax", {c.in(0), axis});
    return soft ? probability_loss(c, logp, axis) : label_loss(c, logp, axis);
}

Types infer_valid_labels(const Call& call) {
    expect_not_negative(call, 1, call.integer(1));
    return {{DType::i64, call.shape(0)}, {DType::boolean, call.shape(0)}};
}

// (input, target, p, margin, weight, reduction)
Expr expand_multi_margin(const ExpandCall& c) {
    int axis = class_axis(c);
    expect_label_shape(c, axis);
    int64_t classes = c.shape(0)[axis], p = c.integer(2);
    expect_class_weight(c, 4, classes);
    if (p != 1 && p != 2) throw value_error(c.name(), str("p must be 1 or 2, not ", p));
    Expr x = c.in(0);
    Expr index = call("valid_labels", {c.in(1), classes, {"where", c.name()}})[0];
    Expr at = index.reshape(with_axis(c.shape(1), axis));
    Expr picked = call("gather_elements", {x, axis, at});
    Expr terms = call("relu", {x - picked + c.number(3)});
    if (p == 2) terms = terms * terms;
    if (c.has(4)) terms = terms * call("gather", {c.in(4), index, 0}).reshape(at.shape());
    terms = call("scatter", {terms, axis, at, c.builder.zeros_like(picked)});
    return reduced(terms.sum({axis}) / static_cast<double>(classes), c.string(5));
}

// Each row of the target lists classes up to the first -1.
Expr expand_multilabel_margin(const ExpandCall& c) {
    int axis = class_axis(c);
    expect_same_shape(c, 0, 1);
    Expr x = c.in(0);
    Expr counts = call("label_counts", {c.in(1)}).cast(x.dtype());
    int wide = x.rank();
    Shape column = c.shape(0), row = c.shape(0);
    column.insert(wide, 1);
    row.insert(axis, 1);
    Expr others = call("equal", {counts, 0.0}).cast(x.dtype());
    Expr gaps = call("relu", {1.0 - x.reshape(column) + x.reshape(row)});
    Expr terms = gaps * counts.reshape(column) * others.reshape(row);
    return reduced(terms.sum({axis, wide}) / static_cast<double>(c.shape(0)[axis]), c.string(2));
}

// (input, target, weight, reduction)
Expr expand_multilabel_soft_margin(const ExpandCall& c) {
    (void)class_axis(c);
    expect_same_shape(c, 0, 1);
    Expr terms = call("sigmoid_cross_entropy", {c.in(0), c.in(1)});
    if (c.has(2)) terms = terms * c.in(2);
    return reduced(call("mean", {terms, terms.rank() - 1}), c.string(3));
}

}  // namespace

void add_class_loss_ops(Registry& ops) {
    ops.add(
           "valid_labels(labels: index, classes: int, ignore_index: int? = nil, *, where: string = \"valid_labels\") "
           "-> (index, keep)")
        .doc(
            "Checks class labels against the number of classes: gives indices (0 where a label is ignore_index) and "
            "which labels count.")
        .example("valid_labels(tensor{2, -100}, 3, -100)", "tensor{2, 0}")
        .infer(infer_valid_labels)
        .no_grad("labels are integers")
        .method(false)
        .batched(batch::of_first)
        .raises()
        .cut("...->...,...")
        .sample("i64[5]:(0,4), 4")
        .sample("i32[2,3]:(0,4), 4, 1");
    ops.add(
           "nll_loss(inputs/input/logits: float, target/labels: index, weight: float? = nil, ignore_index: int = -100, "
           "reduction: \"mean\"|\"sum\"|\"none\" = \"mean\", label_smoothing: number = 0.0)")
        .doc(
            "Negative log-likelihood of class labels given log-probabilities (classes on axis 1); the mean is weighted "
            "by the class weights.")
        .example("nll_loss(tensor{{-0.5, -1.0}}, tensor{1})", "tensor(1.0)")
        .expand(expand_nll)
        .open(open::smoothed_loss)
        .wide()
        .sample("f32[3,5], i64[3]:(0,5)")
        .sample("f32[2,4,3], i64[2,3]:(0,4), f32[4]:(0.5,2), 2, \"none\"");
    ops.add(
           "cross_entropy(input/logits/x: float, target/labels: tensor, weight: float? = nil, ignore_index: int = "
           "-100, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\", label_smoothing: number = 0.0)")
        .doc("Cross-entropy of logits (classes on axis 1) and class labels, or probabilities of the same shape.")
        .example("cross_entropy(tensor{{0.0, 0.0}}, tensor{1})", "tensor(0.6931)")
        .expand(expand_cross_entropy)
        .open(open::smoothed_loss)
        .wide()
        .sample("f32[3,5], i64[3]:(0,5)")
        .sample("f32[3,5], f32[3,5]:(0,1), f32[5]:(0.5,2), reduction=\"sum\"")
        .sample("f32[2,4,3], i32[2,3]:(0,4), f32[4]:(0.5,2), 2, \"none\", 0.1");
    ops.add(
           "multi_margin_loss(input/logits: float, target/labels: index, p: int = 1, margin: number = 1, weight: "
           "float? = nil, reduction: \"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc(
            "What the scores of other classes lack to stay below that of the label by the margin, to the power p, "
            "averaged over the classes.")
        .example("multi_margin_loss(tensor{{0.5, 0.0}}, tensor{0})", "tensor(0.25)")
        .expand(expand_multi_margin)
        .wide()
        .sample("f32[3,5], i64[3]:(0,5)")
        .sample("f32[3,5], i64[3]:(0,5), 2, 1.5, f32[5]:(0.5,2), \"sum\"");
    ops.add("label_counts(target: index)")
        .doc("How often each class is listed in the rows of the target, which end at the first -1.")
        .example("label_counts(tensor{{2, 0, -1}})", "tensor{{1, 0, 1}}")
        .infer([](const Call& call) -> Types {
            expect_rank_at_least(call, 0, 1);
            return {{DType::i64, call.shape(0)}};
        })
        .no_grad("labels are integers")
        .method(false)
        .raises()
        .cut("...!c->...!n")
        .sample("i64[3,4]:(-1,4)")
        .sample("i64[5]:(-1,5)");
    ops.add(
           "multilabel_margin_loss(input/logits: float, target/labels: index, reduction: \"mean\"|\"sum\"|\"none\" = "
           "\"mean\")")
        .doc(
            "What the scores of unlisted classes lack to stay 1 below those of the listed ones; each row of the target "
            "lists classes up to the first -1.")
        .example("multilabel_margin_loss(tensor{{0.5, 0.0}}, tensor{{0, -1}})", "tensor(0.25)")
        .expand(expand_multilabel_margin)
        .wide()
        .sample("f32[3,4], i64[3,4]:(-1,4)")
        .sample("f32[2,5], i64[2,5]:(-1,5), \"none\"");
    ops.add(
           "multilabel_soft_margin_loss(input/logits: float, target/labels: float, weight: float? = nil, reduction: "
           "\"mean\"|\"sum\"|\"none\" = \"mean\")")
        .doc("Binary cross-entropy of each class from logits, averaged over the classes.")
        .example("multilabel_soft_margin_loss(tensor{{0.0, 0.0}}, tensor{{1.0, 0.0}})", "tensor(0.6931)")
        .expand(expand_multilabel_soft_margin)
        .wide()
        .sample("f32[3,5], f32[3,5]:(0,1)")
        .sample("f32[3,5], f32[3,5]:(0,1), f32[5], \"none\"");
    add_ctc_ops(ops);
}

}  // namespace lunaria
