// Operators: gather, scatter, masks. Indices count from 0, negative ones from the end; one out of range is an error.
#include <algorithm>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"
#include "core/ops/open.h"

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
        throw shape_error(c.name(), str(param_name(c, i), " must be a vector, not of shape ", c.shape(i)));
}

// y of index_add and index_copy: x with `count` positions along the axis.
Types infer_rows(const Call& c, int axis) {
    expect_vector_index(c, 1);
    Shape wanted = c.shape(0);
    if (c.rank(1) == 1) wanted[axis] = c.shape(1)[0];
    if (c.rank(1) == 0) wanted[axis] = 1;
    if (wanted.known() && c.shape(2).known() && !(wanted == c.shape(2)))
        throw shape_error(c.name(), str(param_name(c, 2), " must have shape ", wanted, " (x ", c.shape(0), " with ",
                                        wanted[axis], " positions along axis ", axis, "), not ", c.shape(2)));
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
            const Shape index = g.shape(1);
            Shape rows = gathered_shape(g.shape(0), axis, {index.known() ? index.size() : -1});
            Expr zero = stretched_zero(g.builder, g.dout.dtype(), g.shape(0));
            return {g.call("index_add", {zero, g.in(1).reshape({-1}), g.dout.reshape(rows), axis}), {}, {}};
        })
        .batched(batch::gather)
        .raises()
        .moves()
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
        .grad([](const GradRule& g) -> Grads {
            int axis = g.axis(3, 0);
            Expr rows = g.call("gather", {g.dout, g.in(1), axis}).reshape(g.shape(2));
            bool scaled = g.number(4) != 1;
            return {g.dout, {}, scaled ? rows * g.number(4) : rows, {}, {}};
        })
        .alias("inplace_index_add")
        .batched(batch::index_add)
        .raises()
        .open(open::index_add)
        .sample("f32[4,3], i64[5]:(0,4), f32[5,3], 0")
        .sample("f32[2,5], i64[3]:(-5,5), f32[2,3], 1, alpha=2.5");
}

Expr zero_of(const GradRule& g, size_t i) { return stretched_zero(g.builder, g.dout.dtype(), g.shape(i)); }

void add_element_gathers(Registry& ops) {
    ops.add("gather_elements(input/x: tensor, dim/axis: int, index/indices: index)")
        .doc("For each position of index the element of the input whose coordinate along dim is the value there.")
        .example("gather_elements(tensor{{1, 2}, {3, 4}}, 1, tensor{{0}, {1}})", "tensor{{1}, {4}}")
        .infer([](const Call& c) -> Types {
            Shape in = c.shape(0), index = c.shape(2);
            int axis = c.axis(1, 0);
            bool fits = in.rank() == index.rank();
            for (int i = 0; fits && i < in.rank(); ++i) fits = i == axis || index[i] <= in[i] || in[i] == kUnknownDim;
            if (!fits)
                throw shape_error(c.name(),
                                  str("index of shape ", index, " does not fit an input of shape ", in,
                                      ": it needs as many axes and, but for axis ", axis, ", no larger ones"));
            return {{c.type(0).dtype, index}};
        })
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("tensor_scatter_elements", {zero_of(g, 0), g.in(2), g.dout, g.args[1], "add"}), {}, {}};
        })
        .alias("gather_d")
        .batched(batch::along<1>)
        .raises()
        .moves()
        .cut("@gather_elements")
        .sample("f32[3,4], 0, i64[2,4]:(0,3)")
        .sample("f32[3,5], -1, i64[3,7]:(-5,5)");
    ops.add("gather_nd(input_x/input/x: tensor, indices/index: index)")
        .doc("The parts of the input at the coordinates in the last axis of indices.")
        .example("gather_nd(tensor{{1, 2}, {3, 4}}, tensor{{1, 0}, {0, 1}})", "tensor{3, 2}")
        .infer([](const Call& c) -> Types {
            Shape in = c.shape(0), index = c.shape(1), shape;
            expect_rank_at_least(c, 1, 1);
            if (index.back() < 0)
                throw shape_error(c.name(),
                                  str("the number of coordinates in indices of shape ", index, " is not known"));
            if (index.back() > in.rank())
                throw shape_error(c.name(), str("indices of shape ", index, " hold ", index.back(),
                                                " coordinates, but the "
                                                "input of shape ",
                                                in, " has ", in.rank(), " axes"));
            for (int i = 0; i + 1 < index.rank(); ++i) shape.push_back(index[i]);
            for (int i = static_cast<int>(index.back()); i < in.rank(); ++i) shape.push_back(in[i]);
            return {{c.type(0).dtype, shape}};
        })
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("tensor_scatter_nd", {zero_of(g, 0), g.in(1), g.dout, "add"}), {}};
        })
        .raises()
        .moves()
        .cut("@gather_nd")
        .sample("f32[3,4], i64[5,2]:(0,3)")
        .sample("f32[3,2,5], i64[2,3,1]:(-3,3)");
    ops.add("take(input/x: tensor, index/indices: index, axis/dim: int? = nil)")
        .doc("The elements at the given positions of the flat tensor, or the parts along an axis.")
        .example("take(tensor{{1, 2}, {3, 4}}, tensor{3, 0})", "tensor{4, 1}")
        .expand([](const ExpandCall& c) {
            if (c.has(2)) return c.call("gather", {c.in(0), c.in(1), c.args[2]});
            return c.call("gather", {c.in(0).reshape({-1}), c.in(1), 0});
        })
        .sample("f32[3,4], i64[2,3]:(0,12)")
        .sample("f32[3,5], i64[4]:(-5,5), 1");
}

Expr flat_positions(const ExpandCall& c, const Expr& flat_mask) {
    return c.call("argwhere", {flat_mask}).reshape({-1});
}

void add_masks(Registry& ops) {
    ops.add("argwhere(input/x: tensor)")
        .doc("The coordinates of the elements that are not 0, one row each, in row-major order.")
        .example("argwhere(tensor{0, 5, 6})", "tensor{{1}, {2}}")
        .infer([](const Call& c) -> Types {
            return {{DType::i64, {kUnknownDim, c.rank(0)}}};
        })
        .half_native()
        .no_grad("the result holds integers")
        .sample("i64[3,4]:(0,2)")
        .sample("bool[7]");
    ops.add("nonzero(input/x: tensor, *, as_tuple: bool = false)")
        .doc("The coordinates of the elements that are not 0: one row each, or with as_tuple one tensor for each axis.")
        .example("nonzero(tensor{{0, 5}, {6, 0}})", "tensor{{0, 1}, {1, 0}}")
        .expand([](const ExpandCall& c) {
            Expr rows = c.call("argwhere", {c.in(0)});
            return c.boolean(1) ? c.call("unbind", {rows, 1}) : rows;
        })
        .no_grad("the result holds integers")
        .sample("i64[3,4]:(0,2)")
        .sample("f32[5], as_tuple=true");
    ops.add("masked_select(input/x: tensor, mask: mask)")
        .doc("The elements where mask is true, in one axis; both are broadcast to one shape.")
        .example("masked_select(tensor{1, 2, 3}, tensor{true, false, true})", "tensor{1, 3}")
        .expand([](const ExpandCall& c) {
            Shape joint = broadcast(c.name(), c.shape(0), c.shape(1));
            Expr x = c.in(0).broadcast_to(joint).reshape({-1}), mask = c.in(1).broadcast_to(joint).reshape({-1});
            return c.call("gather", {x, flat_positions(c, mask), 0});
        })
        .sample("f32[3,4], bool[3,4]")
        .sample("f32[5,1], bool[3]");
    // The k-th true element of the mask takes element k of source: k counts the trues before it.
    ops.add("masked_scatter(input/x: tensor, mask: mask, source/tensor/src: tensor)")
        .doc("A copy of input where the elements under mask are taken from source, in order.")
        .example("masked_scatter(tensor{1, 2, 3}, tensor{true, false, true}, tensor{8, 9})", "tensor{8, 2, 9}")
        .expand([](const ExpandCall& c) {
            Shape shape = broadcast(c.name(), c.shape(0), c.shape(1));
            if (c.shape(2).size() == 0) throw shape_error(c.name(), str("source of shape ", c.shape(2), " is empty"));
            Expr mask = c.in(1).broadcast_to(shape).reshape({-1});
            Expr order = c.call("sub", {c.call("cumsum", {mask.cast(DType::i64), 0}), 1});
            // Before the first true the count is -1; that element is never selected.
            Expr taken = c.call("gather", {c.in(2).reshape({-1}), c.call("where", {mask, order, 0}), 0});
            return c.call("where", {mask, taken, c.in(0).broadcast_to(shape).reshape({-1})}).reshape(shape);
        })
        .sample("f32[3,4], bool[3,4], f32[12]")
        .sample("f32[2,5], bool[5], f32[11]");
    ops.add(
           "one_hot(indices/input/x: tensor, depth/num_classes: int, on_value: tensor = 1, off_value: tensor = 0, "
           "axis/dim: int = -1)")
        .doc(
            "A new axis of size depth that holds on_value at the position of the index and off_value elsewhere; an "
            "index "
            "out of range gives off_value alone.")
        .example("one_hot(tensor{0, 2}, 3)", "tensor{{1, 0, 0}, {0, 0, 1}}")
        .infer([](const Call& c) -> Types {
            if (!is_integer(c.type(0).dtype))
                throw dtype_error(c.name(), str("indices must hold integers, not ", name_of(c.type(0).dtype)));
            expect_not_negative(c, 1, c.integer(1));
            for (size_t i : {2u, 3u})
                if (c.shape(i).size() != 1)
                    throw shape_error(c.name(),
                                      str(param_name(c, i), " must have one element, not shape ", c.shape(i)));
            Shape shape = c.shape(0);
            std::vector<int64_t> sizes(shape.begin(), shape.end());
            int axis = normal_axis(c.name(), c.integer(4), c.rank(0) + 1);
            sizes.insert(sizes.begin() + axis, c.integer(1));
            DType dtype = promote(c.type(2).dtype, c.type(3).dtype);
            if (!shape.known()) return {{dtype, Shape(sizes)}};
            try {
                return {{dtype, checked_shape(c.name(), sizes, size_of(dtype))}};
            } catch (const Error& e) {
                throw e.hint(str("depth is ", c.integer(1)));
            }
        })
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            Expr on = g.call("one_hot", {g.args[0], g.args[1], 1, 0, g.args[4]}).cast(g.dout.dtype());
            return {{},
                    {},
                    cotangent(g, 2, [&] { return g.dout * on; }),
                    cotangent(g, 3, [&] { return g.dout * (1.0 - on); }),
                    {}};
        })
        .batched(batch::one_hot)
        .sample("i64[3]:(0,5), 5")
        .sample("i64[2,3]:(-1,5), 4, 2.0, -1.0, 0");
    ops.add("intopk(x1: tensor, x2: index, k: int)")
        .doc("Whether the class x2 of each row of x1 is among its k largest.")
        .example("intopk(tensor{{1.0, 3.0, 2.0}}, tensor{2}, 2)", "tensor{true}")
        .expand([](const ExpandCall& c) {
            expect_rank(c, 0, 2);
            expect_rank(c, 1, 1);
            Expr target = c.call("gather_elements", {c.in(0), 1, c.call("expand_dims", {c.in(1), 1})});
            Expr better = c.call("greater", {c.in(0), target}).cast(DType::i64).sum({1});
            return c.call("less", {better, c.args[2]});
        })
        .no_grad("the result holds bools")
        .sample("f32[3,5], i64[3]:(0,5), 2")
        .sample("f32[2,4], i64[2]:(0,4), 1");
}

}  // namespace

void add_index_ops(Registry& ops) {
    add_gathers(ops);
    add_element_gathers(ops);
    add_masks(ops);
}

}  // namespace lunaria
