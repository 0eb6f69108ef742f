// Operators: distances, similarities and cross products of vectors.
#include "core/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

Expr with_axis(const Expr& e, int axis) {
    Shape s = e.shape();
    s.insert(axis, 1);
    return e.reshape(s);
}

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

Expr expand_cdist(const ExpandCall& c) {
    for (size_t i : {0, 1}) expect_rank_at_least(c, i, 2);
    Shape a = c.shape(0), b = c.shape(1);
    if (a.back() != b.back())
        throw shape_error(c.name(), str("x1 is ", a, " and x2 is ", b, ": their last axes must be equal"));
    double p = c.number(2);
    if (!(p >= 0)) throw value_error(c.name(), str("p must be at least 0, not ", p));
    Expr difference = with_axis(c.in(0), a.rank() - 1) - with_axis(c.in(1), b.rank() - 2);
    return c.call("vector_norm", {difference, {"ord", p}, {"axis", int64_t{-1}}});
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
        .sample("f32[4,3], f32[4,3], dim=1")
        .sample("f32[3,2], f32[3,1]");
    ops.add("cdist(x1/a/input: float, x2/b/other: float, p: number = 2.0)")
        .doc("Distances, in the p-norm, between every row of one matrix and every row of another.")
        .example("cdist(tensor{{0.0, 0.0}}, tensor{{3.0, 4.0}, {0.0, 1.0}})", "tensor{{5.0, 1.0}}")
        .expand(expand_cdist)
        .sample("f32[2,4,3], f32[2,5,3]")
        .sample("f32[3,2], f32[1,2], p=1.0")
        .sample("f32[3,2], f32[4,2], p=3.0");
    ops.add("cosine_similarity(x1/a/input: float, x2/b/other: float, dim/axis: int = 1, eps: number = 1e-8)")
        .doc("Cosine of the angle between vectors along an axis.")
        .example("cosine_similarity(tensor{{1.0, 0.0}}, tensor{{1.0, 1.0}})", "tensor{0.7071068}")
        .expand(expand_cosine_similarity)
        .sample("f32[3,4], f32[3,4]")
        .sample("f32[2,5,3], f32[5,3], dim=-1");
}

}  // namespace lunaria
