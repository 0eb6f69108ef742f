// Operators: copies of a tensor in which given positions are replaced by, or combined with, other values. Where a
// position occurs several times, the values are combined in the order of the indices, whatever the number of threads.
#include <algorithm>

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"

namespace lunaria {

namespace {

DType complex_or_f64(DType t) { return is_complex(t) ? DType::c128 : DType::f64; }

// Parts of a gradient rule that all ways of addressing share.
struct Scatter {
    const GradRule& g;
    Expr x, updates;
    std::string_view reduction;
    Expr (*gather)(const GradRule&, const Expr& from);                                           // at the positions
    Expr (*scatter)(const GradRule&, const Expr& to, const Expr& values, std::string_view how);  // the operator itself

    Expr at(const Expr& from) const { return gather(g, from); }
    Expr put(const Expr& to, const Expr& values, std::string_view how) const { return scatter(g, to, values, how); }
    Expr zeros_like_x() const { return stretched_zero(g.builder, g.dout.dtype(), x.shape()); }
    Expr equal(const Expr& a, const Arg& b) const { return g.call("equal", {a, b}); }
    Expr where(const Expr& mask, const Arg& a, const Arg& b) const { return g.call("where", {mask, a, b}); }

    // (cotangent of x, cotangent of updates)
    std::pair<Expr, Expr> cotangents() const {
        const Expr& dout = g.dout;
        if (reduction == "add") return {dout, at(dout)};
        if (reduction == "sub") return {dout, -at(dout)};
        if (reduction == "none")
            return {put(dout, stretched_zero(g.builder, dout.dtype(), updates.shape()), "none"),
                    where(written_last(), at(dout), 0)};
        if (reduction == "mul") return {put(dout, updates, "mul"), product_updates()};
        if (reduction == "div") return {put(dout, updates, "div"), -(at(dout) * at(g.out) / updates)};
        // max and min: all elements that equal the extreme share the cotangent evenly.
        Expr reached_x = equal(x, g.out).cast(dout.dtype()), reached_u = equal(updates, at(g.out)).cast(dout.dtype());
        Expr share = dout / put(reached_x, reached_u, "add");
        return {share * reached_x, at(share) * reached_u};
    }
    // Of several updates for one element only the last is in the result. Each update writes its number, and the ones
    // whose number is still there are the last.
    Expr written_last() const {
        Shape shape = updates.shape();
        Expr numbers = g.call("arange", {shape.size()}).reshape(shape);
        Expr none = stretched_zero(g.builder, DType::i64, x.shape());
        return equal(at(put(none, numbers, "none")), numbers);
    }
    // The product of all factors of a position but one: by division, unless that factor is 0.
    Expr product_updates() const {
        // In f64: products of f32 seldom leave its range on the way to a finite result.
        const DType computed = complex_or_f64(g.dout.dtype());
        Expr zero = equal(updates, 0);
        Expr filled = where(zero, 1, updates).cast(computed);
        Expr zeros = put(zeros_like_x(), zero.cast(g.dout.dtype()), "add");
        Expr all = at(put(x.cast(computed), filled, "mul"));
        Expr others = where(zero, where(equal(at(zeros), 1), all, 0), where(equal(at(zeros), 0), all / filled, 0));
        return (at(g.dout) * others).cast(g.dout.dtype());
    }
};

Expr gather_nd(const GradRule& g, const Expr& from) { return g.call("gather_nd", {from, g.in(1)}); }
Expr scatter_nd(const GradRule& g, const Expr& to, const Expr& values, std::string_view how) {
    return g.call("tensor_scatter_nd", {to, g.in(1), values, how});
}
Expr gather_elements(const GradRule& g, const Expr& from) {
    return g.call("gather_elements", {from, g.args[3], g.in(1)});
}
Expr scatter_elements(const GradRule& g, const Expr& to, const Expr& values, std::string_view how) {
    return g.call("tensor_scatter_elements", {to, g.in(1), values, g.args[3], how});
}

Types infer_scatter_nd(const Call& c) {
    Shape x = c.shape(0), index = c.shape(1), wanted;
    expect_rank_at_least(c, 1, 1);
    if (index.back() < 0)
        throw shape_error(c.name(), str("the number of coordinates in indices of shape ", index, " is not known"));
    if (index.back() > x.rank())
        throw shape_error(c.name(), str("indices of shape ", index, " hold ", index.back(), " coordinates, but ",
                                        param_name(c, 0), " of shape ", x, " has ", x.rank(), " axes"));
    for (int i = 0; i + 1 < index.rank(); ++i) wanted.push_back(index[i]);
    for (int i = static_cast<int>(index.back()); i < x.rank(); ++i) wanted.push_back(x[i]);
    if (wanted.known() && c.shape(2).known() && !(wanted == c.shape(2)))
        throw shape_error(c.name(), str(param_name(c, 2), " must have shape ", wanted, ", not ", c.shape(2), " (",
                                        param_name(c, 0), " has shape ", x, " and indices ", index, ")"));
    return {{c.dtype, x}};
}

enum Reduction { kNone, kAdd, kSub, kMul, kDiv, kMax, kMin };
constexpr const char* kReductions[] = {"none", "add", "sub", "mul", "div", "max", "min"};

template <Reduction kHow>
Expr scatter_points(const ExpandCall& c) {
    return c.call("tensor_scatter_nd", {c.in(0), c.in(1), c.in(2), kReductions[kHow]});
}

// Positions along axis 0.
template <Reduction kHow>
Expr scatter_rows(const ExpandCall& c) {
    return c.call("tensor_scatter_nd", {c.in(0), c.call("expand_dims", {c.in(1), -1}), c.in(2), kReductions[kHow]});
}

void add_points(Registry& ops) {
    ops.add(
           "tensor_scatter_nd(input_x/input/x: same, indices/index: index, updates/src: same, reduction: "
           "\"none\"|\"add\"|\"sub\"|\"mul\"|\"div\"|\"max\"|\"min\" = \"none\")")
        .doc(
            "A copy of the tensor in which the parts at the coordinates in the last axis of indices are replaced by "
            "updates, or combined with them.")
        .example("tensor_scatter_nd(tensor{1, 2, 3}, tensor{{0}, {0}}, tensor{10, 20}, \"add\")", "tensor{31, 2, 3}")
        .infer(infer_scatter_nd)
        .strided()
        .grad([](const GradRule& g) -> Grads {
            auto [x, u] = Scatter{g, g.in(0), g.in(2), g.string(3), gather_nd, scatter_nd}.cotangents();
            return {x, {}, u, {}};
        })
        .raises()
        .wide()
        .cut("@scatter_nd")
        .sample("f32[3,4], i64[1,1]:(0,3), f32[1,4]")
        .sample("f32[3,2,5], i64[2,2,1]:(-3,3), f32[2,2,2,5], \"add\"")
        .sample("f32[4]:(1,2), i64[3,1]:(0,4), f32[3]:(1,2), \"mul\"")
        .sample("f32[4]:(1,2), i64[3,1]:(0,4), f32[3]:(1,2), \"div\"")
        .sample("f32[4], i64[5,1]:(0,4), f32[5], \"max\"");
    auto point = [](Op& op, ExpandFn f, const char* doc, const char* other) -> Op& {
        return op.doc(doc)
            .expand(f)
            .alias(other)
            .sample("f32[5]:(1,2), i64[1,1]:(2,3), f32[1]:(3,4)")
            .sample("f32[3,2]:(1,2), i64[1,1]:(0,3), f32[1,2]:(3,4)");
    };
    point(ops.add("tensor_scatter_update(input_x/input/x: same, indices/index: index, updates: same)"),
          scatter_points<kNone>,
          "A copy of the tensor in which the parts at the coordinates in the last axis of indices are updates.",
          "scatter_nd_update")
        .example("tensor_scatter_update(tensor{1, 2, 3}, tensor{{0}}, tensor{9})", "tensor{9, 2, 3}");
    point(ops.add("tensor_scatter_add(input_x/input/x: same, indices/index: index, updates: same)"),
          scatter_points<kAdd>,
          "A copy of the tensor with updates added at the coordinates in the last axis of indices.", "scatter_nd_add")
        .example("tensor_scatter_add(tensor{1, 2, 3}, tensor{{0}, {0}}, tensor{10, 20})", "tensor{31, 2, 3}");
    point(ops.add("tensor_scatter_sub(input_x/input/x: same, indices/index: index, updates: same)"),
          scatter_points<kSub>,
          "A copy of the tensor with updates subtracted at the coordinates in the last axis of indices.",
          "scatter_nd_sub")
        .example("tensor_scatter_sub(tensor{1, 2, 3}, tensor{{0}, {0}}, tensor{10, 20})", "tensor{-29, 2, 3}");
    point(
        ops.add("tensor_scatter_mul(input_x/input/x: same, indices/index: index, updates: same)"), scatter_points<kMul>,
        "A copy of the tensor multiplied by updates at the coordinates in the last axis of indices.", "scatter_nd_mul")
        .example("tensor_scatter_mul(tensor{1, 2, 3}, tensor{{0}, {0}}, tensor{10, 20})", "tensor{200, 2, 3}");
    point(ops.add("tensor_scatter_div(input_x/input/x: same, indices/index: index, updates: same)"),
          scatter_points<kDiv>,
          "A copy of the tensor divided by updates at the coordinates in the last axis of indices.", "scatter_nd_div")
        .example("tensor_scatter_div(tensor{8.0, 2.0}, tensor{{0}}, tensor{2.0})", "tensor{4.0, 2.0}");
    point(ops.add("tensor_scatter_max(input_x/input/x: same, indices/index: index, updates: same)"),
          scatter_points<kMax>,
          "A copy of the tensor with the larger of the element and the update at the coordinates in indices.",
          "scatter_nd_max")
        .example("tensor_scatter_max(tensor{1, 2, 3}, tensor{{0}, {2}}, tensor{5, 0})", "tensor{5, 2, 3}");
    point(ops.add("tensor_scatter_min(input_x/input/x: same, indices/index: index, updates: same)"),
          scatter_points<kMin>,
          "A copy of the tensor with the smaller of the element and the update at the coordinates in indices.",
          "scatter_nd_min")
        .example("tensor_scatter_min(tensor{1, 2, 3}, tensor{{0}, {2}}, tensor{5, 0})", "tensor{1, 2, 0}");
    ops.add("scatter_nd(indices/index: index, updates: tensor, shape: shape)")
        .doc("Zeros of the given shape with updates added at the coordinates in the last axis of indices.")
        .example("scatter_nd(tensor{{0}, {2}}, tensor{5, 6}, {3})", "tensor{5, 0, 6}")
        .expand([](const ExpandCall& c) {
            Shape shape = checked_shape(c.name(), c.ints(2));
            return c.call("tensor_scatter_nd",
                          {stretched_zero(c.builder, c.type(1).dtype, shape), c.in(0), c.in(1), "add"});
        })
        .sample("i64[3,1]:(0,6), f32[3,2], {6,2}")
        .sample("i64[2,3,2]:(0,3), f32[2,3], {3,5}");
}

void add_rows(Registry& ops) {
    auto row = [](Op& op, ExpandFn f, const char* doc) -> Op& {
        return op.doc(doc)
            .expand(f)
            .sample("f32[5]:(1,2), i64[1]:(2,3), f32[1]:(3,4)")
            .sample("f32[3,2]:(1,2), i64[1,1]:(0,3), f32[1,1,2]:(3,4)");
    };
    row(ops.add("scatter_update(input_x/input/x: same, indices/index: index, updates: same)"), scatter_rows<kNone>,
        "A copy of the tensor whose parts at the positions along axis 0 are updates.")
        .example("scatter_update(tensor{1, 2, 3}, tensor{0}, tensor{9})", "tensor{9, 2, 3}");
    row(ops.add("scatter_sub(input_x/input/x: same, indices/index: index, updates: same)"), scatter_rows<kSub>,
        "A copy of the tensor with updates subtracted at positions along axis 0.")
        .example("scatter_sub(tensor{1, 2, 3}, tensor{0}, tensor{9})", "tensor{-8, 2, 3}");
    row(ops.add("scatter_mul(input_x/input/x: same, indices/index: index, updates: same)"), scatter_rows<kMul>,
        "A copy of the tensor multiplied by updates at positions along axis 0.")
        .example("scatter_mul(tensor{1, 2, 3}, tensor{1}, tensor{9})", "tensor{1, 18, 3}");
    row(ops.add("scatter_div(input_x/input/x: same, indices/index: index, updates: same)"), scatter_rows<kDiv>,
        "A copy of the tensor divided by updates at positions along axis 0.")
        .example("scatter_div(tensor{1.0, 2.0}, tensor{1}, tensor{4.0})", "tensor{1.0, 0.5}");
    row(ops.add("scatter_max(input_x/input/x: same, indices/index: index, updates: same)"), scatter_rows<kMax>,
        "A copy of the tensor with the larger of element and update at positions along axis 0.")
        .example("scatter_max(tensor{1, 2}, tensor{1}, tensor{4})", "tensor{1, 4}");
    row(ops.add("scatter_min(input_x/input/x: same, indices/index: index, updates: same)"), scatter_rows<kMin>,
        "A copy of the tensor with the smaller of element and update at positions along axis 0.")
        .example("scatter_min(tensor{1, 2}, tensor{1}, tensor{0})", "tensor{1, 0}");
    ops.add("index_copy(x/input: same, axis/dim: int, index/indices: index, y/source/src: same)")
        .doc("A copy of x whose parts at the given positions along an axis are those of y.")
        .example("index_copy(tensor{1, 2, 3}, 0, tensor{2}, tensor{9})", "tensor{1, 2, 9}")
        .expand([](const ExpandCall& c) {
            int axis = c.axis(1, 0);
            Shape wanted = c.shape(0);
            wanted[axis] = c.shape(2).size();
            if (c.rank(2) > 1 || !(wanted == c.shape(3)))
                throw shape_error(c.name(), str("y must have shape ", wanted, " for an index of shape ", c.shape(2),
                                                ", not ", c.shape(3)));
            auto front = [&](const Expr& e) { return axis == 0 ? e : c.call("movedim", {e, axis, 0}); };
            Expr points = c.in(2).reshape({-1, 1});
            Expr out = c.call("tensor_scatter_nd", {front(c.in(0)), points, front(c.in(3)), "none"});
            return axis == 0 ? out : c.call("movedim", {out, 0, axis});
        })
        .alias("index_update")
        .sample("f32[4,3], 0, i64[1]:(0,4), f32[1,3]")
        .sample("f32[2,5], 1, i64[1]:(-5,5), f32[2,1]");
    ops.add("index_fill(x/input: tensor, axis/dim: int, index/indices: index, value: tensor)")
        .doc("A copy of x whose parts at the given positions along an axis are value.")
        .example("index_fill(tensor{1, 2, 3}, 0, tensor{0, 2}, 7)", "tensor{7, 2, 7}")
        .expand([](const ExpandCall& c) {
            int axis = c.axis(1, 0);
            Shape rows = c.shape(0);
            if (c.rank(2) > 1) throw shape_error(c.name(), str("index must be a vector, not of shape ", c.shape(2)));
            if (c.rank(3) > 0) throw shape_error(c.name(), str("value must be a number, not of shape ", c.shape(3)));
            rows[axis] = c.shape(2).size();
            DType dtype = c.type(0).dtype;
            const Value& value = c.args[3];
            Expr one =
                value.is_tensor() || value.is_node() ? c.in(3).cast(dtype) : c.call("full", {Shape{}, value, dtype});
            return c.call("index_copy", {c.in(0), axis, c.in(2), one.broadcast_to(rows)});
        })
        .sample("f32[4,3], 0, i64[2]:(0,4), 7.5")
        .sample("f32[2,5], -1, i64[3]:(-5,5), f32[]");
    ops.add("inplace_update(x/input: same, v/y: same, indices/index: ints)")
        .doc("A copy of x whose rows at the given positions are those of v.")
        .example("inplace_update(tensor{1, 2, 3}, tensor{9}, {2})", "tensor{1, 2, 9}")
        .expand([](const ExpandCall& c) {
            auto rows = c.ints(2);
            Tensor index = Tensor::from<int64_t>(rows, {static_cast<int64_t>(rows.size())});
            return c.call("index_copy", {c.in(0), 0, c.builder.constant(index), c.in(1)});
        })
        .sample("f32[4,3], f32[2,3], {0,3}")
        .sample("f32[5], f32[1], 2");
    ops.add("inplace_add(x/input: same, v/y: same, indices/index: ints)")
        .doc("A copy of x to whose rows at the given positions those of v are added.")
        .example("inplace_add(tensor{1, 2, 3}, tensor{9}, {2})", "tensor{1, 2, 12}")
        .expand([](const ExpandCall& c) {
            auto rows = c.ints(2);
            Tensor index = Tensor::from<int64_t>(rows, {static_cast<int64_t>(rows.size())});
            return c.call("index_add", {c.in(0), c.builder.constant(index), c.in(1), 0});
        })
        .sample("f32[4,3], f32[2,3], {0,3}")
        .sample("f32[5], f32[1], 2");
    ops.add("inplace_sub(x/input: same, v/y: same, indices/index: ints)")
        .doc("A copy of x from whose rows at the given positions those of v are subtracted.")
        .example("inplace_sub(tensor{1, 2, 3}, tensor{9}, {2})", "tensor{1, 2, -6}")
        .expand([](const ExpandCall& c) {
            auto rows = c.ints(2);
            Tensor index = Tensor::from<int64_t>(rows, {static_cast<int64_t>(rows.size())});
            return c.call("index_add", {c.in(0), c.builder.constant(index), c.in(1), 0, {"alpha", -1}});
        })
        .sample("f32[4,3], f32[2,3], {0,3}")
        .sample("f32[5], f32[1], 2");
}

// `src` cut or stretched to the shape of the indices.
Expr fitted(const ExpandCall& c, const Expr& src, const Shape& shape) {
    if (src.rank() == 0) return src.broadcast_to(shape);
    Shape whole = src.shape();
    if (whole == shape) return src;
    bool covers = whole.rank() == shape.rank();
    for (int i = 0; covers && i < shape.rank(); ++i) covers = whole[i] >= shape[i];
    if (!covers)
        throw shape_error(c.name(), str("src of shape ", whole, " is smaller than the index of shape ", shape));
    Shape begin, ones;
    begin.resize(shape.rank(), 0);
    ones.resize(shape.rank(), 1);
    return c.call("strided_slice", {src, begin, shape, ones});
}

void add_elements(Registry& ops) {
    ops.add(
           "tensor_scatter_elements(input_x/input/x: same, indices/index: index, updates/src: same, axis/dim: int = 0, "
           "reduction/reduce: \"none\"|\"add\"|\"sub\"|\"mul\"|\"div\"|\"max\"|\"min\" = \"none\")")
        .doc(
            "A copy of the tensor in which each element of updates replaces, or is combined with, the element whose "
            "coordinate along the axis is the index.")
        .example("tensor_scatter_elements(tensor{1, 2, 3}, tensor{2, 2}, tensor{5, 6}, 0, \"add\")", "tensor{1, 2, 14}")
        .infer([](const Call& c) -> Types {
            Shape x = c.shape(0), index = c.shape(1);
            int axis = c.axis(3, 0);
            bool fits = x.rank() == index.rank();
            for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || index[i] <= x[i] || x[i] == kUnknownDim;
            if (!fits)
                throw shape_error(c.name(),
                                  str("indices of shape ", index, " do not fit a tensor of shape ", x,
                                      ": they need as many axes and, but for axis ", axis, ", no larger ones"));
            expect_same_shape(c, 2, 1);
            return {{c.dtype, x}};
        })
        .strided()
        .grad([](const GradRule& g) -> Grads {
            auto [x, u] = Scatter{g, g.in(0), g.in(2), g.string(4), gather_elements, scatter_elements}.cotangents();
            return {x, {}, u, {}, {}};
        })
        .batched(batch::along<3>)
        .raises()
        .wide()
        .cut("@scatter_elements")
        .sample("f32[4,3], i64[1,3]:(0,4), f32[1,3]")
        .sample("f32[2,5], i64[2,3]:(-5,5), f32[2,3], 1, \"add\"")
        .sample("f32[4]:(1,2), i64[3]:(0,4), f32[3]:(1,2), 0, \"mul\"")
        .sample("f32[4], i64[5]:(0,4), f32[5], 0, \"min\"");
    ops.add(
           "scatter(input/x: same, axis/dim: int, index/indices: index, src/value: same, *, reduction/reduce: "
           "\"none\"|\"add\"|\"multiply\" = \"none\")")
        .doc(
            "A copy of input in which each element of src (or the number src) goes where the index says along an axis.")
        .example("scatter(tensor{1, 2, 3}, 0, tensor{2}, tensor{9})", "tensor{1, 2, 9}")
        .expand([](const ExpandCall& c) {
            std::string_view how = c.string(4) == "multiply" ? "mul" : std::string_view(c.string(4));
            Expr src =
                c.args[3].is_tensor() || c.args[3].is_node() ? c.in(3) : c.call("full", {Shape{}, c.args[3], c.dtype});
            return c.call("tensor_scatter_elements", {c.in(0), c.in(2), fitted(c, src, c.shape(2)), c.args[1], how});
        })
        .sample("f32[4,3], 0, i64[1,3]:(0,4), f32[2,3]")
        .sample("f32[2,5], 1, i64[2,1]:(0,5), 2.5");
    ops.add("scatter_add(input/x: same, dim/axis: int, index/indices: index, src/updates: same)")
        .doc("A copy of input to which each element of src is added where the index says along an axis.")
        .example("scatter_add(tensor{1, 2, 3}, 0, tensor{2, 2}, tensor{5, 6})", "tensor{1, 2, 14}")
        .expand([](const ExpandCall& c) {
            return c.call("tensor_scatter_elements",
                          {c.in(0), c.in(2), fitted(c, c.in(3), c.shape(2)), c.args[1], "add"});
        })
        .sample("f32[4,3], 0, i64[2,3]:(0,4), f32[2,3]")
        .sample("f32[2,5], 1, i64[2,7]:(0,5), f32[2,7]");
}

Types infer_segments(const Call& c) {
    Shape x = c.shape(0), ids = c.shape(1);
    expect_not_negative(c, 2, c.integer(2));
    bool prefix = ids.rank() >= 1 && ids.rank() <= x.rank();
    for (int i = 0; prefix && i < ids.rank(); ++i)
        prefix = ids[i] == x[i] || ids[i] == kUnknownDim || x[i] == kUnknownDim;
    if (!prefix)
        throw shape_error(c.name(),
                          str("segment_ids of shape ", ids, " must have the first sizes of the input's shape ", x));
    std::vector<int64_t> sizes{c.integer(2)};
    for (int i = ids.rank(); i < x.rank(); ++i) sizes.push_back(x[i]);
    Shape shape = Shape(sizes).known() ? checked_shape(c.name(), sizes) : Shape(sizes);
    return {{c.type(0).dtype, shape}};
}

// The value of a per-segment tensor for each element of the input; 0 where the id is negative, which means "dropped".
Expr per_element(const GradRule& g, const Expr& segments) {
    Expr ids = g.in(1);
    Expr rows = g.call("gather", {segments, g.call("maximum", {ids, 0}), 0});
    Shape mask = g.shape(1);
    while (mask.rank() < g.rank(0)) mask.push_back(1);
    return g.call("where", {g.call("greater_equal", {ids, 0}).reshape(mask), rows, 0});
}

Expr segments(const GradRule& g, std::string_view op, const Expr& x) { return g.call(op, {x, g.in(1), g.args[2]}); }

Grads grad_extreme_segment(const GradRule& g) {
    Expr reached = g.call("equal", {g.in(0), per_element(g, g.out)}).cast(g.dout.dtype());
    // Empty segments have no elements that share; 1 keeps the division finite.
    Expr count = g.call("maximum", {segments(g, "unsorted_segment_sum", reached), 1});
    return {per_element(g, g.dout / count) * reached, {}, {}};
}

Grads grad_product_segment(const GradRule& g) {
    // In f64: products of f32 seldom leave its range on the way to a finite result.
    Expr x = g.in(0).cast(DType::f64), zero = g.call("equal", {x, 0});
    Expr filled = g.call("where", {zero, 1, x});
    Expr product = per_element(g, segments(g, "unsorted_segment_prod", filled));
    Expr zeros = per_element(g, segments(g, "unsorted_segment_sum", zero.cast(x.dtype())));
    Expr others = g.call("equal", {zeros - zero.cast(x.dtype()), 0}).cast(x.dtype());
    return {(per_element(g, g.dout) * (others * product / filled)).cast(g.type(0).dtype), {}, {}};
}

void add_segments(Registry& ops) {
    ops.add("unsorted_segment_sum(input_x/x/input: tensor, segment_ids: index, num_segments: int)")
        .doc("The sum of the elements with the same segment id, for each id; negative ids are dropped.")
        .example("unsorted_segment_sum(tensor{1, 2, 3}, tensor{0, 1, 0}, 2)", "tensor{4, 2}")
        .infer(infer_segments)
        .grad([](const GradRule& g) -> Grads {
            return {per_element(g, g.dout), {}, {}};
        })
        .batched(batch::segment_sum)
        .raises()
        .cut("@segments sum")
        .sample("f32[5,2], i64[5]:(0,3), 3")
        .sample("f32[2,3], i64[2,3]:(-1,4), 4");
    ops.add("unsorted_segment_max(x/input_x/input: tensor, segment_ids: index, num_segments: int)")
        .doc("The largest of the elements with the same segment id; the lowest number where there is none.")
        .example("unsorted_segment_max(tensor{1, 2, 3}, tensor{0, 1, 0}, 2)", "tensor{3, 2}")
        .infer(infer_segments)
        .half_native()
        .grad(grad_extreme_segment)
        .raises()
        .wide()
        .cut("@segments max")
        .sample("f32[5,2], i64[5]:(0,2), 2")
        .sample("f32[4], i64[4]:(0,1), 1");
    ops.add("unsorted_segment_min(x/input_x/input: tensor, segment_ids: index, num_segments: int)")
        .doc("The smallest of the elements with the same segment id; the highest number where there is none.")
        .example("unsorted_segment_min(tensor{1, 2, 3}, tensor{0, 1, 0}, 2)", "tensor{1, 2}")
        .infer(infer_segments)
        .half_native()
        .grad(grad_extreme_segment)
        .raises()
        .wide()
        .cut("@segments min")
        .sample("f32[5,2], i64[5]:(0,2), 2")
        .sample("f32[4], i64[4]:(0,1), 1");
    ops.add("unsorted_segment_prod(x/input_x/input: tensor, segment_ids: index, num_segments: int)")
        .doc("The product of the elements with the same segment id; 1 where there is none.")
        .example("unsorted_segment_prod(tensor{1, 2, 3}, tensor{0, 1, 0}, 2)", "tensor{3, 2}")
        .infer(infer_segments)
        .grad(grad_product_segment)
        .raises()
        .wide()
        .cut("@segments prod")
        .sample("f32[5,2]:(1,2), i64[5]:(0,3), 3")
        .sample("f32[2,3]:(1,2), i64[2,3]:(-1,4), 4");
}

// sparse_segment_mean(x, indices, segment_ids): the last id gives the number of rows.
Types infer_sparse_mean(const Call& c) {
    expect_rank_at_least(c, 0, 1);
    expect_rank(c, 1, 1);
    expect_same_shape(c, 1, 2);
    Shape shape = c.shape(0);
    shape[0] = kUnknownDim;
    return {{c.type(0).dtype, shape}};
}

void add_sparse_mean(Registry& ops) {
    ops.add("sparse_segment_mean(x: float, indices: index, segment_ids: index)")
        .doc(
            "Means of rows of x: row s is the mean of x[indices[k]] for all k with segment_ids[k] = s, zeros where "
            "there "
            "is none. segment_ids must not fall.")
        .example("sparse_segment_mean(tensor{{1.0}, {2.0}, {6.0}}, tensor{0, 2, 1}, tensor{0, 0, 1})",
                 "tensor{{3.5}, {2.0}}")
        .infer(infer_sparse_mean)
        .grad([](const GradRule& g) -> Grads {
            // A row's cotangent is shared evenly by the rows of which it is the mean.
            const Expr ids = g.in(2), ones = g.call("ones_like", {ids}).cast(g.dout.dtype());
            const int64_t count = g.shape(1)[0];
            if (count == 0) return {g.builder.zeros_like(g.in(0)), {}, {}};
            const Expr same = g.call("equal", {ids.reshape({count, 1}), ids.reshape({1, count})});
            Shape each{count};
            for (int i = 1; i < g.rank(0); ++i) each.push_back(1);
            const Expr members = same.cast(g.dout.dtype()).sum({1}).reshape(each);
            const Expr rows = g.call("gather", {g.dout, ids, 0}) / members;
            const Expr zeros = g.call("zeros", {g.shape(0), {"dtype", g.dout.dtype()}});
            return {g.call("index_add", {zeros, g.in(1), rows, int64_t{0}}), {}, {}};
        })
        .raises()
        .wide()
        .sample("f32[5,2], i64[4]:(0,5), i64[4]:(1,2)")
        .sample("f32[3], i64[2]:(0,3), i64[2]:(0,1)");
}

}  // namespace

void add_scatter_ops(Registry& ops) {
    add_points(ops);
    add_rows(ops);
    add_elements(ops);
    add_segments(ops);
    add_sparse_mean(ops);
}

}  // namespace lunaria
