// Operators: gather, scatter, masks. Indices count from 0, negative ones from the end; one out of range is an error.
#include <algorithm>

#include "core/ops/families.h"
#include "core/ops/layout.h"

namespace lunaria {

namespace {

// `input` without axis `axis`, with the axes of `index` in its place.
Shape gathered_shape(const Shape& input, int axis, const Shape& index) {
    Shape shape;
    for (int i = 0; i < axis; ++i) shape.push_back(input[i]);
    for (int64_t d : index) shape.push_back(d);
    for (int i = axis + 1; i < input.rank(); ++i) shape.push_back(input[i]);
    return shape;
}

void expect_vector_index(const Call& c, size_t i) {
    if (c.rank(i) > 1)
        throw shape_error(c.name(), str(c.op.signature.params[i].name, " must be a vector, not of shape ", c.shape(i)));
}

// y of index_add and index_copy: x with `count` positions along the axis.
Types infer_rows(const Call& c, int axis) {
    expect_vector_index(c, 1);
    Shape wanted = c.shape(0);
    if (c.rank(1) == 1) wanted[axis] = c.shape(1)[0];
    if (c.rank(1) == 0) wanted[axis] = 1;
    if (wanted.known() && c.shape(2).known() && !(wanted == c.shape(2)))
        throw shape_error(c.name(), str(c.op.signature.params[2].name, " must have shape ", wanted, " (x ", c.shape(0),
                                        " with ", wanted[axis], " positions along axis ", axis, "), not ", c.shape(2)));
    return {{c.dtype, c.shape(0)}};
}

void add_gathers(Registry& ops) {
    ops.add("gather(input_params/input/x/params: tensor, input_indices/indices/index: index, axis/dim: int = 0)")
        .doc("The parts of the input at the given positions along an axis; the axes of the indices take its place.")
        .example("gather(tensor{10, 20, 30}, tensor{2, 0, 2})", "tensor{30, 10, 30}")
        .infer([](const Call& c) -> Types {
            return {{c.type(0).dtype, gathered_shape(c.shape(0), c.axis(2, 0), c.shape(1))}};
        })
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            int axis = g.axis(2, 0);
            Shape rows = gathered_shape(g.shape(0), axis, {-1});
            Expr zero = stretched_zero(g.builder, g.dout.dtype(), g.shape(0));
            return {g.call("index_add", {zero, g.in(1).reshape({-1}), g.dout.reshape(rows), axis}), {}, {}};
        })
        .sample("f32[5,3], i64[2,4]:(0,5)")
        .sample("f32[2,7,3], i64[5]:(-7,7), 1")
        .sample("f32[4], i64[]:(0,4), -1");
    ops.add("index_select(input/x: tensor, axis/dim: int, index/indices: index)")
        .doc("The parts of the input at the positions of a vector along an axis.")
        .example("index_select(tensor{{1, 2}, {3, 4}}, 1, tensor{1})", "tensor{{2}, {4}}")
        .expand([](const ExpandCall& c) {
            expect_vector_index(c, 2);
            Expr index = c.rank(2) == 0 ? c.in(2).reshape({1}) : c.in(2);
            return c.call("gather", {c.in(0), index, c.args[1]});
        })
        .sample("f32[5,3], 0, i64[4]:(0,5)")
        .sample("f32[2,7], -1, i64[3]:(-7,7)");
    ops.add("index_add(x/input: same, indices/index: index, y/source/src: same, axis/dim: int, *, alpha: number = 1)")
        .doc("A copy of x to which the parts of y, times alpha, are added at the given positions along an axis.")
        .example("index_add(tensor{1, 2}, tensor{0, 0}, tensor{10, 20}, 0)", "tensor{31, 2}")
        .infer([](const Call& c) { return infer_rows(c, c.axis(3, 0)); })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            int axis = g.axis(3, 0);
            Expr rows = g.call("gather", {g.dout, g.in(1), axis}).reshape(g.shape(2));
            bool scaled = g.number(4) != 1;
            return {g.dout, {}, scaled ? rows * g.number(4) : rows, {}, {}};
        })
        .sample("f32[4,3], i64[5]:(0,4), f32[5,3], 0")
        .sample("f32[2,5], i64[3]:(-5,5), f32[2,3], 1, alpha=2.5");
}

}  // namespace

void add_index_ops(Registry& ops) { add_gathers(ops); }

}  // namespace lunaria
