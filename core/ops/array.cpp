// Operators: joining, repeating, reordering and padding.
#include <algorithm>
#include <numeric>
#include <optional>

#include "core/batching/rules.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"
#include "core/ops/open.h"

namespace lunaria {

namespace {

TensorType infer_concat_type(const Call& c) {
    auto types = c.types(0);
    if (types.empty()) throw value_error(c.name(), "the list of tensors is empty: at least one tensor is needed");
    Shape shape = types[0].shape;
    DType dtype = types[0].dtype;
    int axis = normal_axis(c.name(), c.integer(1), shape.rank());
    for (size_t i = 1; i < types.size(); ++i) {
        const Shape& other = types[i].shape;
        dtype = promote(dtype, types[i].dtype);
        bool fits = other.rank() == shape.rank();
        for (int k = 0; fits && k < shape.rank(); ++k) {
            if (k == axis) continue;
            fits = other[k] == shape[k] || other[k] == kUnknownDim || shape[k] == kUnknownDim;
            shape[k] = std::max(other[k], shape[k]);
        }
        if (!fits)
            throw shape_error(c.name(), str("cannot concat along axis ", axis, ": tensor 0 has shape ", types[0].shape,
                                            " and tensor ", i, " has shape ", other,
                                            "; rank and all other sizes must "
                                            "be equal"));
        shape[axis] =
            shape[axis] == kUnknownDim || other[axis] == kUnknownDim ? kUnknownDim : shape[axis] + other[axis];
    }
    return {dtype, shape};
}

std::vector<Expr> items_of(const ExpandCall& c, size_t i) {
    if (!c.args[i].is_list() || c.args[i].items().empty())
        throw value_error(c.name(), "the list of tensors is empty: at least one tensor is needed");
    std::vector<Expr> items;
    for (const Value& v : c.args[i].items()) items.emplace_back(c.builder, v);
    return items;
}

Expr joined(const ExpandCall& c, const std::vector<Expr>& items, int axis) {
    return c.call("concat", {c.builder.list(items), axis});
}

// (outer, size, inner) around one axis.
struct Split3 {
    int64_t outer = 1, size = 1, inner = 1;
    Split3(const Shape& shape, int axis) {
        size = shape[axis];
        // Without elements the other axes may be so long that their product overflows.
        for (int64_t n : shape.dims())
            if (n == 0) outer = 0;
        if (outer == 0) return;
        for (int i = 0; i < axis; ++i) outer *= shape[i];
        for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    }
};

Expr repeated_axis(const Expr& x, int axis, int64_t count) {
    Shape shape = x.shape();
    Split3 s(shape, axis);
    shape[axis] *= count;
    checked_shape("tile", shape.dims());
    return x.reshape({s.outer, 1, s.size * s.inner}).broadcast_to({s.outer, count, s.size * s.inner}).reshape(shape);
}

// The shape with an axis of size 1 before each repeated axis, and the same shape with the repetitions, for one copy;
// nothing where the copied pieces would be short, or there are too many axes.
std::optional<std::pair<Shape, Shape>> tiled_at_once(const Shape& shape, const std::vector<int64_t>& target) {
    constexpr int64_t kLongPiece = 64;
    std::vector<int64_t> from, to;
    for (int i = 0; i < shape.rank(); ++i) {
        const int64_t size = shape[i], wanted = target[static_cast<size_t>(i)];
        if (wanted == size && !from.empty()) {
            from.back() *= size;
            to.back() *= size;
            continue;
        }
        if (wanted != size) {
            from.push_back(1);
            to.push_back(size ? wanted / size : 0);
        }
        from.push_back(size);
        to.push_back(size);
    }
    if (from.empty() || from.size() > kMaxRank || from.back() < kLongPiece) return {};
    return std::pair(Shape(from), Shape(to));
}

Expr tile(const ExpandCall& c) {
    auto counts = c.ints(1);
    Expr x = c.in(0);
    Shape shape = c.shape(0);
    if (counts.size() > kMaxRank) checked_shape(c.name(), counts);
    while (shape.rank() < static_cast<int>(counts.size())) shape.insert(0, 1);
    std::vector<int64_t> target(shape.begin(), shape.end());
    for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
        int64_t count = counts[counts.size() - 1 - static_cast<size_t>(i)];
        if (count < 0) throw value_error(c.name(), str("the number of repetitions is negative (", count, ")"));
        int64_t& size = target[target.size() - 1 - static_cast<size_t>(i)];
        if (__builtin_mul_overflow(size, count, &size))
            throw shape_error(c.name(), "the result is too large: its size overflows 63 bits");
    }
    checked_shape(c.name(), target);
    x = x.reshape(shape);
    if (auto spread = tiled_at_once(shape, target))
        return x.reshape(spread->first).broadcast_to(spread->second).reshape(Shape(target));
    for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
        // Starts from the last axis, so that the longest copies come last and in one piece.
        int64_t count = counts[counts.size() - 1 - static_cast<size_t>(i)];
        if (count != 1) x = repeated_axis(x, shape.rank() - 1 - i, count);
    }
    return x;
}

Expr repeat_interleave(const ExpandCall& c) {
    Expr x = c.in(0);
    if (!c.has(2)) x = x.reshape({-1});
    int axis = c.has(2) ? c.axis(2, 0) : 0;
    if (x.rank() == 0) throw shape_error(c.name(), "a tensor without axes cannot be repeated along one");
    Shape shape = x.shape();
    Split3 s(shape, axis);
    const Value& repeats = c.args[1];
    std::vector<int64_t> counts;
    if (repeats.is_tensor()) {
        if (!is_integer(repeats.tensor().dtype()))
            throw dtype_error(c.name(), str("repeats must hold integers, not ", name_of(repeats.tensor().dtype())));
        if (repeats.tensor().size() > std::max<int64_t>(shape[axis], 1))
            throw shape_error(c.name(), str("repeats holds ", repeats.tensor().size(), " numbers, but axis ", axis,
                                            " of shape ", shape, " has size ", shape[axis]));
        const Tensor numbers = repeats.tensor().to_host();
        for (int64_t i = 0; i < numbers.size(); ++i) counts.push_back(numbers.integer_at(i));
    } else if (repeats.is_number() || repeats.is_list()) {
        counts = c.ints(1);
    } else {
        throw argument_error(c.name(), str("repeats must be a number, a list or a tensor, not ", to_string(repeats)));
    }
    for (int64_t count : counts)
        if (count < 0) throw value_error(c.name(), str("the number of repetitions is negative (", count, ")"));
    if (counts.size() == 1) {
        shape[axis] = counts[0];
        checked_shape(c.name(), shape.dims());
        // Beside an axis without elements any size is allowed that fits into 63 bits.
        if (__builtin_mul_overflow(counts[0], s.size, &shape[axis]))
            throw shape_error(c.name(), "the result is too large: its size overflows 63 bits");
        checked_shape(c.name(), shape.dims());
        return x.reshape({s.outer * s.size, 1, s.inner})
            .broadcast_to({s.outer * s.size, counts[0], s.inner})
            .reshape(shape);
    }
    if (static_cast<int64_t>(counts.size()) != s.size)
        throw shape_error(c.name(),
                          str("repeats has ", counts.size(), " entries for axis ", axis, " of size ", s.size));
    int64_t total = 0;
    for (int64_t count : counts)
        if (__builtin_add_overflow(total, count, &total))
            throw shape_error(c.name(), "the result is too large: its size overflows 63 bits");
    Tensor index = Tensor::empty(DType::i64, checked_shape(c.name(), std::span(&total, 1)));
    int64_t* position = index.data<int64_t>();
    for (size_t i = 0; i < counts.size(); ++i) position = std::fill_n(position, counts[i], static_cast<int64_t>(i));
    return c.call("gather", {x, c.builder.constant(index), axis});
}

Expr part(const ExpandCall& c, const Expr& x, int axis, int64_t start, int64_t length) {
    return c.call("narrow", {x, axis, start, length});
}

Expr rolled(const ExpandCall& c, const Expr& x, int axis, int64_t shift) {
    int64_t size = x.shape()[axis];
    if (size == 0) return x;
    shift = ((shift % size) + size) % size;
    if (shift == 0) return x;
    return joined(c, {part(c, x, axis, size - shift, shift), part(c, x, axis, 0, size - shift)}, axis);
}

Expr roll(const ExpandCall& c) {
    auto shifts = c.ints(1), dims = c.ints(2);
    if (!c.has(2)) {
        if (shifts.size() != 1) throw value_error(c.name(), "several shifts need as many dims");
        return rolled(c, c.in(0).reshape({-1}), 0, shifts[0]).reshape(c.shape(0));
    }
    if (shifts.size() != dims.size())
        throw value_error(c.name(), str("there are ", shifts.size(), " shifts for ", dims.size(), " dims"));
    Expr x = c.in(0);
    for (size_t i = 0; i < dims.size(); ++i)
        x = rolled(c, x, normal_axis(c.name(), dims[i], x.rank(), "dims"), shifts[i]);
    return x;
}

Expr flipped(const ExpandCall& c, const Expr& x, const Shape& axes) { return c.call("flip", {x, axes}); }

Expr rot90(const ExpandCall& c) {
    auto dims = c.ints(2);
    if (dims.size() != 2) throw value_error(c.name(), str("dims must name two axes, not ", dims.size()));
    Shape plane = normal_axes(c.name(), dims, c.rank(0), "dims");
    int64_t turns = ((c.integer(1) % 4) + 4) % 4;
    Expr x = c.in(0);
    if (turns == 0) return x;
    if (turns == 2) return flipped(c, x, plane);
    if (turns == 1) return c.call("swapaxes", {flipped(c, x, {plane[1]}), plane[0], plane[1]});
    return flipped(c, c.call("swapaxes", {x, plane[0], plane[1]}), {plane[1]});
}

void add_joins(Registry& ops) {
    ops.add("concat(tensors/input_x/inputs/input: tensors, axis/dim: int = 0)")
        .doc("Tensors one after another along an axis; all other sizes must be equal.")
        .example("concat({tensor{1, 2}, tensor{3}})", "tensor{1, 2, 3}")
        .infer([](const Call& c) -> Types { return {infer_concat_type(c)}; })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            auto types = g.types(0);
            int axis = normal_axis(g.name(), g.integer(1), types[0].shape.rank());
            std::vector<Expr> parts;
            int64_t start = 0;
            for (const TensorType& t : types) {
                parts.push_back(g.call("narrow", {g.dout, axis, start, t.shape[axis]}));
                start += t.shape[axis];
            }
            return {g.builder.list(parts), {}};
        })
        .alias("cat")
        .alias("concatenate")
        .batched(batch::joined)
        .moves()
        .sample("{f32[2,3], f32[4,3]}")
        .sample("{f32[2,1], f32[2,5], f32[2,0]}, axis=-1");
    ops.add("stack(tensors/input_x/inputs/input: tensors, axis/dim: int = 0)")
        .doc("Tensors of one shape side by side along a new axis.")
        .example("stack({tensor{1, 2}, tensor{3, 4}})", "tensor{{1, 2}, {3, 4}}")
        .expand([](const ExpandCall& c) {
            auto items = items_of(c, 0);
            Shape shape = items[0].shape();
            int axis = normal_axis(c.name(), c.integer(1), shape.rank() + 1);
            for (size_t i = 0; i < items.size(); ++i) {
                if (!(items[i].shape() == shape))
                    throw shape_error(c.name(), str("tensor 0 has shape ", shape, " and tensor ", i, " has shape ",
                                                    items[i].shape(), ": they must be equal"));
                items[i] = c.call("expand_dims", {items[i], axis});
            }
            return joined(c, items, axis);
        })
        .sample("{f32[2,3], f32[2,3], f32[2,3]}, 1")
        .sample("{f32[5], f32[5]}, axis=-1");
    ops.add("hstack(tensors/inputs/input: tensors)")
        .doc("Joins along axis 1, vectors along axis 0.")
        .example("hstack({tensor{1}, tensor{2, 3}})", "tensor{1, 2, 3}")
        .expand([](const ExpandCall& c) {
            auto items = items_of(c, 0);
            for (Expr& e : items)
                if (e.rank() == 0) e = e.reshape({1});
            return joined(c, items, items[0].rank() == 1 ? 0 : 1);
        })
        .sample("{f32[2,3], f32[2,1]}")
        .sample("{f32[3], f32[5]}");
    ops.add("vstack(tensors/inputs/input: tensors)")
        .doc("Joins along axis 0; vectors become rows.")
        .example("vstack({tensor{1, 2}, tensor{3, 4}})", "tensor{{1, 2}, {3, 4}}")
        .expand([](const ExpandCall& c) {
            auto items = items_of(c, 0);
            for (Expr& e : items)
                if (e.rank() < 2) e = e.reshape({1, e.rank() == 1 ? e.shape()[0] : 1});
            return joined(c, items, 0);
        })
        .alias("row_stack")
        .sample("{f32[2,3], f32[1,3]}")
        .sample("{f32[5], f32[5]}");
    ops.add("dstack(tensors/inputs/input: tensors)")
        .doc("Joins along axis 2; vectors and matrices get a last axis first.")
        .example("dstack({tensor{1, 2}, tensor{3, 4}})", "tensor{{{1, 3}, {2, 4}}}")
        .expand([](const ExpandCall& c) {
            auto items = items_of(c, 0);
            for (Expr& e : items) {
                Shape shape = e.shape();
                while (shape.rank() < 2) shape.insert(0, 1);
                if (shape.rank() == 2) shape.push_back(1);
                e = e.reshape(shape);
            }
            return joined(c, items, 2);
        })
        .sample("{f32[2,3], f32[2,3]}")
        .sample("{f32[5], f32[5]}");
    ops.add("column_stack(tensors/inputs/input: tensors)")
        .doc("Joins along axis 1; vectors become columns.")
        .example("column_stack({tensor{1, 2}, tensor{3, 4}})", "tensor{{1, 3}, {2, 4}}")
        .expand([](const ExpandCall& c) {
            auto items = items_of(c, 0);
            for (Expr& e : items)
                if (e.rank() < 2) e = e.reshape({e.rank() == 1 ? e.shape()[0] : 1, 1});
            return joined(c, items, 1);
        })
        .sample("{f32[2,3], f32[2]}")
        .sample("{f32[5], f32[5]}");
    ops.add("block_diag(inputs/tensors: tensors)")
        .doc("The matrices along the diagonal of a larger one that is 0 elsewhere.")
        .example("block_diag({tensor{{1, 2}}, tensor{{3}}})", "tensor{{1, 2, 0}, {0, 0, 3}}")
        .expand([](const ExpandCall& c) {
            auto items = items_of(c, 0);
            int64_t columns = 0, before = 0;
            for (Expr& e : items) {
                if (e.rank() > 2) throw shape_error(c.name(), str("a block has shape ", e.shape(), ", not a matrix's"));
                if (e.rank() < 2) e = e.reshape({1, e.rank() == 1 ? e.shape()[0] : 1});
                columns += e.shape()[1];
            }
            for (Expr& e : items) {
                int64_t width = e.shape()[1];
                e = c.call("pad", {e, Shape{before, columns - before - width}});
                before += width;
            }
            return joined(c, items, 0);
        })
        .sample("{f32[2,3], f32[1,2]}")
        .sample("{f32[3], f32[2,2]}");
}

void add_repeats(Registry& ops) {
    ops.add("tile(input/x/input_x: tensor, dims/reps/multiples/repeats: shape)")
        .doc("The tensor repeated along each axis; dims speaks of the last axes.")
        .example("tile(tensor{1, 2}, {2, 2})", "tensor{{1, 2, 1, 2}, {1, 2, 1, 2}}")
        .expand(tile)
        .sample("f32[2,3], {2,1,2}")
        .sample("f32[3,1], {3}")
        .sample("f32[2,64], {3,2}")
        .sample("f32[3,2,70], {2,1,2,1}");
    ops.add("repeat_interleave(input/x: tensor, repeats/rep: any, axis/dim: int? = nil)")
        .doc(
            "Each element repeated the given number of times (one number, or one for each); without an axis, of the "
            "flat tensor.")
        .example("repeat_interleave(tensor{1, 2}, 2)", "tensor{1, 1, 2, 2}")
        .expand(repeat_interleave)
        .sample("f32[2,3], 2, 1")
        .sample("f32[3,2], {1,0,2}, 0")
        .sample("f32[3], 2");
    ops.add("repeat_elements(x/input: tensor, rep/repeats: int, axis/dim: int = 0)")
        .doc("Each part along an axis repeated rep times.")
        .example("repeat_elements(tensor{1, 2}, 2)", "tensor{1, 1, 2, 2}")
        .expand([](const ExpandCall& c) {
            return c.call("repeat_interleave", {c.in(0), c.args[1], c.args[2]});
        })
        .sample("f32[2,3], 2")
        .sample("f32[2,3], 3, -1");
    ops.add("meshgrid(inputs/tensors: tensors, *, indexing: \"xy\"|\"ij\" = \"xy\") -> (grids)")
        .doc("Coordinate grids of the given vectors; \"xy\" lets the first vector run along axis 1.")
        .example("meshgrid({tensor{1, 2}, tensor{3, 4}}, {indexing = \"ij\"})",
                 "{tensor{{1, 1}, {2, 2}}, tensor{{3, 4}, {3, 4}}}")
        .expand([](const ExpandCall& c) -> Expr {
            auto items = items_of(c, 0);
            Shape sizes;
            for (Expr& e : items) {
                if (e.rank() > 1) throw shape_error(c.name(), str("inputs must be vectors, not of shape ", e.shape()));
                e = e.reshape({-1});
                sizes.push_back(e.shape()[0]);
            }
            bool swap = c.string(1) == "xy" && sizes.rank() > 1;
            if (swap) std::swap(sizes[0], sizes[1]);
            checked_shape(c.name(), sizes.dims());
            for (int i = 0; i < sizes.rank(); ++i) {
                int axis = swap && i < 2 ? 1 - i : i;
                Shape shape;
                shape.resize(sizes.rank(), 1);
                shape[axis] = sizes[axis];
                Expr& e = items[static_cast<size_t>(i)];
                e = e.reshape(shape).broadcast_to(sizes);
            }
            return c.builder.list(items);
        })
        .sample("{f32[2], f32[3]}")
        .sample("{f32[2], f32[3], f32[5]}, indexing=\"ij\"");
}

void add_orders(Registry& ops) {
    ops.add("flip(input/x: tensor, dims/axis: ints)")
        .doc("The elements in reverse order along the given axes.")
        .example("flip(tensor{1, 2, 3}, {0})", "tensor{3, 2, 1}")
        .infer(same_as_first)
        .view([](const Call& c) -> Value {
            const Tensor& t = c.args[0].tensor();
            Layout layout{t.shape(), t.strides()};
            for (int64_t axis : normal_axes(c.name(), c.ints(1), t.rank(), "dims")) {
                int k = static_cast<int>(axis);
                layout.slice(k, std::max<int64_t>(layout.shape[k] - 1, 0), layout.shape[k], -1);
            }
            // Kernels may rely on strides that are not negative.
            return Value(t.view(layout.shape, layout.strides, layout.offset).contiguous());
        })
        .strided()
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("flip", {g.dout, g.args[1]}), {}};
        })
        .alias("reverse")
        .batched(batch::along<1>)
        .cut("@flip")
        .sample("f32[3,2], {0}")
        .sample("f32[2,3,5], {0,-1}");
    ops.add("fliplr(input/x: tensor)")
        .doc("Reverses axis 1.")
        .example("fliplr(tensor{{1, 2}})", "tensor{{2, 1}}")
        .expand([](const ExpandCall& c) {
            expect_rank_at_least(c, 0, 2);
            return flipped(c, c.in(0), {1});
        })
        .sample("f32[2,3]")
        .sample("f32[2,3,5]");
    ops.add("flipud(input/x: tensor)")
        .doc("Reverses axis 0.")
        .example("flipud(tensor{1, 2})", "tensor{2, 1}")
        .expand([](const ExpandCall& c) {
            expect_rank_at_least(c, 0, 1);
            return flipped(c, c.in(0), {0});
        })
        .sample("f32[2,3]")
        .sample("f32[5]");
    ops.add("rot90(input/x: tensor, k: int = 1, dims/axes: ints = {0, 1})")
        .doc("Quarter turns from the first towards the second axis of dims.")
        .example("rot90(tensor{{1, 2}, {3, 4}})", "tensor{{2, 4}, {1, 3}}")
        .expand(rot90)
        .sample("f32[2,3]")
        .sample("f32[2,3,2], 3, {1,2}");
    ops.add("roll(input/x: tensor, shifts/shift: ints, dims/axis/axes: ints? = nil)")
        .doc("Moves the elements along axes; those pushed over the end come back at the start.")
        .example("roll(tensor{1, 2, 3}, 1)", "tensor{3, 1, 2}")
        .expand(roll)
        .sample("f32[2,5], 2, 1")
        .sample("f32[3,4], {1,-2}, {0,1}")
        .sample("f32[5], 7");
}

void add_triangles(Registry& ops) {
    auto diagonal = [](Op& op, GradFn grad) -> Op& {
        return op
            .infer([](const Call& c) -> Types {
                expect_rank_at_least(c, 0, 2);
                return {c.type(0)};
            })
            .strided()
            .half_native()
            .grad(grad);
    };
    diagonal(ops.add("tril(input/x: tensor, diagonal/k: int = 0)"),
             [](const GradRule& g) -> Grads {
                 return {g.call("tril", {g.dout, g.args[1]}), {}};
             })
        .doc("The lower triangles of matrices: elements above the diagonal become 0.")
        .example("tril(tensor{{1, 2}, {3, 4}})", "tensor{{1, 0}, {3, 4}}")
        .batched(batch::last_axes<2>)
        .moves()
        .linear({0})
        .cut("@triangle")
        .sample("f32[3,4]")
        .sample("f32[2,3,5], -1");
    diagonal(ops.add("triu(input/x: tensor, diagonal/k: int = 0)"),
             [](const GradRule& g) -> Grads {
                 return {g.call("triu", {g.dout, g.args[1]}), {}};
             })
        .doc("The upper triangles of matrices: elements below the diagonal become 0.")
        .example("triu(tensor{{1, 2}, {3, 4}})", "tensor{{1, 2}, {0, 4}}")
        .batched(batch::last_axes<2>)
        .moves()
        .linear({0})
        .cut("@triangle")
        .sample("f32[3,4]")
        .sample("f32[2,3,5], 1");
    ops.add("diag_embed(input/x: tensor, offset: int = 0, dim1: int = -2, dim2: int = -1)")
        .doc("Matrices that are 0 but for a diagonal, which is the last axis of input.")
        .example("diag_embed(tensor{1, 2})", "tensor{{1, 0}, {0, 2}}")
        .expand([](const ExpandCall& c) {
            expect_rank_at_least(c, 0, 1);
            Shape shape = c.shape(0);
            int rank = shape.rank() + 1;
            constexpr int64_t kMost = int64_t{1} << 31;
            if (c.integer(1) < -kMost || c.integer(1) > kMost)
                throw value_error(c.name(), str("offset ", c.integer(1), " is too large"));
            int64_t size = shape.back() + std::abs(c.integer(1));
            int a = normal_axis(c.name(), c.integer(2), rank, "dim1"),
                b = normal_axis(c.name(), c.integer(3), rank, "dim2");
            if (a == b) throw value_error(c.name(), str("dim1 and dim2 are both axis ", a));
            shape.erase(shape.rank() - 1);
            shape.insert(std::min(a, b), size);
            shape.insert(std::max(a, b), size);
            checked_shape(c.name(), shape.dims());
            Expr zero = stretched_zero(c.builder, c.in(0).dtype(), shape);
            return c.call("diagonal_scatter", {zero, c.in(0), c.args[1], a, b});
        })
        .sample("f32[3], 1")
        .sample("f32[2,3], -1, 0, 2");
    ops.add("diag(input/x: tensor, diagonal/offset: int = 0)")
        .doc("The matrix with a vector as its diagonal, or the diagonal of a matrix.")
        .example("diag(tensor{{1, 2}, {3, 4}})", "tensor{1, 4}")
        .expand([](const ExpandCall& c) -> Expr {
            if (c.rank(0) == 1) return c.call("diag_embed", {c.in(0), c.args[1]});
            if (c.rank(0) == 2) return c.call("diagonal", {c.in(0), c.args[1]});
            throw shape_error(c.name(), str("input must be a vector or a matrix, not of shape ", c.shape(0)));
        })
        .sample("f32[3]")
        .sample("f32[3,5], 1");
    ops.add("diagflat(input/x: tensor, offset: int = 0)")
        .doc("The matrix whose diagonal holds all elements of input.")
        .example("diagflat(tensor{1, 2})", "tensor{{1, 0}, {0, 2}}")
        .expand([](const ExpandCall& c) {
            return c.call("diag_embed", {c.in(0).reshape({-1}), c.args[1]});
        })
        .sample("f32[3]")
        .sample("f32[2,2], -1");
    ops.add("trace(input/x: tensor)")
        .doc("The sum of a matrix's diagonal.")
        .example("trace(tensor{{1, 2}, {3, 4}})", "tensor(5)")
        .expand([](const ExpandCall& c) {
            expect_rank(c, 0, 2);
            return c.call("sum", {c.call("diagonal", {c.in(0)})});
        })
        .sample("f32[3,3]")
        .sample("f32[2,5]");
}

// Positions along an axis of `size` elements, padded by `before` and `after` elements.
Tensor padded_positions(std::string_view mode, int64_t size, int64_t before, int64_t after) {
    Tensor positions = Tensor::empty(DType::i64, {before + size + after});
    int64_t* out = positions.data<int64_t>();
    for (int64_t i = -before; i < size + after; ++i) {
        if (mode == "circular")
            *out++ = ((i % size) + size) % size;
        else if (mode == "reflect")
            *out++ = i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
        else if (mode == "symmetric")
            *out++ = i < 0 ? -i - 1 : i >= size ? 2 * size - 1 - i : i;
        else
            *out++ = std::clamp<int64_t>(i, 0, size - 1);
    }
    return positions;
}

void check_padding(const Call& c, std::string_view mode, int axis, int64_t size, int64_t before, int64_t after) {
    int64_t most = mode == "reflect" ? size - 1 : mode == "replicate" ? std::numeric_limits<int64_t>::max() : size;
    if (before <= most && after <= most && (size > 0 || (before <= 0 && after <= 0))) return;
    throw value_error(c.name(), str("mode ", mode, " cannot pad axis ", axis, " of size ", size, " by ", before,
                                    " and ", after, ": at most ", size > 0 ? most : 0, " on each side"));
}

Expr pad(const ExpandCall& c) {
    auto amounts = c.ints(1);
    Expr x = c.in(0);
    Shape shape = x.shape();
    if (amounts.size() % 2 != 0 || static_cast<int>(amounts.size() / 2) > shape.rank())
        throw value_error(c.name(), str("padding has ", amounts.size(),
                                        " entries: it needs two for each padded axis of "
                                        "shape ",
                                        shape, ", beginning with the last axis"));
    std::string_view mode = c.string(2);
    if (mode == "edge") mode = "replicate";
    Shape begin;
    begin.resize(shape.rank(), 0);
    Shape target = shape;
    for (size_t k = 0; k < amounts.size() / 2; ++k) {
        int axis = shape.rank() - 1 - static_cast<int>(k);
        int64_t before = amounts[2 * k], after = amounts[2 * k + 1], size = shape[axis];
        int64_t total = 0;
        if (__builtin_add_overflow(before, after, &total) || __builtin_add_overflow(total, size, &total))
            throw shape_error(c.name(), str("the padded axis ", axis, " is too large: its size overflows 63 bits"));
        if (total < 0 || before < -size || after < -size)
            throw shape_error(
                c.name(), str("padding axis ", axis, " of size ", size, " by ", before, " and ", after,
                              " gives a negative size: at most the ", size, " elements of the axis can be cut off"));
        target[axis] = total;
        begin[axis] = before;
    }
    checked_shape(c.name(), target.dims());
    // Elements are cut off before others are padded.
    for (int axis = 0; axis < shape.rank(); ++axis) {
        int64_t after = target[axis] - shape[axis] - begin[axis];
        int64_t cut_front = std::min<int64_t>(std::max<int64_t>(-begin[axis], 0), shape[axis]);
        int64_t cut_back = std::max<int64_t>(-after, 0);
        if (cut_front + cut_back == 0) continue;
        x = part(c, x, axis, cut_front, std::max<int64_t>(shape[axis] - cut_front - cut_back, 0));
    }
    Shape inner = x.shape();
    if (inner == target) return x;
    if (mode == "constant") {
        Shape stop, ones;
        for (int axis = 0; axis < shape.rank(); ++axis) {
            begin[axis] = std::max<int64_t>(begin[axis], 0);
            stop.push_back(begin[axis] + inner[axis]);
            ones.push_back(1);
        }
        Value value = c.has(3) ? c.args[3] : Value(0);
        Expr base = c.call("full", {Shape{}, value, x.dtype()}).broadcast_to(target);
        return c.call("slice_assign", {base, x, begin, stop, ones});
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
        int64_t before = std::max<int64_t>(begin[axis], 0), after = target[axis] - inner[axis] - before;
        if (before == 0 && after == 0) continue;
        check_padding(c, mode, axis, inner[axis], before, after);
        Tensor index = padded_positions(mode, inner[axis], before, after);
        x = c.call("gather", {x, c.builder.constant(index), axis});
    }
    return x;
}

void add_padding(Registry& ops) {
    ops.add(
           "pad(input_x/input/x: tensor, padding/pad/paddings: ints, mode: "
           "\"constant\"|\"reflect\"|\"replicate\"|\"edge\"|\"circular\"|\"symmetric\" = \"constant\", value: scalar? "
           "= "
           "nil)")
        .doc(
            "Adds elements before and after along axes: padding lists two numbers for each axis, the last axis first; "
            "a "
            "negative number cuts off.")
        .example("pad(tensor{{1, 2}, {3, 4}}, {1, 0})", "tensor{{0, 1, 2}, {0, 3, 4}}")
        .expand(pad)
        .open(open::pad)
        .sample("f32[2,3], {1,0,2,1}, \"constant\", 1.5")
        .sample("f32[2,5], {-1,1}")
        .sample("f32[2,4,3], {1,1,2,0}, \"reflect\"")
        .sample("f32[2,3], {2,1}, \"circular\"");
}

void add_sequences(Registry& ops) {
    ops.add(
           "reverse_sequence(x/input: tensor, seq_lengths: index, seq_dim/seq_axis: int, batch_dim/batch_axis: int = "
           "0)")
        .doc("Reverses the first seq_lengths[b] elements along seq_dim, for each b of batch_dim.")
        .example("reverse_sequence(tensor{{1, 2, 3}}, tensor{2}, 1)", "tensor{{2, 1, 3}}")
        .infer([](const Call& c) -> Types {
            int sequence = c.axis(2, 0), batch = c.axis(3, 0);
            if (sequence == batch) throw value_error(c.name(), str("seq_dim and batch_dim are both axis ", batch));
            expect_rank(c, 1, 1);
            if (c.shape(1)[0] != c.shape(0)[batch] && c.shape(1).known() && c.shape(0).known())
                throw shape_error(
                    c.name(), str("seq_lengths has ", c.shape(1)[0], " entries for a batch of ", c.shape(0)[batch]));
            return {c.type(0)};
        })
        .half_native()
        .grad([](const GradRule& g) -> Grads {
            return {g.call("reverse_sequence", {g.dout, g.in(1), g.args[2], g.args[3]}), {}, {}, {}};
        })
        .raises()
        .moves()
        .linear({0})
        .cut("@reversal")
        .sample("f32[2,5,3], i64[2]:(1,5), 1")
        .sample("f32[4,2], i64[2]:(0,4), 0, 1");
    ops.add("sequence_mask(lengths: index, maxlen: int? = nil)")
        .doc("For each length n a row of maxlen bools of which the first n are true; maxlen defaults to the largest.")
        .example("sequence_mask(tensor{1, 2}, 2)", "tensor{{true, false}, {true, true}}")
        .infer([](const Call& c) -> Types {
            Shape shape = c.shape(0);
            if (c.has(1)) expect_not_negative(c, 1, c.integer(1));
            shape.push_back(c.has(1) ? c.integer(1) : kUnknownDim);
            if (shape.known()) checked_shape(c.name(), shape.dims(), 1);
            return {{DType::boolean, shape}};
        })
        .no_grad("integers in, bools out")
        .cut("...->...!m")
        .sample("i64[3]:(0,5), 4")
        .sample("i64[2,3]:(1,5)");
}

}  // namespace

void add_array_ops(Registry& ops) {
    add_joins(ops);
    add_repeats(ops);
    add_orders(ops);
    add_triangles(ops);
    add_padding(ops);
    add_sequences(ops);
}

}  // namespace lunaria
