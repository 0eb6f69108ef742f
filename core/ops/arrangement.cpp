// Operators: rearrangements of images and sequences, and dropout of whole channels, made of other operators.
#include <numeric>

#include "core/operator/infer.h"
#include "core/ops/elementwise.h"
#include "core/ops/families.h"
#include "core/ops/layout.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

// {{before, after}, …}: whole numbers from 0 on.
std::vector<std::pair<int64_t, int64_t>> pairs_in(const Call& c, size_t i) {
    const Value& given = c.args[i];
    std::vector<std::pair<int64_t, int64_t>> pairs;
    auto wrong = [&] {
        return argument_error(c.name(),
                              str(param_name(c, i), " must be a list of pairs of sizes, such as {{0, 1}, {2, 0}}, not ",
                                  to_string(given)));
    };
    if (!given.is_list()) throw wrong();
    for (const Value& pair : given.items()) {
        if (!pair.is_list() || pair.items().size() != 2) throw wrong();
        for (const Value& n : pair.items())
            if (n.kind() != Value::Kind::integer || n.integer() < 0) throw wrong();
        pairs.emplace_back(pair.items()[0].integer(), pair.items()[1].integer());
    }
    return pairs;
}

// Parameters of space_to_batch_nd and batch_to_space_nd: the last axes of the input, one for each block size.
struct Blocks {
    std::vector<int64_t> sizes;
    std::vector<std::pair<int64_t, int64_t>> borders;
    int first = 0;  // first of the axes that are cut into blocks
    int64_t count = 1;

    explicit Blocks(const Call& c) : sizes(c.ints(1)), borders(pairs_in(c, 2)) {
        if (sizes.empty() || borders.size() != sizes.size())
            throw value_error(c.name(), str(param_name(c, 1), " has ", sizes.size(), " sizes and ", param_name(c, 2),
                                            " has ", borders.size(), " pairs: there must be one of each for an axis"));
        if (c.rank(0) <= static_cast<int>(sizes.size()))
            throw shape_error(c.name(), str("input has shape ", c.shape(0), ": it needs a batch axis in front of ",
                                            sizes.size(), " axes of blocks"));
        first = c.rank(0) - static_cast<int>(sizes.size());
        for (int64_t size : sizes) {
            expect_positive(c, 1, size);
            if (size > (int64_t{1} << 31)) throw value_error(c.name(), str("a block of ", size, " is too large"));
            count *= size;
            checked_shape(c.name(), Shape{count}.dims());
        }
    }
    int axes() const { return static_cast<int>(sizes.size()); }
};

Expr expand_space_to_batch(const ExpandCall& c) {
    const Blocks blocks(c);
    Shape pad;
    for (size_t i = blocks.sizes.size(); i-- > 0;) {
        pad.push_back(blocks.borders[i].first);
        pad.push_back(blocks.borders[i].second);
    }
    const Expr x = c.call("pad", {c.in(0), pad});
    const Shape s = x.shape();
    Shape split, order, out = s;
    for (int axis = 0; axis < blocks.first; ++axis) split.push_back(s[axis]);
    for (int i = 0; i < blocks.axes(); ++i) {
        const int64_t size = blocks.sizes[static_cast<size_t>(i)], whole = s[blocks.first + i];
        if (whole % size != 0)
            throw shape_error(c.name(), str("axis ", blocks.first + i, " has the size ", whole,
                                            " with its padding, which is no multiple of the block size ", size));
        split.push_back(whole / size);
        split.push_back(size);
        order.push_back(blocks.first + 2 * i + 1);
        out[blocks.first + i] = whole / size;
    }
    for (int axis = 0; axis < blocks.first; ++axis) order.push_back(axis);
    for (int i = 0; i < blocks.axes(); ++i) order.push_back(blocks.first + 2 * i);
    out[0] = s[0] * blocks.count;
    return x.reshape(split).transpose(order).reshape(out);
}

Expr expand_batch_to_space(const ExpandCall& c) {
    const Blocks blocks(c);
    const Shape s = c.shape(0);
    if (s[0] % blocks.count != 0)
        throw shape_error(c.name(), str("axis 0 has the size ", s[0], ", which is no multiple of the ", blocks.count,
                                        " places in a block"));
    const int m = blocks.axes();
    Shape split, order, out = s;
    for (int64_t size : blocks.sizes) split.push_back(size);
    split.push_back(s[0] / blocks.count);
    for (int axis = 1; axis < s.rank(); ++axis) split.push_back(s[axis]);
    for (int axis = 0; axis < blocks.first; ++axis) order.push_back(m + axis);
    for (int i = 0; i < m; ++i) {
        order.push_back(m + blocks.first + i);
        order.push_back(i);
        out[blocks.first + i] = s[blocks.first + i] * blocks.sizes[static_cast<size_t>(i)];
    }
    out[0] = s[0] / blocks.count;
    Expr x = c.in(0).reshape(split).transpose(order).reshape(out);
    for (int i = 0; i < m; ++i) {
        const auto [before, after] = blocks.borders[static_cast<size_t>(i)];
        const int axis = blocks.first + i;
        if (before + after > out[axis])
            throw shape_error(c.name(),
                              str("crops takes ", before, " and ", after, " off axis ", axis, " of size ", out[axis]));
        x = c.call("narrow", {x, axis, before, out[axis] - before - after});
    }
    return x;
}

Expr expand_mirror_pad(const ExpandCall& c) {
    const auto pairs = pairs_in(c, 1);
    const Shape s = c.shape(0);
    if (static_cast<int>(pairs.size()) != s.rank())
        throw value_error(c.name(), str("paddings has ", pairs.size(), " pairs for ", s.rank(), " axes"));
    const bool reflect = c.string(2) == "REFLECT";
    Expr x = c.in(0);
    Shape out = s;
    for (int axis = 0; axis < s.rank(); ++axis) {
        const auto [before, after] = pairs[static_cast<size_t>(axis)];
        const int64_t n = s[axis], most = reflect ? n - 1 : n;
        if (before > most || after > most)
            throw value_error(c.name(),
                              str("axis ", axis, " has the size ", n, ": at most ", std::max<int64_t>(most, 0),
                                  " elements are mirrored at a side, not ", std::max(before, after)));
        out[axis] += before + after;
    }
    checked_shape(c.name(), out.dims());
    for (int axis = 0; axis < s.rank(); ++axis) {
        const auto [before, after] = pairs[static_cast<size_t>(axis)];
        if (before + after == 0) continue;
        const int64_t n = s[axis];
        const Tensor from = Tensor::empty(DType::i64, {before + n + after});
        int64_t* at = from.data<int64_t>();
        for (int64_t i = -before; i < n + after; ++i)
            *at++ = i < 0 ? -i - (reflect ? 0 : 1) : i < n ? i : 2 * n - i - (reflect ? 2 : 1);
        x = c.call("index_select", {x, axis, c.builder.constant(from)});
    }
    return x;
}

Expr expand_padding(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    if (c.shape(0).back() != 1)
        throw shape_error(c.name(), str("the last axis of x must have size 1, not ", c.shape(0)));
    expect_positive(c, 1, c.integer(1));
    return c.call("pad", {c.in(0), Shape{0, c.integer(1) - 1}});
}

// Coordinates from -1 to 1 along an axis of n elements: of the outermost elements, or of the outer borders.
Tensor coordinates(int64_t n, bool corners) {
    Tensor t = Tensor::empty(DType::f64, {n});
    double* at = t.data<double>();
    const auto count = static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) {
        const auto place = static_cast<double>(i);
        at[i] = corners ? (n == 1 ? 0.0 : 2 * place / (count - 1) - 1) : (2 * place + 1) / count - 1;
    }
    return t;
}

Expr expand_affine_grid(const ExpandCall& c) {
    const auto size = c.ints(1);
    const int axes = static_cast<int>(size.size()) - 2;
    if (axes != 2 && axes != 3)
        throw value_error(
            c.name(), str("size must name batch, channels and 2 or 3 sizes of an image, not ", size.size(), " sizes"));
    for (int64_t n : size) expect_positive(c, 1, n);
    if (c.shape(0) != Shape{size[0], axes, axes + 1})
        throw shape_error(c.name(),
                          str("theta must have shape ", Shape{size[0], axes, axes + 1}, ", not ", c.shape(0)));
    Shape grid;
    for (int i = 0; i < axes; ++i) grid.push_back(size[static_cast<size_t>(i) + 2]);
    checked_shape(c.name(), Shape{size[0], grid.size(), axes}.dims());
    // x runs along the last axis of the image.
    std::vector<Expr> columns;
    for (int i = axes; i-- > 0;) {
        Shape line;
        line.resize(axes, 1);
        line[i] = grid[i];
        columns.push_back(
            c.builder.constant(coordinates(grid[i], c.boolean(2))).cast(c.dtype).reshape(line).broadcast_to(grid));
    }
    columns.push_back(c.call("ones", {grid, c.dtype}));
    const Expr base = c.call("stack", {c.builder.list(columns), -1}).reshape({grid.size(), axes + 1});
    Shape out = grid;
    out.insert(0, size[0]);
    out.push_back(axes);
    return matmul(base, matrix_transpose(c.in(0))).reshape(out);
}

Expr expand_col2im(const ExpandCall& c) {
    expect_rank(c, 0, 4);
    const Shape s = c.shape(0);
    return c.call("fold",
                  {c.in(0).reshape({s[0], s[1] * s[2], s[3]}), c.args[1], c.args[2], c.args[3], c.args[4], c.args[5]});
}

Expr expand_rrelu(const ExpandCall& c) {
    const double lower = c.number(1), upper = c.number(2);
    if (!(lower <= upper))
        throw value_error(c.name(), str("lower is ", lower, " and upper is ", upper, ": lower must not be larger"));
    const Expr slope = c.call("rand", {c.shape(0), c.dtype}) * (upper - lower) + lower;
    return where(c.call("less", {c.in(0), 0.0}), c.in(0) * slope, c.in(0));
}

// Channels are the axis before the last `axes` ones.
Expr expand_channel_dropout(const ExpandCall& c, int axes, bool may_lack_batch) {
    expect_float(c, 0);
    const int rank = c.rank(0);
    if (rank != axes + 2 && !(may_lack_batch && rank == axes + 1))
        throw shape_error(c.name(),
                          str("input must have ", axes + 2, " axes",
                              may_lack_batch ? str(", or ", axes + 1) : std::string(), ", not shape ", c.shape(0)));
    Shape channels = c.shape(0);
    for (int i = rank - axes; i < rank; ++i) channels[i] = 1;
    return c.in(0) * c.call("dropout", {c.call("ones", {channels, c.type(0).dtype}), c.args[1], c.args[2], c.args[3]});
}

void add_channel_dropout(Registry& ops) {
    ops.add("dropout1d(input/x: tensor, p: number = 0.5, training: bool = true, seed: int? = nil)")
        .doc("Dropout of whole channels of (batch, channels, length) or (channels, length).")
        .example("dropout1d(tensor{{1.0, 2.0}}, 0.5, false)", "tensor{{1.0, 2.0}}")
        .expand([](const ExpandCall& c) { return expand_channel_dropout(c, 1, true); })
        .effect(Effect::random)
        .sample("f32[2,3,4], 0.4, true, 1")
        .sample("f32[3,4], 0.1");
    ops.add("dropout2d(input/x: tensor, p: number = 0.5, training: bool = true, seed: int? = nil)")
        .doc("Dropout of whole channels of (batch, channels, height, width).")
        .example("dropout2d(tensor{{{{1.0}}}}, 0.5, false)", "tensor{{{{1.0}}}}")
        .expand([](const ExpandCall& c) { return expand_channel_dropout(c, 2, false); })
        .effect(Effect::random)
        .sample("f32[2,3,4,2], 0.4, true, 1")
        .sample("f32[1,3,4,1], 0.1");
    ops.add("dropout3d(input/x: tensor, p: number = 0.5, training: bool = true, seed: int? = nil)")
        .doc("Dropout of whole channels of (batch, channels, depth, height, width).")
        .example("dropout3d(tensor{{{{{1.0}}}}}, 0.5, false)", "tensor{{{{{1.0}}}}}")
        .expand([](const ExpandCall& c) { return expand_channel_dropout(c, 3, false); })
        .effect(Effect::random)
        .sample("f32[2,3,4,2,1], 0.4, true, 1")
        .sample("f32[1,3,4,1,2], 0.1");
}

Expr expand_population_count(const ExpandCall& c) {
    const DType t = c.type(0).dtype;
    if (!is_integer(t)) throw dtype_error(c.name(), str("input must hold integers, not ", name_of(t)));
    Expr sum;
    for (int64_t bit = 0; bit < static_cast<int64_t>(8 * size_of(t)); ++bit) {
        const Expr set = c.call("bitwise_and", {c.call("bitwise_right_shift", {c.in(0), bit}), 1});
        sum = sum ? sum + set : set;
    }
    return sum.cast(DType::u8);
}

}  // namespace

void add_arrangement_ops(Registry& ops) {
    add_channel_dropout(ops);
    ops.add("space_to_batch_nd(input_x/input/x: tensor, block_size: ints, paddings: any)")
        .doc(
            "Cuts the last axes, padded with zeros by {{before, after}, …}, into blocks: the places within a block "
            "become batches of their own, in front of axis 0.")
        .example("space_to_batch_nd(tensor{{1, 2, 3, 4}}, {2}, {{0, 0}})", "tensor{{1, 3}, {2, 4}}")
        .expand(expand_space_to_batch)
        .sample("f32[1,2,4,6], {2, 3}, {{0, 0}, {0, 0}}")
        .sample("f32[2,3,3], {2}, {{0, 1}}");
    ops.add("batch_to_space_nd(input_x/input/x: tensor, block_shape/block_size: ints, crops: any)")
        .doc("Inverse of space_to_batch_nd; crops {{before, after}, …} are taken off the axes of the result.")
        .example("batch_to_space_nd(tensor{{1, 3}, {2, 4}}, {2}, {{0, 0}})", "tensor{{1, 2, 3, 4}}")
        .expand(expand_batch_to_space)
        .sample("f32[6,2,2,2], {2, 3}, {{0, 0}, {0, 0}}")
        .sample("f32[4,3,2], {2}, {{0, 1}}");
    ops.add("mirror_pad(input_x/input/x: tensor, paddings: any, mode: \"REFLECT\"|\"SYMMETRIC\" = \"REFLECT\")")
        .doc(
            "Mirrors {{before, after}, …} elements of every axis at its ends, without (REFLECT) or with (SYMMETRIC) "
            "the "
            "outermost one.")
        .example("mirror_pad(tensor{1, 2, 3}, {{1, 2}})", "tensor{2, 1, 2, 3, 2, 1}")
        .expand(expand_mirror_pad)
        .sample("f32[2,3], {{1, 1}, {2, 0}}")
        .sample("f32[2,3], {{0, 2}, {3, 1}}, \"SYMMETRIC\"");
    ops.add("padding(x/input: tensor, pad_dim_size: int = 8)")
        .doc("The last axis, of size 1, filled with zeros up to pad_dim_size.")
        .example("padding(tensor{{1.0}, {2.0}}, 3)", "tensor{{1.0, 0.0, 0.0}, {2.0, 0.0, 0.0}}")
        .expand(expand_padding)
        .sample("f32[3,1], 4")
        .sample("f32[2,2,1]");
    ops.add("affine_grid(theta: float, size: ints, align_corners: bool = false)")
        .doc(
            "Where the elements of images of `size` {batch, channels, [depth,] height, width} lie after the affine map "
            "theta (batch, 2, 3) or (batch, 3, 4): the grid that grid_sample takes.")
        .example("affine_grid(tensor{{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}}, {1, 1, 1, 2})",
                 "tensor{{{{-0.5, 0.0}, {0.5, 0.0}}}}")
        .expand(expand_affine_grid)
        .source("Jaderberg et al., Spatial Transformer Networks (2015)")
        .wide()
        .sample("f32[2,2,3], {2, 1, 3, 4}")
        .sample("f32[1,3,4], {1, 2, 2, 3, 2}, true");
    ops.add(
           "col2im(input_x/input/x: float, output_size: ints, kernel_size: ints, dilation: ints = 1, padding_value: "
           "ints = 0, stride: ints = 1)")
        .doc("Folds patches (batch, channels, elements of a patch, patches).")
        .example("col2im(tensor{{{{1.0, 2.0}, {2.0, 3.0}}}}, {1, 3}, {1, 2})", "tensor{{{{1.0, 4.0, 3.0}}}}")
        .expand(expand_col2im)
        .sample("f32[1,2,4,9], {4, 4}, {2, 2}")
        .sample("f32[2,1,9,4], {3, 3}, 3, 1, 1, 2");
    ops.add("rrelu(input/x: float, lower: number = 0.125, upper: number = 0.3333333333333333)")
        .doc("ReLU whose slope for negative numbers is drawn between lower and upper for each.")
        .example("rrelu(tensor{-1.0, 2.0}, 0.5, 0.5)", "tensor{-0.5, 2.0}")
        .expand(expand_rrelu)
        .effect(Effect::random)
        .source("Xu et al., Empirical Evaluation of Rectified Activations (2015)")
        .sample("f32[2,3]")
        .sample("f32[5], 0.1, 0.1");
    ops.add("population_count(input_x/input/x: tensor)")
        .doc("How many bits of each integer are set, as uint8.")
        .example("population_count(tensor{0, 1, 3, -1})", "cast(tensor{0, 1, 2, 64}, \"uint8\")")
        .expand(expand_population_count)
        .sample("i64[5]:(-9,9)")
        .sample("u8[2,3]:(0,255)");
}

}  // namespace lunaria
