// Operators: distances, similarities and cross products of vectors.
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"
#include "core/ops/open.h"
#include "core/ops/reduce.h"

namespace lunaria {

namespace {

Expr part(const Expr& e, int axis, int64_t at) {
    Shape begin, size = e.shape();
    for (int i = 0; i < e.rank(); ++i) begin.push_back(0);
    begin[axis] = at;
    size[axis] = 1;
    return call("slice", {e, begin, size});
}

Expr expand_cross(const ExpandCall& c) {
    Shape shape = broadcast(c.name(), c.shape(0), c.shape(1));
    int axis = -1;
    if (c.has(2)) {
        axis = normal_axis(c.name(), c.integer(2), shape.rank(), "dim");
    } else {
        for (int i = shape.rank(); i-- > 0;)
            if (shape[i] == 3) axis = i;  // the first axis of size 3
    }
    if (axis < 0 || shape[axis] != 3)
        throw shape_error(c.name(), str("the operands have shapes ", c.shape(0), " and ", c.shape(1),
                                        ": the axis of the cross product must have size 3"));
    Expr a = c.in(0).broadcast_to(shape), b = c.in(1).broadcast_to(shape);
    Expr rows[3];
    for (int i = 0; i < 3; ++i) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        rows[i] = part(a, axis, j) * part(b, axis, k) - part(a, axis, k) * part(b, axis, j);
    }
    return c.call("concat", {c.builder.list(rows), axis});
}

// Axes in front of the last two.
Shape batches_of(const Shape& s) {
    Shape batch;
    for (int i = 0; i + 2 < s.rank(); ++i) batch.push_back(s[i]);
    return batch;
}

Types infer_cdist(const Call& c) {
    for (size_t i : {0, 1}) expect_rank_at_least(c, i, 2);
    Shape a = c.shape(0), b = c.shape(1);
    if (a.back() != b.back() && a.back() != kUnknownDim && b.back() != kUnknownDim)
        throw shape_error(c.name(), str("x1 is ", a, " and x2 is ", b, ": their last axes must be equal"));
    double p = c.number(2);
    if (!(p >= 0)) throw value_error(c.name(), str("p must be at least 0, not ", p));
    Shape out = broadcast(c.name(), batches_of(a), batches_of(b));
    out.push_back(a[a.rank() - 2]);
    out.push_back(b[b.rank() - 2]);
    if (out.known()) checked_shape(c.name(), out.dims(), size_of(c.dtype));
    return {{c.dtype, out}};
}

// The parameters of pair_products and pair_sums. With d = x1[i, k] - x2[j, k], divided by scale[i, j], and f(d) =
// |d|^power (times the sign of d where odd) these give
//     pair_products[i, j] = sum over k of left[i, k] right[j, k] f(d)
//     pair_sums[i, k]     = sum over j of left[i, j] right[j, k] f(d)
// Their derivatives are made of the same two, and those of distances too: derivatives of all orders take as much memory
// as the operands, while the differences themselves would take a number for each i, j and k.
enum PairParam : size_t { kPairFirst, kPairSecond, kLeft, kRight, kScale, kPower, kOdd };

struct Pairs {
    Expr x1, x2, left, right, scale;  // those that are missing are 1
    double power;
    bool odd;

    Expr call(std::string_view op) const {
        auto given = [](const Expr& e) { return e ? Arg(e) : Arg(Value()); };
        return lunaria::call(op, {x1, x2, given(left), given(right), given(scale), power, odd});
    }
    Expr products() const { return call("pair_products"); }
    Expr sums() const { return call("pair_sums"); }
    // The same with the rows exchanged: f of the same differences is sign() times this one's.
    Pairs turned() const {
        auto transposed = [](const Expr& e) { return e ? matrix_transpose(e) : e; };
        return {x2, x1, transposed(left), right, transposed(scale), power, odd};
    }
    double sign() const { return odd ? -1 : 1; }
    bool is_steady() const { return power == 0 || std::isinf(power); }
    // f' without the factor `power`, which the derivative multiplies, and without the division by the scale.
    Pairs derived() const {
        Pairs d = *this;
        d.power = power - 1;
        d.odd = !odd;
        return d;
    }
};

Expr product_of(const Expr& a, const Expr& b) { return a && b ? a * b : a ? a : b; }
Expr quotient_of(const Expr& a, const Expr& b) { return !b ? a : a ? a / b : 1.0 / b; }

Types infer_pairs(const Call& c, bool products) {
    for (size_t i : {kPairFirst, kPairSecond, kLeft, kRight, kScale})
        if (c.has(i)) expect_rank_at_least(c, i, 2);
    const Shape a = c.shape(kPairFirst), b = c.shape(kPairSecond);
    const int64_t n = a[a.rank() - 2], m = b[b.rank() - 2], depth = a.back();
    Shape batch = broadcast(c.name(), batches_of(a), batches_of(b));
    auto check = [&](size_t i, int64_t rows, int64_t columns) {
        if (!c.has(i)) return;
        const Shape s = c.shape(i);
        if (s.known() && a.known() && b.known() && (s[s.rank() - 2] != rows || s.back() != columns))
            throw shape_error(c.name(), str(param_name(c, i), " is ", s, " where x1 is ", a, " and x2 is ", b,
                                            ": its last two axes must have the sizes ", rows, " and ", columns));
        batch = broadcast(c.name(), batch, batches_of(s));
    };
    check(kPairSecond, m, depth);
    check(kLeft, n, products ? depth : m);
    check(kRight, m, depth);
    check(kScale, n, m);
    batch.push_back(n);
    batch.push_back(products ? m : depth);
    return {{c.dtype, batch}};
}

Pairs pairs_of(const GradRule& g) {
    auto in = [&](size_t i) { return g.has(i) ? g.in(i) : Expr(); };
    return {in(kPairFirst), in(kPairSecond), in(kLeft), in(kRight), in(kScale), g.number(kPower), g.boolean(kOdd)};
}

// Adds the derivatives by the rows: `weight`[i, j], `first`[i, k] and `right`[j, k] are the factors of f'.
void add_row_gradients(Grads& grads, const GradRule& g, Pairs f, const Expr& weight, const Expr& first) {
    if (f.is_steady()) return;
    Pairs slope = f.derived();
    slope.left = quotient_of(weight, f.scale);
    const Pairs other = [&] {
        Pairs turned = slope.turned();
        turned.right = first;
        return turned;
    }();
    grads[kPairFirst] = sum_to(product_of(first, slope.sums()) * f.power, g.shape(kPairFirst));
    grads[kPairSecond] = sum_to(product_of(f.right, other.sums()) * (-f.power * slope.sign()), g.shape(kPairSecond));
}

Grads grad_pair_products(const GradRule& g) {
    const Pairs f = pairs_of(g);
    Grads grads(g.args.size());
    Pairs weighted = f;
    weighted.left = g.dout;
    add_row_gradients(grads, g, f, g.dout, f.left);
    if (f.left) grads[kLeft] = sum_to(weighted.sums(), g.shape(kLeft));
    if (f.right) {
        Pairs turned = weighted.turned();
        turned.right = f.left;
        grads[kRight] = sum_to(turned.sums() * f.sign(), g.shape(kRight));
    }
    if (f.scale && !f.is_steady()) grads[kScale] = sum_to(g.dout * g.out / f.scale * -f.power, g.shape(kScale));
    return grads;
}

Grads grad_pair_sums(const GradRule& g) {
    const Pairs f = pairs_of(g);
    Grads grads(g.args.size());
    add_row_gradients(grads, g, f, f.left, g.dout);
    Pairs products = f;
    products.left = g.dout;
    const bool scaled = f.scale && !f.is_steady();
    const Expr by_weight = f.left || scaled ? products.products() : Expr();
    if (f.left) grads[kLeft] = sum_to(by_weight, g.shape(kLeft));
    if (f.right) {
        Pairs turned = f.turned();
        turned.right = g.dout;
        grads[kRight] = sum_to(turned.sums() * f.sign(), g.shape(kRight));
    }
    if (scaled) grads[kScale] = sum_to(product_of(f.left, by_weight) / f.scale * -f.power, g.shape(kScale));
    return grads;
}

// Where two rows are equal the distance has no derivative; its gradient is 0 there.
Grads grad_cdist(const GradRule& g) {
    const double p = g.number(2);
    if (p == 0) return Grads(3);
    const Expr x1 = g.in(0), x2 = g.in(1), dout = g.dout;
    // The gradient goes to the differences that equal the distance. A distance that was rounded to fewer digits would
    // equal none of them.
    const Expr out = std::isinf(p) ? g.call("cdist", {x1, x2, p}) : g.out;
    Expr equal = call("equal", {out, 0.0});
    Expr length = call("where", {equal, 1.0, out}), weight = call("where", {equal, 0.0, dout});
    Pairs slope{x1, x2, weight, Expr(), Expr(), p - 1, true};
    if (p == 2) {
        slope.left = weight / length;
    } else if (p != 1) {
        slope.scale = length;
        if (std::isinf(p)) {
            // If several differences are the largest, they share the cotangent evenly.
            slope.power = p;
            Pairs largest = slope;
            largest.left = Expr();
            largest.odd = false;
            slope.left = weight / call("where", {equal, 1.0, largest.products()});
        }
    }
    return {sum_to(slope.sums(), g.shape(0)), sum_to(slope.turned().sums(), g.shape(1)), {}};
}

Expr expand_cosine_similarity(const ExpandCall& c) {
    Shape shape = broadcast(c.name(), c.shape(0), c.shape(1));
    int axis = normal_axis(c.name(), c.integer(2), shape.rank(), "dim");
    double eps = c.number(3);
    Expr a = c.in(0).broadcast_to(shape), b = c.in(1).broadcast_to(shape);
    auto length = [&](const Expr& e) {
        return c.call("maximum", {c.call("vector_norm", {e, {"ord", 2.0}, {"axis", axis}, {"keepdims", true}}), eps});
    };
    // Divided before the product: lengths of 1e-30 would underflow in it.
    return ((a / length(a)) * (b / length(b))).sum({axis});
}

}  // namespace

void add_distance_ops(Registry& ops) {
    ops.add("cross(input/a/x: same, other/b/y: same, dim/axis: int? = nil)")
        .doc("Cross product of vectors of three elements along an axis (default: the first axis of size 3).")
        .example("cross(tensor{1.0, 0.0, 0.0}, tensor{0.0, 1.0, 0.0})", "tensor{0.0, 0.0, 1.0}")
        .expand(expand_cross)
        .wide()
        .sample("f32[4,3], f32[4,3], dim=1")
        .sample("f32[3,2], f32[3,1]");
    // A primitive, since the differences of all rows would take many times the memory of the result.
    ops.add("cdist(x1/a/input: float, x2/b/other: float, p: number = 2.0)")
        .doc("Distances, in the p-norm, between every row of one matrix and every row of another.")
        .example("cdist(tensor{{0.0, 0.0}}, tensor{{3.0, 4.0}, {0.0, 1.0}})", "tensor{{5.0, 1.0}}")
        .infer(infer_cdist)
        .grad(grad_cdist)
        .wide()
        .cut("...p!k,...r!k->...pr")
        .sample("f32[2,4,3], f32[2,5,3]")
        .sample("f32[3,2], f32[1,2], p=1.0")
        .sample("f32[3,2], f32[4,2], p=3.0")
        .sample("f32[3,1,7,5], f32[2,70,5], p=2.5")
        .sample("f32[3,4], f32[2,4], p=inf");
    ops.add(
           "pair_products(x1: float, x2: float, left: float? = nil, right: float? = nil, scale: float? = nil, power: "
           "number = 1.0, odd: bool = true)")
        .doc(
            "For rows i of x1 and j of x2 the sum over k of left[i, k] right[j, k] |d|^power with d = (x1[i, k] - "
            "x2[j, "
            "k]) / scale[i, j], where odd with the sign of d.")
        .example("pair_products(tensor{{1.0, 2.0}}, tensor{{0.0, 5.0}})", "tensor{{-2.0}}")
        .infer([](const Call& c) { return infer_pairs(c, true); })
        .grad(grad_pair_products)
        .method(false)
        .wide()
        .cut("...ik,...jk,...ik,...jk,...ij->...ij")
        .sample("f32[3,4], f32[2,4]")
        .sample("f32[5,3,4], f32[2,4], f32[3,4], f32[2,4], f32[3,2]:(1,2), 3.0, true")
        .sample("f32[3,4], f32[2,4], nil, f32[2,4], f32[3,2]:(1,2), 2.5, false");
    ops.add(
           "pair_sums(x1: float, x2: float, left: float? = nil, right: float? = nil, scale: float? = nil, power: "
           "number = 1.0, odd: bool = true)")
        .doc(
            "For rows i of x1 and their elements k the sum over rows j of x2 of left[i, j] right[j, k] |d|^power with "
            "d "
            "= (x1[i, k] - x2[j, k]) / scale[i, j], where odd with the sign of d.")
        .example("pair_sums(tensor{{1.0, 2.0}}, tensor{{0.0, 5.0}})", "tensor{{1.0, -3.0}}")
        .infer([](const Call& c) { return infer_pairs(c, false); })
        .grad(grad_pair_sums)
        .method(false)
        .wide()
        .cut("...ik,...jk,...ij,...jk,...ij->...ik")
        .sample("f32[3,4], f32[2,4]")
        .sample("f32[5,3,4], f32[2,4], f32[3,2], f32[2,4], f32[3,2]:(1,2), 3.0, true")
        .sample("f32[3,4], f32[2,4], nil, f32[2,4], f32[3,2]:(1,2), 2.5, false");
    ops.add("cosine_similarity(x1/a/input: float, x2/b/other: float, dim/axis: int = 1, eps: number = 1e-8)")
        .doc("Cosine of the angle between vectors along an axis.")
        .example("cosine_similarity(tensor{{1.0, 0.0}}, tensor{{1.0, 1.0}})", "tensor{0.7071068}")
        .expand(expand_cosine_similarity)
        .open(open::cosine_similarity)
        .wide()
        .sample("f32[3,4], f32[3,4]")
        .sample("f32[2,5,3], f32[5,3], dim=-1");
}

}  // namespace lunaria
