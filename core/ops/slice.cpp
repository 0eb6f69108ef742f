// Operators: views of a part of the elements (slices, splits, diagonals) and copies with such a part replaced, which
// are also the gradients of the views.
#include <algorithm>
#include <limits>

#include "core/batching/rules.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"

namespace lunaria {

namespace {

int64_t clamped(int64_t position, int64_t size, int64_t low, int64_t high) {
    return std::clamp(position < 0 ? position + size : position, low, high);
}

int64_t entry(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
    return i < list.size() ? list[i] : otherwise;
}

// One entry begin:stop:step of a slice along an axis, with Python's rules.
void slice_axis(std::string_view where, Layout& layout, int axis, const int64_t* begin, const int64_t* stop,
                int64_t step) {
    if (step == 0) throw value_error(where, "a stride of 0 goes nowhere: strides must not be 0");
    int64_t size = layout.shape[axis];
    if (size == kUnknownDim) {
        if (begin || stop || step != 1) layout.shape[axis] = kUnknownDim;
        return;
    }
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    int64_t from = begin ? clamped(*begin, size, low, high) : (step > 0 ? low : high);
    int64_t to = stop ? clamped(*stop, size, low, high) : (step > 0 ? high : low);
    // Steps beyond the axis all mean one element; bounding them keeps stride arithmetic from overflowing.
    int64_t bound = std::max<int64_t>(size, 1);
    int64_t stride = std::clamp(step, -bound, bound);
    int64_t count = 0;
    if (stride > 0 && to > from) count = (to - from - 1) / stride + 1;
    if (stride < 0 && to < from) count = (from - to - 1) / -stride + 1;
    layout.slice(axis, from, count, stride);
}

Layout part_of(const Layout& whole, int axis, int64_t start, int64_t count) {
    Layout part = whole;
    part.slice(axis, start, count);
    return part;
}

std::vector<Layout> split_layouts(const Call& c, const Layout& whole, int axis, std::span<const int64_t> sizes) {
    int64_t total = 0;
    for (int64_t size : sizes) {
        if (size < 0) throw value_error(c.name(), str("the size of a part is negative (", size, ")"));
        if (__builtin_add_overflow(total, size, &total)) total = std::numeric_limits<int64_t>::max();
    }
    if (total != whole.shape[axis])
        throw value_error(c.name(), str("the sizes of the parts sum to ", total, ", but axis ", axis, " of shape ",
                                        whole.shape, " has size ", whole.shape[axis]));
    std::vector<Layout> parts;
    int64_t start = 0;
    for (int64_t size : sizes) {
        parts.push_back(part_of(whole, axis, start, size));
        start += size;
    }
    return parts;
}

// The limit is the number of results that a call of Lua can have.
void expect_few_parts(const Call& c, int64_t parts) {
    constexpr int64_t kMostParts = 1'000'000;
    if (parts > kMostParts)
        throw value_error(c.name(), str(parts, " parts are too many: a call has at most ", kMostParts, " results"));
}

std::vector<int64_t> equal_sizes(const Call& c, int64_t size, int64_t each) {
    expect_few_parts(c, size / each);
    std::vector<int64_t> sizes;
    for (int64_t start = 0; start < size; start += each) sizes.push_back(std::min(each, size - start));
    if (sizes.empty()) sizes.push_back(0);
    return sizes;
}

int64_t known_size(const Call& c, const Layout& whole, int axis) {
    if (whole.shape[axis] == kUnknownDim)
        throw shape_error(c.name(), str("axis ", axis, " has a size that is only known when the program runs"));
    return whole.shape[axis];
}

std::vector<Layout> split(const Call& c, const Layout& whole) {
    int axis = c.axis(2, 0);
    int64_t size = known_size(c, whole, axis);
    auto sizes = c.ints(1);
    if (c.args[1].is_list()) return split_layouts(c, whole, axis, sizes);
    if (sizes.empty()) throw argument_error(c.name(), "split_size_or_sections must be a size or a list of sizes");
    if (sizes[0] <= 0) throw value_error(c.name(), str("the split size must be positive, not ", sizes[0]));
    return split_layouts(c, whole, axis, equal_sizes(c, size, sizes[0]));
}

std::vector<Layout> chunk(const Call& c, const Layout& whole) {
    int axis = c.axis(2, 0);
    int64_t size = known_size(c, whole, axis), chunks = c.integer(1);
    if (chunks <= 0) throw value_error(c.name(), str("the number of chunks must be positive, not ", chunks));
    return split_layouts(c, whole, axis, equal_sizes(c, size, std::max<int64_t>((size - 1) / chunks + 1, 1)));
}

std::vector<Layout> unbind(const Call& c, const Layout& whole) {
    int axis = c.axis(1, 0);
    const int64_t size = known_size(c, whole, axis);
    expect_few_parts(c, size);
    std::vector<Layout> parts;
    for (int64_t i = 0; i < size; ++i) {
        parts.push_back(whole);
        parts.back().drop(axis, i);
    }
    return parts;
}

// Sections of nearly the same size, or cuts at the given positions, as numpy.array_split.
std::vector<Layout> tensor_split_along(const Call& c, const Layout& whole, int axis, const Value& how) {
    int64_t size = known_size(c, whole, axis);
    std::vector<Layout> parts;
    if (how.is_list()) {
        int64_t start = 0;
        for (size_t i = 0; i <= how.items().size(); ++i) {
            int64_t stop = i < how.items().size() ? clamped(how.items()[i].integer(), size, 0, size) : size;
            parts.push_back(part_of(whole, axis, start, std::max<int64_t>(stop - start, 0)));
            start = stop;
        }
        return parts;
    }
    if (!how.is_number() || how.integer() <= 0)
        throw value_error(c.name(),
                          str("indices_or_sections must be a positive number or a list, not ", to_string(how)));
    int64_t sections = how.integer(), start = 0;
    expect_few_parts(c, sections);
    for (int64_t i = 0; i < sections; ++i) {
        int64_t count = size / sections + (i < size % sections ? 1 : 0);
        parts.push_back(part_of(whole, axis, start, count));
        start += count;
    }
    return parts;
}

std::vector<Layout> equal_split_along(const Call& c, const Layout& whole, int axis) {
    if (c.args[1].is_number() && c.integer(1) > 0 && known_size(c, whole, axis) % c.integer(1) != 0)
        throw value_error(c.name(), str("axis ", axis, " of size ", whole.shape[axis], " does not divide into ",
                                        c.integer(1), " equal parts"));
    return tensor_split_along(c, whole, axis, c.args[1]);
}

Expr zero_like_part(const GradRule& g, size_t i) {
    const Expr& part = g.douts[i] ? g.douts[i] : g.outs[i];
    return g.douts[i] ? g.douts[i] : stretched_zero(g.builder, part.dtype(), part.shape());
}

// The parts lie one after another along an axis: their cotangents do too.
Grads grad_parts(const GradRule& g, int axis) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < g.douts.size(); ++i) parts.push_back(zero_like_part(g, i));
    Grads grads(g.args.size());
    if (!parts.empty()) grads[0] = g.call("concat", {g.builder.list(parts), axis});
    return grads;
}

Grads grad_unbind(const GradRule& g) {
    std::vector<Expr> parts;
    for (size_t i = 0; i < g.douts.size(); ++i) parts.push_back(zero_like_part(g, i));
    Grads grads(g.args.size());
    if (!parts.empty()) grads[0] = g.call("stack", {g.builder.list(parts), g.axis(1, 0)});
    return grads;
}

// Cotangent of a view that strided_slice could have made.
Expr placed(const GradRule& g, const Shape& begin, const Shape& stop, const Shape& strides, int64_t shrink = 0) {
    Expr zero = stretched_zero(g.builder, g.dout.dtype(), g.shape(0));
    return g.call("slice_assign", {zero, g.dout, begin, stop, strides, {"shrink_axis_mask", shrink}});
}

void narrow_layout(const Call& c, Layout& layout, int axis, int64_t start, int64_t length) {
    int64_t size = layout.shape[axis];
    if (size == kUnknownDim) {
        layout.shape[axis] = length;
        return;
    }
    int64_t from = start < 0 ? start + size : start;
    if (from < 0 || from > size)
        throw index_error(c.name(), str("start ", start, " is out of range for axis ", axis, " of size ", size));
    if (length < 0 || length > size - from)
        throw index_error(
            c.name(), str("length ", length, " from ", from, " on is out of range for axis ", axis, " of size ", size));
    layout.slice(axis, from, length);
}

void begin_size_layout(const Call& c, Layout& layout) {
    auto begin = c.ints(1), size = c.ints(2);
    if (begin.size() != size.size() || static_cast<int>(begin.size()) != layout.shape.rank())
        throw value_error(c.name(), str("begin has ", begin.size(), " entries and size ", size.size(),
                                        ": both need one for each axis of shape ", layout.shape));
    for (int axis = 0; axis < layout.shape.rank(); ++axis) {
        int64_t from = begin[static_cast<size_t>(axis)], count = size[static_cast<size_t>(axis)];
        int64_t whole = layout.shape[axis];
        if (whole == kUnknownDim) {
            layout.shape[axis] = count;
            continue;
        }
        if (count == -1 && from >= 0) count = whole - from;
        if (from < 0 || count < 0 || from > whole || count > whole - from)
            throw index_error(c.name(), str("the slice from ", from, " of size ", count, " is out of range for axis ",
                                            axis, " of size ", whole));
        layout.slice(axis, from, count);
    }
}

// The region that slice_assign replaces: it has the parameters of strided_slice two places later.
Types infer_replaced(const Call& c, void (*region)(const Call&, Layout&)) {
    TensorType t{c.dtype, c.shape(0)};
    Layout layout{t.shape, contiguous_strides(t.shape)};
    region(c, layout);
    if (layout.shape.known() && c.shape(1).known()) {
        Shape joint = broadcast(c.name(), layout.shape, c.shape(1));
        if (!(joint == layout.shape))
            throw shape_error(c.name(),
                              str("a value of shape ", c.shape(1), " does not fit the region of shape ", layout.shape));
    }
    return {t};
}

void add_slices(Registry& ops) {
    rearranges(ops.add("slice(input_x/input/x: tensor, begin: ints, size: ints)"),
               [](const Call& c, Layout& layout) { begin_size_layout(c, layout); })
        .doc("The block of the given size that starts at begin; a size of -1 reaches to the end of its axis.")
        .example("slice(tensor{{1, 2, 3}, {4, 5, 6}}, {0, 1}, {2, 2})", "tensor{{2, 3}, {5, 6}}")
        .grad([](const GradRule& g) -> Grads {
            Shape begin(g.ints(1)), out = g.out.shape(), stop = begin, ones;
            for (int i = 0; i < stop.rank(); ++i) stop[i] += out[i];
            ones.resize(begin.rank(), 1);
            return {placed(g, begin, stop, ones), {}, {}};
        })
        .batched(batch::sliced)
        .sample("f32[3,5], {1,2}, {2,-1}")
        .sample("f32[4], {1}, {2}");
    ops.add(
           "strided_slice(input_x/input/x: tensor, begin: ints, stop/end: ints, strides: ints? = nil, begin_mask: int "
           "= "
           "0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0)")
        .doc(
            "The elements begin, begin + stride … before stop of each axis, with negative positions from the end. Bit "
            "i "
            "of a mask lets begin or stop of entry i go to the edge, makes the entry an ellipsis, a new axis, or an "
            "index whose axis goes.")
        .example("strided_slice(tensor{1, 2, 3, 4, 5}, {0}, {5}, {2})", "tensor{1, 3, 5}")
        .infer([](const Call& c) -> Types {
            TensorType t = c.type(0);
            Layout layout{t.shape, contiguous_strides(t.shape)};
            slice_layout(c, 1, layout);
            return {{t.dtype, layout.shape}};
        })
        .view([](const Call& c) -> Value {
            const Tensor& t = c.args[0].tensor();
            Layout layout{t.shape(), t.strides()};
            slice_layout(c, 1, layout);
            bool backwards = std::any_of(layout.strides.begin(), layout.strides.end(), [](int64_t s) { return s < 0; });
            Tensor part = t.view(layout.shape, layout.strides, layout.offset);
            // Kernels may rely on strides that are not negative.
            return Value(backwards ? part.contiguous() : part);
        })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            Expr zero = stretched_zero(g.builder, g.dout.dtype(), g.shape(0));
            Grads grads(g.args.size());
            grads[0] = g.call("slice_assign", {zero, g.dout, g.args[1], g.args[2], g.args[3], g.args[4], g.args[5],
                                               g.args[6], g.args[7], g.args[8]});
            return grads;
        })
        .batched(batch::strided_slice)
        .cut("@slice")
        .sample("f32[5,4], {0,1}, {5,4}, {2,2}")
        .sample("f32[5,3], {4,0}, {-6,3}, {-2,1}")
        .sample("f32[3,4,5], {1,0,-1}, {2,0,0}, {1,1,1}, ellipsis_mask=2, shrink_axis_mask=5");
    ops.add(
           "slice_assign(input_x/input/x: same, value: same, begin: ints, stop/end: ints, strides: ints? = nil, "
           "begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: "
           "int = 0)")
        .doc("A copy of the tensor in which the part that strided_slice would give is replaced by value.")
        .example("slice_assign(tensor{1, 2, 3, 4}, 9, {1}, {3})", "tensor{1, 9, 9, 4}")
        .infer([](const Call& c) {
            return infer_replaced(c, [](const Call& call, Layout& layout) { slice_layout(call, 2, layout); });
        })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            Grads grads(g.args.size());
            Expr zero = stretched_zero(g.builder, g.dout.dtype(), {});
            grads[0] = g.call("slice_assign", {g.dout, zero, g.args[2], g.args[3], g.args[4], g.args[5], g.args[6],
                                               g.args[7], g.args[8], g.args[9]});
            Expr part = g.call("strided_slice", {g.dout, g.args[2], g.args[3], g.args[4], g.args[5], g.args[6],
                                                 g.args[7], g.args[8], g.args[9]});
            grads[1] = g.unbroadcast(part, 1);
            return grads;
        })
        .batched(batch::slice_assign)
        .moves()
        .cut("@part strided_slice")
        .sample("f32[5,4], f32[3,2], {0,1}, {5,4}, {2,2}")
        .sample("f32[3,4], f32[1], {1,0}, {2,0}, {1,1}, end_mask=2, shrink_axis_mask=1");
    rearranges(
        ops.add("narrow(input/x: tensor, axis/dim: int, start: int, length: int)"),
        [](const Call& c, Layout& layout) { narrow_layout(c, layout, c.axis(1, 0), c.integer(2), c.integer(3)); })
        .doc("The elements start … start + length - 1 along one axis.")
        .example("narrow(tensor{1, 2, 3, 4}, 0, 1, 2)", "tensor{2, 3}")
        .grad([](const GradRule& g) -> Grads {
            Shape begin, stop = g.shape(0), ones;
            begin.resize(stop.rank(), 0);
            ones.resize(stop.rank(), 1);
            int axis = g.axis(1, 0);
            begin[axis] = g.integer(2) < 0 ? g.integer(2) + stop[axis] : g.integer(2);
            stop[axis] = begin[axis] + g.integer(3);
            return {placed(g, begin, stop, ones), {}, {}, {}};
        })
        .batched(batch::along<1>)
        .sample("f32[3,5], 1, 1, 3")
        .sample("f32[4,2], 0, -3, 2");
    ops.add(
           "slice_scatter(input/x: tensor, src/value: tensor, axis/dim: int = 0, start: int? = nil, stop/end: int? = "
           "nil, step: int = 1)")
        .doc("A copy of input in which the slice start:stop:step of an axis is src.")
        .example("slice_scatter(tensor{1, 2, 3, 4}, tensor{8, 9}, 0, 1, 3)", "tensor{1, 8, 9, 4}")
        .expand([](const ExpandCall& c) {
            int axis = c.axis(2, 0);
            Shape begin, stop = c.shape(0), ones;
            begin.resize(stop.rank(), 0);
            ones.resize(stop.rank(), 1);
            int64_t edge = (int64_t{1} << stop.rank()) - 1, bit = int64_t{1} << axis;
            if (c.has(3)) begin[axis] = c.integer(3);
            if (c.has(4)) stop[axis] = c.integer(4);
            ones[axis] = c.integer(5);
            return c.call("slice_assign", {c.in(0), c.in(1), begin, stop, ones, c.has(3) ? edge & ~bit : edge,
                                           c.has(4) ? edge & ~bit : edge});
        })
        .sample("f32[5,3], f32[2,3], 0, 1, 5, 2")
        .sample("f32[2,4], f32[2,2], 1, stop=2");
    ops.add("select_scatter(input/x: tensor, src/value: tensor, axis/dim: int, index: int)")
        .doc("A copy of input in which the part at position index of an axis is src.")
        .example("select_scatter(zeros({2, 2}), tensor{1.0, 2.0}, 0, 1)", "tensor{{0.0, 0.0}, {1.0, 2.0}}")
        .expand([](const ExpandCall& c) {
            int axis = c.axis(2, 0);
            Shape begin, stop = c.shape(0), ones;
            begin.resize(stop.rank(), 0);
            ones.resize(stop.rank(), 1);
            begin[axis] = c.integer(3);
            int64_t bit = int64_t{1} << axis;
            return c.call("slice_assign", {c.in(0), c.in(1), begin, stop, ones, 0, 0, 0, 0, bit});
        })
        .sample("f32[3,2], f32[2], 0, -1")
        .sample("f32[2,4], f32[2], 1, 3");
}

void add_splits(Registry& ops) {
    divides(ops.add("split(tensor/input/x: tensor, split_size_or_sections/split_size/sections: any, axis/dim: int = 0) "
                    "-> (parts)"),
            [](const Call& c, const Layout& whole) { return split(c, whole); })
        .doc("Parts of the given size along an axis (the last may be smaller), or of the sizes in a list.")
        .example("split(tensor{1, 2, 3}, 2)", "{tensor{1, 2}, tensor{3}}")
        .grad([](const GradRule& g) { return grad_parts(g, g.axis(2, 0)); })
        .batched(batch::along<2>)
        .sample("f32[2,5], 2, 1")
        .sample("f32[3,5], {1,4}, axis=1");
    divides(ops.add("chunk(input/x: tensor, chunks: int, axis/dim: int = 0) -> (parts)"),
            [](const Call& c, const Layout& whole) { return chunk(c, whole); })
        .doc("At most the given number of parts of equal size along an axis; the last may be smaller.")
        .example("chunk(tensor{1, 2, 3}, 2)", "{tensor{1, 2}, tensor{3}}")
        .grad([](const GradRule& g) { return grad_parts(g, g.axis(2, 0)); })
        .batched(batch::along<2>)
        .sample("f32[6,2], 3")
        .sample("f32[2,5], 2, -1");
    divides(ops.add("unbind(input/input_x/x: tensor, dim/axis: int = 0) -> (parts)"),
            [](const Call& c, const Layout& whole) { return unbind(c, whole); })
        .doc("The parts of the tensor along an axis, without that axis.")
        .example("unbind(tensor{{1, 2}, {3, 4}})", "{tensor{1, 2}, tensor{3, 4}}")
        .grad(grad_unbind)
        .alias("unstack")
        .batched(batch::along<1>)
        .sample("f32[3,2]")
        .sample("f32[2,5], -1");
    divides(ops.add("tensor_split(input/x: tensor, indices_or_sections/sections/indices: any, axis/dim: int = 0) -> "
                    "(parts)"),
            [](const Call& c, const Layout& whole) { return tensor_split_along(c, whole, c.axis(2, 0), c.args[1]); })
        .doc("Sections whose sizes differ by at most one, or parts cut before the given positions.")
        .example("tensor_split(tensor{1, 2, 3}, 2)", "{tensor{1, 2}, tensor{3}}")
        .grad([](const GradRule& g) { return grad_parts(g, g.axis(2, 0)); })
        .batched(batch::along<2>)
        .sample("f32[7,2], 3")
        .sample("f32[2,5], {1,3}, 1");
    divides(ops.add("hsplit(input/x: tensor, indices_or_sections/sections/indices: any) -> (parts)"),
            [](const Call& c, const Layout& whole) {
                expect_rank_at_least(c, 0, 1);
                return equal_split_along(c, whole, c.rank(0) == 1 ? 0 : 1);
            })
        .doc("Equal parts along axis 1 (axis 0 of a vector), or parts cut before the given positions.")
        .example("hsplit(tensor{1, 2, 3, 4}, 2)", "{tensor{1, 2}, tensor{3, 4}}")
        .grad([](const GradRule& g) { return grad_parts(g, g.rank(0) == 1 ? 0 : 1); })
        .sample("f32[2,6], 3")
        .sample("f32[5], {1,3}");
    divides(ops.add("vsplit(input/x: tensor, indices_or_sections/sections/indices: any) -> (parts)"),
            [](const Call& c, const Layout& whole) {
                expect_rank_at_least(c, 0, 2);
                return equal_split_along(c, whole, 0);
            })
        .doc("Equal parts along axis 0, or parts cut before the given positions.")
        .example("vsplit(tensor{{1, 2}, {3, 4}}, 2)", "{tensor{{1, 2}}, tensor{{3, 4}}}")
        .grad([](const GradRule& g) { return grad_parts(g, 0); })
        .sample("f32[6,2], 3")
        .sample("f32[5,1], {1,3}");
    divides(ops.add("dsplit(input/x: tensor, indices_or_sections/sections/indices: any) -> (parts)"),
            [](const Call& c, const Layout& whole) {
                expect_rank_at_least(c, 0, 3);
                return equal_split_along(c, whole, 2);
            })
        .doc("Equal parts along axis 2, or parts cut before the given positions.")
        .example("dsplit(tensor{{{1, 2}}}, 2)", "{tensor{{{1}}}, tensor{{{2}}}}")
        .grad([](const GradRule& g) { return grad_parts(g, 2); })
        .sample("f32[1,2,6], 3")
        .sample("f32[2,1,5], {1,3}");
}

void add_diagonals(Registry& ops) {
    rearranges(ops.add("diagonal(input/x: tensor, offset: int = 0, dim1/axis1: int = 0, dim2/axis2: int = 1)"),
               [](const Call& c, Layout& layout) { diagonal_layout(c, 1, layout); })
        .doc("The diagonal of the matrices that axes dim1 and dim2 span, as a new last axis.")
        .example("diagonal(tensor{{1, 2}, {3, 4}})", "tensor{1, 4}")
        .grad([](const GradRule& g) -> Grads {
            Expr zero = stretched_zero(g.builder, g.dout.dtype(), g.shape(0));
            return {g.call("diagonal_scatter", {zero, g.dout, g.args[1], g.args[2], g.args[3]}), {}, {}, {}};
        })
        .batched(batch::diagonal)
        .sample("f32[3,4]")
        .sample("f32[2,3,5], 1, 1, 2")
        .sample("f32[3,2,3], -1, 2, 0");
    ops.add(
           "diagonal_scatter(input/x: same, src/value: same, offset: int = 0, dim1/axis1: int = 0, dim2/axis2: int = "
           "1)")
        .doc("A copy of input whose diagonal is src.")
        .example("diagonal_scatter(zeros({2, 2}), tensor{1.0, 2.0})", "tensor{{1.0, 0.0}, {0.0, 2.0}}")
        .infer([](const Call& c) {
            return infer_replaced(c, [](const Call& call, Layout& layout) { diagonal_layout(call, 2, layout); });
        })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            Expr zero = stretched_zero(g.builder, g.dout.dtype(), {});
            Expr input = g.call("diagonal_scatter", {g.dout, zero, g.args[2], g.args[3], g.args[4]});
            Expr src = g.call("diagonal", {g.dout, g.args[2], g.args[3], g.args[4]});
            return {input, g.unbroadcast(src, 1), {}, {}, {}};
        })
        .moves()
        .cut("@part diagonal")
        .sample("f32[3,4], f32[3]")
        .sample("f32[2,3,5], f32[2,3], 1, 1, 2");
}

void window_layout(const Call& c, Layout& layout) {
    const int axis = c.axis(1, 0);
    const int64_t size = c.integer(2), length = layout.shape[axis];
    if (size < 1) throw value_error(c.name(), str("a window has at least 1 element, not ", size));
    if (length != kUnknownDim && size > length)
        throw shape_error(c.name(), str("axis ", axis, " has ", length, " elements: too few for a window of ", size));
    if (length != kUnknownDim) layout.shape[axis] = length - size + 1;
    layout.insert(layout.shape.rank(), size, layout.strides[axis]);
}

// Element i of the operand is element p of window i - p: windows of the padded windows, whose diagonal it is.
Grads grad_windows(const GradRule& g) {
    const int rank = g.rank(0), axis = g.axis(1, 0);
    const int64_t size = g.integer(2);
    Shape around;  // the last axis first
    for (int i = rank; i >= axis; --i)
        for (int side = 0; side < 2; ++side) around.push_back(i == axis ? size - 1 : 0);
    const Expr padded = g.call("pad", {g.call("flip", {g.dout, Arg(Shape{rank})}), Arg(around)});
    const Expr windows = g.call("sliding_window", {padded, Arg(int64_t{axis}), Arg(size)});
    const Expr own = g.call("diagonal", {windows, Arg(int64_t{0}), Arg(int64_t{rank}), Arg(int64_t{rank + 1})});
    return {own.sum({rank}), {}, {}};
}

void add_windows(Registry& ops) {
    rearranges(ops.add("sliding_window(input/x: tensor, axis: int, size: int)"),
               [](const Call& c, Layout& layout) { window_layout(c, layout); })
        .doc(
            "All windows of size neighbours along an axis: which window goes on along that axis, the elements of a "
            "window are a new last axis.")
        .example("sliding_window(tensor{1, 2, 3, 4}, 0, 3)", "tensor{{1, 2, 3}, {2, 3, 4}}")
        .grad(grad_windows)
        .batched(batch::along<1>)
        .sample("f32[5], 0, 2")
        .sample("f32[2,6,3], 1, 4")
        .sample("f32[3,4], -1, 1");
}

}  // namespace

void slice_layout(const Call& call, size_t first, Layout& layout) {
    auto begin = call.ints(first), stop = call.ints(first + 1), strides = call.ints(first + 2);
    if (begin.size() != stop.size() || (!strides.empty() && strides.size() != begin.size()))
        throw value_error(call.name(), str("begin has ", begin.size(), " entries, stop ", stop.size(), " and strides ",
                                           strides.size(), ": the lists must be equally long"));
    if (begin.size() > 64) throw value_error(call.name(), "more than 64 entries");
    auto bit = [&](size_t mask, size_t i) {
        return (static_cast<uint64_t>(call.integer(first + 3 + mask)) >> i & 1) != 0;
    };
    enum { kBegin, kEnd, kEllipsis, kNewAxis, kShrink };
    size_t entries = begin.size(), ellipsis = entries;
    int used = 0;  // number of axes that the entries cover
    for (size_t i = 0; i < entries; ++i) {
        if (bit(kEllipsis, i)) {
            if (ellipsis != entries) throw value_error(call.name(), "only one entry may be an ellipsis");
            ellipsis = i;
        } else if (!bit(kNewAxis, i)) {
            ++used;
        }
    }
    int rank = layout.shape.rank();
    if (used > rank)
        throw index_error(call.name(), str("too many indices: ", used, " for a tensor of ", rank, " axes"));
    int axis = 0;
    for (size_t i = 0; i < entries; ++i) {
        if (i == ellipsis) {
            axis += rank - used;
        } else if (bit(kNewAxis, i)) {
            layout.insert(axis++);
        } else if (bit(kShrink, i)) {
            int64_t size = layout.shape[axis], at = begin[i] < 0 ? begin[i] + size : begin[i];
            if (size != kUnknownDim && (at < 0 || at >= size))
                throw index_error(call.name(),
                                  str("index ", begin[i], " is out of range for axis ", axis, " of size ", size));
            layout.drop(axis, std::max<int64_t>(at, 0));
        } else {
            slice_axis(call.name(), layout, axis, bit(kBegin, i) ? nullptr : &begin[i],
                       bit(kEnd, i) ? nullptr : &stop[i], entry(strides, i, 1));
            ++axis;
        }
    }
}

void diagonal_layout(const Call& call, size_t first, Layout& layout) {
    int rank = layout.shape.rank();
    if (rank < 2) throw shape_error(call.name(), str("input must have at least 2 axes, not shape ", layout.shape));
    int a = normal_axis(call.name(), call.integer(first + 1), rank, "dim1");
    int b = normal_axis(call.name(), call.integer(first + 2), rank, "dim2");
    if (a == b) throw value_error(call.name(), str("dim1 and dim2 are both axis ", a));
    int64_t offset = call.integer(first);
    int64_t rows = layout.shape[a], columns = layout.shape[b], count = kUnknownDim;
    int64_t step = layout.strides[a] + layout.strides[b];
    if (rows != kUnknownDim && columns != kUnknownDim) {
        // Beyond the corners the diagonal is empty, wherever it starts.
        bool inside = offset > -rows && offset < columns;
        count = inside ? std::min(rows + std::min<int64_t>(offset, 0), columns - std::max<int64_t>(offset, 0)) : 0;
        if (inside) layout.offset += offset >= 0 ? offset * layout.strides[b] : -offset * layout.strides[a];
    }
    layout.shape.erase(std::max(a, b));
    layout.strides.erase(std::max(a, b));
    layout.shape.erase(std::min(a, b));
    layout.strides.erase(std::min(a, b));
    layout.insert(layout.shape.rank(), count, step);
}

void add_slice_ops(Registry& ops) {
    add_slices(ops);
    add_splits(ops);
    add_diagonals(ops);
    add_windows(ops);
}

}  // namespace lunaria
