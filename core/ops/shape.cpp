// Operators: views that keep every element (reshape, transposes, broadcasting) and results that follow from types
// alone.
#include <algorithm>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"

namespace lunaria {

namespace {

// The shape that `wanted` (one size may be -1) gives to `from`'s elements.
Shape reshaped(const Call& call, const Shape& from, std::span<const int64_t> wanted) {
    int free = -1;
    if (wanted.size() > kMaxRank) checked_shape(call.name(), wanted);
    Shape shape(wanted);
    for (int i = 0; i < shape.rank(); ++i) {
        if (shape[i] != -1) continue;
        if (free >= 0)
            throw shape_error(call.name(), str("only one size can be -1 (to infer from the others), but axes ", free,
                                               " and ", i, " of the shape are"));
        free = i;
        shape[i] = 1;
    }
    shape = checked_shape(call.name(), shape.dims());
    if (!from.known()) {
        if (free >= 0) shape[free] = kUnknownDim;
        return shape;
    }
    int64_t rest = shape.size(), size = from.size();
    if (free >= 0) {
        if (rest == 0)
            throw shape_error(call.name(), str("the size -1 cannot be inferred: it is ambiguous, since the other sizes "
                                               "multiply to 0 elements (input shape ",
                                               from, ")"));
        if (size % rest == 0) {
            shape[free] = size / rest;
            return shape;
        }
        shape[free] = kUnknownDim;
    } else if (size == rest) {
        return shape;
    }
    throw shape_error(call.name(), str("a tensor of shape ", from, " has ", size, " elements and does not fit shape ",
                                       shape, free >= 0 ? ", whose known sizes hold " : ", which holds ", rest));
}

Shape reshape_target(const Call& call) {
    auto wanted = call.ints(1);
    return reshaped(call, call.shape(0), wanted);
}

Grads grad_reshape(const GradRule& g) {
    Grads d(g.args.size());
    d[0] = g.dout.reshape(g.shape(0));
    return d;
}

Value reshape_view(const Call& call) { return Value(call.args[0].tensor().reshaped(reshape_target(call))); }

void permute(Layout& layout, const Shape& order) {
    Layout from = layout;
    for (int i = 0; i < order.rank(); ++i) {
        layout.shape[i] = from.shape[static_cast<int>(order[i])];
        layout.strides[i] = from.strides[static_cast<int>(order[i])];
    }
}

Shape swapped(int rank, int a, int b) {
    Shape order = all_axes(rank);
    std::swap(order[a], order[b]);
    return order;
}

// The order of axes that a call of transpose or permute asks for; none: reversed.
Shape transpose_order(const Call& call) {
    int rank = call.rank(0);
    const bool swaps = call.args.size() > 2 && call.has(2);
    if (!call.has(1) && !swaps) {
        Shape reversed;
        for (int i = rank - 1; i >= 0; --i) reversed.push_back(i);
        return reversed;
    }
    auto axes = call.ints(1);
    if (swaps) {
        if (axes.size() != 1)
            throw argument_error(call.name(), str("dim1 goes with one other axis, and ", param_name(call, 1), " names ",
                                                  axes.size(), " of them"))
                .hint(
                    "two numbers exchange two axes: x:transpose(0, 1); a table orders all of them: x:transpose({1, "
                    "0})");
        return swapped(rank, normal_axis(call.name(), axes[0], rank, param_name(call, 1)), call.axis(2, 0));
    }
    Shape order = normal_axes(call.name(), axes, rank, param_name(call, 1));
    if (order.rank() != rank)
        throw shape_error(call.name(),
                          str(param_name(call, 1), " must name each of the ", rank, " axes of the tensor once, not ",
                              order.rank(), " of them (shape ", call.shape(0), ")"));
    return order;
}

Shape inverse(const Shape& order) {
    Shape back = order;
    for (int i = 0; i < order.rank(); ++i) back[static_cast<int>(order[i])] = i;
    return back;
}

Shape moved(const Call& call) {
    int rank = call.rank(0);
    Shape from = normal_axes(call.name(), call.ints(1), rank, "source");
    Shape to = normal_axes(call.name(), call.ints(2), rank, "destination");
    if (from.rank() != to.rank())
        throw value_error(call.name(), str("source names ", from.rank(), " axes and destination ", to.rank()));
    Shape order;
    order.resize(rank, -1);
    for (int i = 0; i < from.rank(); ++i) order[static_cast<int>(to[i])] = from[i];
    int next = 0;
    for (int i = 0; i < rank; ++i) {
        if (order[i] >= 0) continue;
        while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
        order[i] = next++;
    }
    return order;
}

Shape flat_shape(const Shape& shape, int first, int last) {
    Shape flat;
    for (int i = 0; i < first; ++i) flat.push_back(shape[i]);
    int64_t size = 1;
    for (int i = first; i <= last; ++i) size = size < 0 || shape[i] < 0 ? kUnknownDim : size * shape[i];
    flat.push_back(size);
    for (int i = last + 1; i < shape.rank(); ++i) flat.push_back(shape[i]);
    return flat;
}

Shape broadcast_target(const Call& call, const Shape& from, std::span<const int64_t> wanted) {
    std::vector<int64_t> sizes(wanted.begin(), wanted.end());
    int extra = static_cast<int>(sizes.size()) - from.rank();
    for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
        int64_t& size = sizes[static_cast<size_t>(i)];
        if (size != -1) continue;
        if (i < extra)
            throw shape_error(call.name(), str("the new axis ", i,
                                               " needs a size: -1 only keeps the size of an axis "
                                               "that the tensor (shape ",
                                               from, ") has"));
        size = from[i - extra];
        if (size == kUnknownDim) size = 1;
    }
    Shape shape = checked_shape(call.name(), sizes);
    if (extra < 0)
        throw shape_error(call.name(), str("cannot broadcast shape ", from, " to fewer axes, shape ", shape));
    for (int i = 0; i < from.rank(); ++i) {
        if (from[i] == kUnknownDim) {
            if (wanted[static_cast<size_t>(i + extra)] == -1) shape[i + extra] = kUnknownDim;
            continue;
        }
        if (from[i] != shape[i + extra] && from[i] != 1)
            throw shape_error(call.name(), str("cannot broadcast shape ", from, " to ", shape, ": axis ", i,
                                               " has size ", from[i], ", not 1 or ", shape[i + extra]));
    }
    return shape;
}

void broadcast_layout(Layout& layout, const Shape& shape) {
    int extra = shape.rank() - layout.shape.rank();
    Layout wide;
    wide.shape = shape;
    wide.strides.resize(shape.rank(), 0);
    wide.offset = layout.offset;
    for (int i = 0; i < layout.shape.rank(); ++i)
        wide.strides[i + extra] = layout.shape[i] == 1 && shape[i + extra] != 1 ? 0 : layout.strides[i];
    layout = wide;
}

void add_reshapes(Registry& ops) {
    ops.add("reshape(input/x/input_x: tensor, shape/new_shape/input_shape: shape)")
        .doc("The same elements in another shape; one size may be -1 and is inferred from the others.")
        .example("reshape(tensor{1, 2, 3, 4}, {2, -1})", "tensor{{1, 2}, {3, 4}}")
        .infer([](const Call& c) -> Types {
            return {{c.type(0).dtype, reshape_target(c)}};
        })
        .view(reshape_view)
        .strided()
        .half_native()
        .grad(grad_reshape)
        .alias("view")
        .batched(batch::reshaped)
        .moves()
        .sample("f32[2,6], {3,-1}")
        .sample("f32[5,3], {15}")
        .sample("f32[1], {}");
    ops.add("reshape_as(input/x: tensor, other: tensor)")
        .doc("The elements of input in the shape of other.")
        .example("reshape_as(tensor{1, 2, 3, 4}, zeros({2, 2}))", "tensor{{1, 2}, {3, 4}}")
        .expand([](const ExpandCall& c) { return c.in(0).reshape(c.shape(1)); })
        .alias("view_as")
        .sample("f32[2,6], f32[3,4]")
        .sample("f32[5], f32[1,5,1]");
    // MindSpore's "F" keeps axis 0 and reverses the order of the others.
    ops.add(
           "flatten(input/x: tensor, order: \"C\"|\"F\" = \"C\", *, start_dim/start_axis: int = 1, end_dim/end_axis: "
           "int "
           "= -1)")
        .doc("Joins the axes from start_dim to end_dim into one; by default all but the first.")
        .example("flatten(tensor{{{1, 2}, {3, 4}}})", "tensor{{1, 2, 3, 4}}")
        .expand([](const ExpandCall& c) -> Expr {
            int rank = c.rank(0);
            if (rank == 0) return c.in(0).reshape({1});
            // A vector has no axis 1; flattening it changes nothing.
            int64_t start = rank == 1 && c.integer(2) == 1 ? 0 : c.integer(2);
            int first = normal_axis(c.name(), start, rank, "start_dim");
            int last = normal_axis(c.name(), c.integer(3), rank, "end_dim");
            if (first > last) throw value_error(c.name(), str("start_dim ", first, " comes after end_dim ", last));
            Expr x = c.in(0);
            if (c.string(1) == "F" && rank > 1) {
                Shape order{0};
                for (int i = rank - 1; i > 0; --i) order.push_back(i);
                x = x.transpose(order);
            }
            return x.reshape(flat_shape(x.shape(), first, last));
        })
        .sample("f32[2,3,4]")
        .sample("f32[2,3,5], start_dim=0, end_dim=-2")
        .sample("f32[2,3,2], \"F\"");
    ops.add("ravel(input/x: tensor)")
        .doc("All elements in one axis, in row-major order.")
        .example("ravel(tensor{{1, 2}, {3, 4}})", "tensor{1, 2, 3, 4}")
        .expand([](const ExpandCall& c) { return c.in(0).reshape(flat_shape(c.shape(0), 0, c.rank(0) - 1)); })
        .sample("f32[2,3,4]")
        .sample("f32[]");
    rearranges(ops.add("squeeze(input/x/input_x: tensor, axis/dim: ints? = nil)"),
               [](const Call& c, Layout& layout) {
                   auto list = c.ints(1);
                   Shape axes = normal_axes(c.name(), list, layout.shape.rank(), "axis");
                   for (int i = layout.shape.rank() - 1; i >= 0; --i) {
                       bool named = std::find(axes.begin(), axes.end(), i) != axes.end();
                       if (named && layout.shape[i] != 1 && layout.shape[i] != kUnknownDim)
                           throw shape_error(c.name(), str("cannot squeeze axis ", i, " of shape ", c.shape(0),
                                                           ": its size is ", layout.shape[i], ", not 1"));
                       if (named || (!c.has(1) && layout.shape[i] == 1)) layout.drop(i);
                   }
               })
        .doc("Removes axes of size 1: all of them, or those that axis names.")
        .example("squeeze(tensor{{{1, 2}}})", "tensor{1, 2}")
        .grad(grad_reshape)
        .batched(batch::reshaped)
        .sample("f32[1,3,1]")
        .sample("f32[1,3,1,5], {0,-2}");
    rearranges(ops.add("expand_dims(input/x/input_x: tensor, axis/dim: int)"),
               [](const Call& c, Layout& layout) {
                   layout.insert(normal_axis(c.name(), c.integer(1), layout.shape.rank() + 1, param_name(c, 1)));
               })
        .doc("A new axis of size 1 at position axis.")
        .example("expand_dims(tensor{1, 2}, 0)", "tensor{{1, 2}}")
        .grad(grad_reshape)
        .alias("unsqueeze")
        .batched(batch::reshaped)
        .sample("f32[2,3], 1")
        .sample("f32[5], -1");
    ops.add("atleast_1d(input/inputs/x: tensor)")
        .doc("The tensor itself, or a vector of one element for a tensor without axes.")
        .example("atleast_1d(tensor(3))", "tensor{3}")
        .expand([](const ExpandCall& c) { return c.rank(0) == 0 ? c.in(0).reshape({1}) : c.in(0); })
        .sample("f32[]")
        .sample("f32[3]");
    ops.add("atleast_2d(input/inputs/x: tensor)")
        .doc("The tensor with axes of size 1 in front until it has two.")
        .example("atleast_2d(tensor{1, 2})", "tensor{{1, 2}}")
        .expand([](const ExpandCall& c) -> Expr {
            Shape shape = c.shape(0);
            while (shape.rank() < 2) shape.insert(0, 1);
            return c.in(0).reshape(shape);
        })
        .sample("f32[3]")
        .sample("f32[2,3]");
    ops.add("atleast_3d(input/inputs/x: tensor)")
        .doc("The tensor with three axes: a vector of n becomes (1, n, 1), a matrix gets a last axis of size 1.")
        .example("atleast_3d(tensor{1, 2})", "tensor{{{1}, {2}}}")
        .expand([](const ExpandCall& c) -> Expr {
            Shape shape = c.shape(0);
            while (shape.rank() < 2) shape.insert(0, 1);
            if (shape.rank() == 2) shape.push_back(1);
            return c.in(0).reshape(shape);
        })
        .sample("f32[3]")
        .sample("f32[2,3]");
}

void add_transposes(Registry& ops) {
    rearranges(ops.add("transpose(input/x/input_x: tensor, dims/input_perm/perm/axes/axis/dim0: ints? = nil, "
                       "dim1: int? = nil)"),
               [](const Call& c, Layout& layout) { permute(layout, transpose_order(c)); })
        .doc(
            "Axes in another order: axis i of the result is axis dims[i] of the input; without dims, reversed. Two "
            "numbers exchange two axes; a table, or more numbers, orders all of them.")
        .example("transpose(tensor{{1, 2}, {3, 4}}, {1, 0})", "tensor{{1, 3}, {2, 4}}")
        .example("shape(transpose(zeros({2, 3, 4}), 0, 2))", "{4, 3, 2}")
        .example("shape(transpose(zeros({2, 3, 4}), 2, 0, 1))", "{4, 2, 3}")
        .grad([](const GradRule& g) -> Grads {
            return {g.dout.transpose(inverse(transpose_order(g))), {}, {}};
        })
        .batched(batch::transposed)
        .sample("f32[2,3,4], {2,0,1}")
        .sample("f32[2,3,4], 0, -1")
        .sample("f32[3,3], 0, 1")
        .sample("f32[5,3]");
    rearranges(ops.add("permute(input/x: tensor, axis/dims: shape)"),
               [](const Call& c, Layout& layout) { permute(layout, transpose_order(c)); })
        .doc("Axes in another order: axis i of the result is axis axis[i] of the input.")
        .example("permute(tensor{{1, 2}, {3, 4}}, {1, 0})", "tensor{{1, 3}, {2, 4}}")
        .grad([](const GradRule& g) -> Grads {
            return {g.dout.transpose(inverse(transpose_order(g))), {}};
        })
        .batched(batch::transposed)
        .sample("f32[2,3,4], {1,2,0}")
        .sample("f32[5,3], {-1,0}");
    rearranges(ops.add("swapaxes(input/x: tensor, axis0/dim0: int, axis1/dim1: int)"),
               [](const Call& c, Layout& layout) {
                   permute(layout, swapped(layout.shape.rank(), c.axis(1, 0), c.axis(2, 0)));
               })
        .doc("Exchanges two axes.")
        .example("swapaxes(tensor{{1, 2}, {3, 4}}, 0, 1)", "tensor{{1, 3}, {2, 4}}")
        .grad([](const GradRule& g) -> Grads {
            return {g.dout.transpose(swapped(g.rank(0), g.axis(1, 0), g.axis(2, 0))), {}, {}};
        })
        .alias("swapdims")
        .batched(batch::axes_swapped)
        .sample("f32[2,3,4], 0, -1")
        .sample("f32[5,3], 0, 1");
    rearranges(ops.add("movedim(x/input: tensor, source: ints, destination: ints)"),
               [](const Call& c, Layout& layout) { permute(layout, moved(c)); })
        .doc("Moves the axes source to the positions destination; the others keep their order.")
        .example("shape(movedim(zeros({2, 3, 4}), 0, -1))", "{3, 4, 2}")
        .grad([](const GradRule& g) -> Grads {
            return {g.dout.transpose(inverse(moved(g))), {}, {}};
        })
        .alias("moveaxis")
        .batched(batch::axes_moved)
        .sample("f32[2,3,4], 0, -1")
        .sample("f32[2,3,5], {0,1}, {2,0}");
    rearranges(ops.add("t(input/x: tensor)"),
               [](const Call& c, Layout& layout) {
                   if (layout.shape.rank() > 2)
                       throw shape_error(c.name(), str("input must have at most 2 axes, not shape ", layout.shape))
                           .hint("swapaxes(x, -2, -1) transposes the matrices of a batch");
                   if (layout.shape.rank() == 2) permute(layout, {1, 0});
               })
        .doc("The transposed matrix; a vector stays what it is.")
        .example("t(tensor{{1, 2}, {3, 4}})", "tensor{{1, 3}, {2, 4}}")
        .grad([](const GradRule& g) -> Grads {
            return {g.rank(0) == 2 ? g.dout.transpose({1, 0}) : g.dout};
        })
        .batched(batch::transposed)
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("adjoint(x/input: tensor)")
        .doc("The last two axes exchanged (of real tensors).")
        .example("adjoint(tensor{{1, 2}, {3, 4}})", "tensor{{1, 3}, {2, 4}}")
        .expand([](const ExpandCall& c) {
            expect_rank_at_least(c, 0, 2);
            return c.call("swapaxes", {c.in(0), -2, -1});
        })
        .sample("f32[2,3,4]")
        .sample("f32[5,3]");
}

void add_broadcasts(Registry& ops) {
    rearranges(ops.add("broadcast_to(input/x: tensor, shape/size/sizes: shape)"),
               [](const Call& c, Layout& layout) {
                   auto wanted = c.ints(1);
                   broadcast_layout(layout, broadcast_target(c, layout.shape, wanted));
               })
        .doc("Repeats axes of size 1, and new axes in front, up to shape, without copying; -1 keeps an axis.")
        .example("broadcast_to(tensor{{1}, {2}}, {2, 3})", "tensor{{1, 1, 1}, {2, 2, 2}}")
        .grad([](const GradRule& g) -> Grads {
            return {g.unbroadcast(g.dout, 0), {}};
        })
        .alias("expand")
        .batched(batch::broadcast)
        .sample("f32[3,1], {2,-1,5}")
        .sample("f32[], {3}");
    // A primitive: gradients use it to broadcast to shapes that are known only when the program runs.
    rearranges(ops.add("expand_as(input/x: tensor, other: tensor)"),
               [](const Call& c, Layout& layout) {
                   Shape shape = c.shape(1);
                   bool fits = layout.shape.rank() <= shape.rank();
                   if (!fits || (broadcast(c.name(), layout.shape, shape) != shape && shape.known()))
                       throw shape_error(c.name(), str("cannot broadcast shape ", layout.shape, " to ", shape));
                   broadcast_layout(layout, shape);
               })
        .doc("The input broadcast to the shape of other.")
        .example("expand_as(tensor{1, 2}, zeros({2, 2}))", "tensor{{1, 2}, {1, 2}}")
        .grad([](const GradRule& g) -> Grads {
            return {g.unbroadcast(g.dout, 0), {}};
        })
        .batched(batch::broadcast)
        .sample("f32[3,1], f32[2,3,5]")
        .sample("f32[1], f32[4]");
}

void add_conversions(Registry& ops) {
    rearranges(ops.add("identity(x/input: tensor)"), [](const Call&, Layout&) {})
        .doc("The tensor itself.")
        .example("identity(tensor{1, 2})", "tensor{1, 2}")
        .grad([](const GradRule& g) -> Grads { return {g.dout}; })
        .batched(batch::of_first)
        .cut("...->...")
        .linear({0})
        .sample("f32[2,3]")
        .sample("f32[]");
    rearranges(ops.add("stop_gradient(value/input/x: tensor)"), [](const Call&, Layout&) {})
        .doc("The tensor itself, through which no gradient flows.")
        .example("stop_gradient(tensor{1, 2})", "tensor{1, 2}")
        .no_grad("stops the gradient by definition")
        .alias("detach")
        .batched(batch::of_first)
        .cut("...->...")
        .linear({0})
        .sample("f32[2,3]")
        .sample("f32[]");
    ops.add("cast(input/x/input_x: tensor, dtype/type: dtype)")
        .doc("Converts the elements; floats become integers by truncation, and numbers become true when not 0.")
        .example("cast(tensor{1.7, -1.7}, \"int32\")", "tensor({1, -1}, \"int32\")")
        .infer([](const Call& c) -> Types {
            return {{c.args[1].dtype(), c.shape(0)}};
        })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            // A real number is a complex one without imaginary part, and back: the real part, in both cotangents.
            auto has_slope = [](DType t) { return is_float(t) || is_complex(t); };
            bool smooth = has_slope(g.type(0).dtype) && has_slope(g.args[1].dtype());
            return {smooth ? g.dout.cast(g.type(0).dtype) : Expr(), {}};
        })
        .alias("astype")
        .batched(batch::of_first)
        .fusion(Fusion::cast)
        .cut("...->...")
        .sample("f32[2,3], float64")
        .sample("f32[5], int32");
    ops.add("type_as(input/x: tensor, other: tensor)")
        .doc("The input converted to the dtype of other.")
        .example("type_as(tensor{1.5}, tensor{1})", "tensor{1}")
        .expand([](const ExpandCall& c) { return c.in(0).cast(c.type(1).dtype); })
        .sample("f32[2,3], f64[1]")
        .sample("f32[3], f32[2]");
}

void add_host_values(Registry& ops) {
    ops.add("shape(input/input_x/x: tensor)")
        .doc("The sizes of the axes, as a table.")
        .example("shape(zeros({2, 3}))", "{2, 3}")
        .host([](const Call& c) { return Value::ints(c.shape(0)); })
        .no_grad("a host value")
        .method(false)
        .sample("f32[2,3]")
        .sample("i64[]");
    ops.add("rank(input/input_x/x: tensor)")
        .doc("The number of axes.")
        .example("rank(zeros({2, 3}))", "2")
        .host([](const Call& c) { return Value(c.rank(0)); })
        .no_grad("a host value")
        .method(false)
        .sample("f32[2,3]")
        .sample("i64[]");
    ops.add("size(input/input_x/x: tensor)")
        .doc("The number of elements.")
        .example("size(zeros({2, 3}))", "6")
        .host([](const Call& c) { return Value(c.shape(0).size()); })
        .no_grad("a host value")
        .method(false)
        .sample("f32[2,3]")
        .sample("i64[]");
    ops.add("numel(input/x: tensor)")
        .doc("The number of elements.")
        .example("numel(zeros({2, 3}))", "6")
        .host([](const Call& c) { return Value(c.shape(0).size()); })
        .no_grad("a host value")
        .sample("f32[2,3]")
        .sample("i64[]");
    ops.add("dtype(input/input_x/x: tensor)")
        .doc("The element type.")
        .example("dtype(zeros({2}))", "dtype(ones({1}))")
        .host([](const Call& c) { return Value(c.type(0).dtype); })
        .no_grad("a host value")
        .method(false)
        .sample("f32[2,3]")
        .sample("i64[]");
    ops.add("is_tensor(obj/input: any)")
        .doc("Whether the value is a tensor.")
        .example("is_tensor(zeros({2}))", "true")
        .host([](const Call& c) { return Value(c.args[0].is_tensor() || c.args[0].is_node()); })
        .no_grad("a host value")
        .sample("f32[2,3]")
        .sample("3");
    ops.add("is_floating_point(input/x: tensor)")
        .doc("Whether the elements are floating-point numbers.")
        .example("is_floating_point(zeros({2}))", "true")
        .host([](const Call& c) { return Value(is_float(c.type(0).dtype)); })
        .no_grad("a host value")
        .sample("f32[2,3]")
        .sample("i64[2]");
    ops.add("is_complex(input/x: tensor)")
        .doc("Whether the elements are complex numbers.")
        .example("is_complex(zeros({2}))", "false")
        .host([](const Call& c) { return Value(is_complex(c.type(0).dtype)); })
        .no_grad("a host value")
        .sample("f32[2,3]")
        .sample("i64[2]");
}

}  // namespace

void add_shape_ops(Registry& ops) {
    add_reshapes(ops);
    add_transposes(ops);
    add_broadcasts(ops);
    add_conversions(ops);
    add_host_values(ops);
}

}  // namespace lunaria
