// Operators: pooling. A plane is the part of a tensor that its last one to three axes span; all axes before it are
// batches. The positions of maxima within a plane are an operator of their own (integers, no gradient); gradients
// scatter to and gather from these positions, and are linear, so that second derivatives need nothing new.
#include "core/ops/pool.h"
#include "core/base/interrupt.h"

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

enum MaxParam : size_t { kX, kKernel, kStride, kPadding, kDilation, kMaxCeil };
enum AvgParam : size_t { kAvgCeil = 4, kCountPad, kDivisor };

int axes_in_name(std::string_view name) { return name[name.find_first_of("123")] - '0'; }

void expect_planes(const Call& c, size_t i, int axes) {
    int rank = c.rank(i);
    if (rank != axes + 1 && rank != axes + 2)
        throw shape_error(c.name(), str(param_name(c, i), " must have ", axes + 2, " axes (or ", axes + 1,
                                        " without a batch), not shape ", c.shape(i), " (rank ", rank, ")"));
}

void check_padding(const Call& c, const Window& w) {
    for (int axis = w.first(); axis < Window::kAxes; ++axis) {
        auto i = static_cast<size_t>(axis);
        if (2 * std::max(w.before[i], w.after[i]) > w.reach(axis))
            throw value_error(c.name(), str("padding (", std::max(w.before[i], w.after[i]),
                                            ") must not be larger than half of the kernel (", w.reach(axis), ")"));
    }
}

Shape with_planes(const Shape& shape, const Window& w) {
    Shape out;
    for (int i = 0; i < shape.rank() - w.axes; ++i) out.push_back(shape[i]);
    w.append(out, w.out);
    return out;
}

Expr expand_max_pool(const ExpandCall& c, size_t return_indices, size_t ceil_mode) {
    int axes = axes_in_name(c.name());
    expect_planes(c, kX, axes);
    Window w;
    w.axes = axes;
    w.kernel = window_sizes(c, kKernel, axes, 1);
    w.stride = c.has(kStride) ? window_sizes(c, kStride, axes, 1) : w.kernel;
    w.dilation = window_sizes(c, kDilation, axes, 1);
    window_padding(c, kPadding, w);
    check_padding(c, w);
    w.in = spatial_sizes(c.shape(kX), axes);
    set_window_output(c, w, c.boolean(ceil_mode));
    std::vector<Arg> args{c.in(kX),    w.attribute(w.kernel),   w.attribute(w.stride),
                          w.padding(), w.attribute(w.dilation), c.boolean(ceil_mode)};
    Expr values = c.builder.call_args("max_window", args);
    if (!c.boolean(return_indices)) return values;
    Expr both[] = {values, c.builder.call_args("argmax_window", args)};
    return c.builder.list(both);
}

// A window's gradient goes to its largest element.
Grads max_window_grad(const GradRule& g) {
    return {g.call("max_window_grad", {g.dout, g.in(kX), g.args[kKernel], g.args[kStride], g.args[kPadding],
                                       g.args[kDilation], g.args[kMaxCeil]})};
}

// It is linear in the gradient, and depends on x only through the choice of the largest element.
Grads max_window_grad_grad(const GradRule& g) {
    Expr at = g.call("argmax_window", {g.in(1), g.args[1 + kKernel], g.args[1 + kStride], g.args[1 + kPadding],
                                       g.args[1 + kDilation], g.args[1 + kMaxCeil]});
    return {g.call("plane_gather", {g.dout, at, static_cast<int64_t>(g.ints(1 + kKernel).size())}), {}};
}

// plane_gather and plane_scatter: the indices have the shape of the values, and so as many plane axes as there are
// sizes; the axes before are the same in both operands.
Types infer_plane_gather(const Call& c) {
    Shape x = c.shape(0), at = c.shape(1);
    int64_t axes = c.integer(2);
    bool good = x.rank() == at.rank() && axes >= 1 && axes <= x.rank();
    for (int i = 0; good && i < x.rank() - axes; ++i) good = x[i] == at[i];
    if (!good)
        throw shape_error(
            c.name(), str("x is ", x, " and indices is ", at, ": they may only differ in the last ", axes, " axes"));
    return {{c.dtype, at}};
}

Types infer_plane_scatter(const Call& c) {
    expect_same_shape(c, 0, 1);
    Shape out = c.shape(0);
    auto size = c.ints(2);
    int axes = static_cast<int>(size.size());
    if (axes < 1 || axes > out.rank())
        throw shape_error(c.name(), str("size names ", axes, " axes, but x has shape ", out));
    for (int i = 0; i < axes; ++i) {
        expect_not_negative(c, 2, size[static_cast<size_t>(i)]);
        out[out.rank() - axes + i] = size[static_cast<size_t>(i)];
    }
    return checked_type(c, c.dtype, out);
}

Types infer_avg_pool(const Call& c) {
    expect_planes(c, kX, axes_in_name(c.name()));
    Window w = avg_window_of(c, c.shape(kX), kKernel);
    return checked_type(c, c.dtype, with_planes(c.shape(kX), w));
}

Grads avg_pool_grad(const GradRule& g) {
    Shape size;
    Shape in = g.shape(kX);
    int axes = axes_in_name(g.name());
    for (int i = in.rank() - axes; i < in.rank(); ++i) size.push_back(in[i]);
    return {g.call("avg_pool_grad", {g.dout, size, g.args[kKernel], g.args[kStride], g.args[kPadding], g.args[kAvgCeil],
                                     g.args[kCountPad], g.args[kDivisor]})};
}

Types infer_avg_pool_grad(const Call& c) {
    auto size = c.ints(1);
    Shape out = c.shape(0);
    int axes = static_cast<int>(size.size());
    if (axes < 1 || axes > Window::kAxes || axes > out.rank())
        throw shape_error(c.name(), str("input_size names ", axes, " axes, but dout has shape ", out));
    Window w = avg_window_of(c, Shape(size), 2);
    if (!(with_planes(out, w) == out))
        throw shape_error(c.name(), str("dout has shape ", out, ", but pooling would give ", with_planes(out, w)));
    for (int i = 0; i < axes; ++i) out[out.rank() - axes + i] = size[static_cast<size_t>(i)];
    return checked_type(c, c.dtype, out);
}

Grads avg_pool_grad_grad(const GradRule& g) {
    auto axes = g.ints(1).size();
    return {
        g.call(str("avg_pool", axes, "d"), {g.dout, g.args[2], g.args[3], g.args[4], g.args[5], g.args[6], g.args[7]})};
}

// Sizes of an adaptive pool's result; -1 keeps the size of the input.
Window adaptive_window(const Call& c, int axes) {
    expect_planes(c, kX, axes);
    auto list = c.ints(1);
    if (list.size() != 1 && list.size() != static_cast<size_t>(axes))
        throw value_error(c.name(), str("output_size must be one number or ", axes, ", not ", to_string(c.args[1])));
    Window w;
    w.axes = axes;
    w.in = spatial_sizes(c.shape(kX), axes);
    for (int axis = 0; axis < axes; ++axis) {
        auto i = static_cast<size_t>(w.first() + axis);
        int64_t n = list.size() == 1 ? list[0] : list[static_cast<size_t>(axis)];
        if (n == -1) n = w.in[i];
        expect_positive(c, 1, n);
        if (w.in[i] == 0)
            throw shape_error(c.name(), str("input is ", c.shape(kX), ": an axis that is pooled over is empty"));
        w.out[i] = n;
    }
    return w;
}

// Means over rectangles are means over rows of means over columns: one small matrix per axis whose size does not divide
// evenly.
Expr expand_adaptive_avg(const ExpandCall& c) {
    Window w = adaptive_window(c, axes_in_name(c.name()));
    bool all_one = w.out_size() == 1, even = true;
    Window::Sizes kernel{1, 1, 1};
    Shape last;
    for (size_t i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i) {
        even &= w.in[i] % w.out[i] == 0;
        kernel[i] = w.in[i] / w.out[i];
        last.push_back(c.rank(kX) - (Window::kAxes - static_cast<int64_t>(i)));
    }
    Shape result = c.shape(kX);
    for (int i = 0; i < w.axes; ++i) result[result.rank() - w.axes + i] = w.out[static_cast<size_t>(w.first() + i)];
    checked_type(c, c.dtype, result);
    if (all_one) return c.call("mean", {c.in(kX), last, true});
    if (even) return c.call(str("avg_pool", w.axes, "d"), {c.in(kX), w.attribute(kernel), w.attribute(kernel)});
    Expr x = c.in(kX);
    for (int axis = w.first(); axis < Window::kAxes; ++axis) {
        int64_t in = w.in[static_cast<size_t>(axis)], out = w.out[static_cast<size_t>(axis)];
        if (in == out) continue;
        Tensor weights = Tensor::zeros(DType::f64, {in, out});
        for_elements(out, [&](int64_t o) {
            int64_t begin = adaptive_begin(o, in, out), end = adaptive_end(o, in, out);
            for (int64_t i = begin; i < end; ++i) weights.set_at(i * out + o, 1.0 / static_cast<double>(end - begin));
        });
        // The axis goes last for the product, and back.
        Shape swap;
        for (int i = 0; i < x.rank(); ++i) swap.push_back(i);
        std::swap(swap[x.rank() - Window::kAxes + axis], swap[x.rank() - 1]);
        bool is_last = axis == Window::kAxes - 1;
        Expr moved = is_last ? x : x.transpose(swap);
        moved = matmul(moved, c.builder.constant(weights.cast(x.dtype())));
        x = is_last ? moved : moved.transpose(swap);
    }
    return x;
}

// Where each axis goes when the channels, the last axis, go before `axes` others, and back.
struct ChannelMoves {
    Shape to_front, to_back;
    ChannelMoves(int rank, int axes) {
        const int first = rank - 1 - axes;
        for (int i = 0; i < first; ++i) to_front.push_back(i);
        to_back = to_front;
        to_front.push_back(rank - 1);
        for (int i = first; i < rank - 1; ++i) {
            to_front.push_back(i);
            to_back.push_back(i + 1);
        }
        to_back.push_back(first);
    }
};

Expr expand_max_last(const ExpandCall& c) {
    const ChannelMoves moves(c.rank(kX), max_window_of(c, 0, 1).axes);
    return c
        .call("max_window", {c.in(kX).transpose(moves.to_front), c.args[kKernel], c.args[kStride], c.args[kPadding],
                             c.args[kDilation], c.args[kMaxCeil]})
        .transpose(moves.to_back);
}

Expr expand_adaptive_max(const ExpandCall& c) {
    int axes = axes_in_name(c.name());
    Window w = adaptive_window(c, axes);
    Expr at = c.call("adaptive_argmax", {c.in(kX), w.attribute(w.out)});
    Expr values = c.call("plane_gather", {c.in(kX), at, axes});
    if (!c.boolean(2)) return values;
    Expr both[] = {values, at};
    return c.builder.list(both);
}

// The p-norm of each window.
Expr expand_lp_pool(const ExpandCall& c) {
    int axes = axes_in_name(c.name());
    expect_planes(c, kX, axes);
    double p = c.number(1);
    if (!(p > 0)) throw value_error(c.name(), str("norm_type must be positive, not ", p));
    Expr powers = c.call("pow", {c.call("abs", {c.in(kX)}), p});
    Value stride = c.has(3) ? c.args[3] : c.args[2];
    Expr sum = c.call(str("avg_pool", axes, "d"), {powers, c.args[2], stride, 0, c.args[4], true, 1});
    // The root has no derivative at 0: there the result is 0, and so is the gradient.
    Expr zero = c.call("equal", {sum, 0.0});
    Expr safe = c.call("where", {zero, 1.0, sum});
    return c.call("where", {zero, 0.0, c.call("pow", {safe, 1.0 / p})});
}

Expr expand_max_unpool(const ExpandCall& c) {
    int axes = axes_in_name(c.name());
    expect_planes(c, kX, axes);
    expect_same_shape(c, 0, 1);
    Window w;
    w.axes = axes;
    w.kernel = window_sizes(c, 2, axes, 1);
    w.stride = c.has(3) ? window_sizes(c, 3, axes, 1) : w.kernel;
    window_padding(c, 4, w);
    Window::Sizes from = spatial_sizes(c.shape(kX), axes);
    Shape size;
    for (auto i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i)
        size.push_back(std::max<int64_t>(0, (from[i] - 1) * w.stride[i] - w.before[i] - w.after[i] + w.kernel[i]));
    if (c.has(5)) {
        auto wanted = c.ints(5);
        auto n = static_cast<size_t>(axes);
        if (wanted.size() < n)
            throw value_error(c.name(), str("output_size must have ", axes, " numbers, not ", to_string(c.args[5])));
        // The size may be given as the whole shape: its last sizes count.
        for (size_t i = 0; i < n; ++i) size[static_cast<int>(i)] = wanted[wanted.size() - n + i];
    }
    return c.call("plane_scatter", {c.in(0), c.in(1), size, false});
}

}  // namespace

Window max_window_of(const Call& c, size_t x, int behind) {
    auto kernel = c.ints(x + kKernel);
    Window w;
    w.axes = static_cast<int>(kernel.size());
    if (w.axes < 1 || w.axes > Window::kAxes || w.axes + behind > c.rank(x + kX))
        throw value_error(c.name(), str("kernel_size names ", w.axes, " axes, but x has shape ", c.shape(x + kX)));
    Shape planes;
    for (int i = 0; i < c.rank(x + kX) - behind; ++i) planes.push_back(c.shape(x + kX)[i]);
    w.in = spatial_sizes(planes, w.axes);
    w.kernel = window_sizes(c, x + kKernel, w.axes, 1);
    w.stride = window_sizes(c, x + kStride, w.axes, 1);
    w.dilation = window_sizes(c, x + kDilation, w.axes, 1);
    window_padding(c, x + kPadding, w);
    check_padding(c, w);
    set_window_output(c, w, c.boolean(x + kMaxCeil));
    for (auto i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i) {
        // A dilated kernel that starts in the padding can step over a small input.
        if (w.dilation[i] == 1 || w.before[i] == 0 || w.out[i] < 1) continue;
        // Windows that start within the input have an element there.
        const int64_t behind_left = std::min(w.out[i], w.before[i] / w.stride[i] + 1);
        const int64_t right = std::max(behind_left, (w.in[i] + w.before[i]) / w.stride[i]);
        constexpr int64_t kMost = 1 << 24;
        if (std::max(behind_left, w.out[i] - right) > kMost)
            throw value_error(c.name(), str("padding of ", w.before[i], " elements is too large for a dilated kernel"));
        for (int64_t at = 0; at < w.out[i]; ++at) {
            if (at == behind_left) at = right;
            if (at >= w.out[i]) break;
            KernelRange range(at * w.stride[i] - w.before[i], w.kernel[i], w.dilation[i], w.in[i]);
            if (range.begin >= range.end)
                throw value_error(
                    c.name(), str("a window holds nothing but padding: dilation (", w.dilation[i], ") and padding (",
                                  w.before[i], ") are too large for a size of ", w.in[i]));
        }
    }
    return w;
}

Window avg_window_of(const Call& c, const Shape& input, size_t kernel_size) {
    size_t more = kernel_size - kKernel;
    Window w;
    w.axes = more ? input.rank() : axes_in_name(c.name());
    w.in = spatial_sizes(input, w.axes);
    w.kernel = window_sizes(c, kKernel + more, w.axes, 1);
    w.stride = c.has(kStride + more) ? window_sizes(c, kStride + more, w.axes, 1) : w.kernel;
    window_padding(c, kPadding + more, w);
    check_padding(c, w);
    set_window_output(c, w, c.boolean(kAvgCeil + more));
    return w;
}

void add_pool_ops(Registry& ops) {
    ops.add(
           "max_pool1d(x/input/input_x: same, kernel_size: ints, stride: ints? = nil, padding: ints = 0, "
           "dilation: ints = 1, return_indices: bool = false, ceil_mode: bool = false)")
        .doc(
            "Largest element of each window of the last axis; stride defaults to kernel_size. With return_indices also "
            "the positions within the axis.")
        .example("max_pool1d(tensor{{{1.0, 3.0, 2.0, 0.0}}}, 2)", "tensor{{{3.0, 2.0}}}")
        .expand([](const ExpandCall& c) { return expand_max_pool(c, 5, 6); })
        .sample("f32[2,3,7], 2")
        .sample("f32[1,2,8], 3, stride=2, padding=1");
    ops.add(
           "max_pool2d(x/input/input_x: same, kernel_size: ints, stride: ints? = nil, padding: ints = 0, "
           "dilation: ints = 1, return_indices: bool = false, ceil_mode: bool = false)")
        .doc(
            "Largest element of each window of the last two axes; stride defaults to kernel_size. With return_indices "
            "also the positions within each plane.")
        .example("max_pool2d(tensor{{{{1.0, 2.0}, {4.0, 3.0}}}}, 2)", "tensor{{{{4.0}}}}")
        .expand([](const ExpandCall& c) { return expand_max_pool(c, 5, 6); })
        .sample("f32[2,2,7,9], 3, stride=2, padding=1")
        .sample("f32[1,2,5,5], {2, 3}, stride={1, 2}, ceil_mode=true")
        .sample("f32[2,5,5], 2, stride=1, dilation=2");
    ops.add(
           "max_pool3d(x/input/input_x: same, kernel_size: ints, stride: ints? = nil, padding: ints = 0, "
           "dilation: ints = 1, ceil_mode: bool = false, return_indices: bool = false)")
        .doc("Largest element of each window of the last three axes; stride defaults to kernel_size.")
        .example("max_pool3d(ones({1, 1, 2, 2, 2}), 2)", "tensor{{{{{1.0}}}}}")
        .expand([](const ExpandCall& c) { return expand_max_pool(c, 6, 5); })
        .sample("f32[1,2,4,4,5], 2")
        .sample("f32[1,1,3,4,3], {1, 2, 3}, stride=1, padding={0, 1, 1}");
    ops.add("max_window(x: same, kernel_size: ints, stride: ints, padding: ints, dilation: ints, ceil_mode: bool)")
        .doc(
            "Largest element of each window of the last axes, as many as kernel_size has numbers; what the max_pool "
            "operators are made of.")
        .example("max_window(tensor{1.0, 3.0, 2.0, 0.0}, {2}, {2}, {0, 0}, {1}, false)", "tensor{3.0, 2.0}")
        .infer(
            [](const Call& c) -> Types { return checked_type(c, c.dtype, with_planes(c.shape(0), max_window_of(c))); })
        .grad(max_window_grad)
        .batched(batch::last_axes<1>)
        .cut("@window")
        .sample("f32[2,5,6], {2, 3}, {2, 1}, {1, 1, 0, 1}, {1, 1}, false")
        .sample("f32[3,5,8], {2, 2}, {2, 2}, {0, 0}, {1, 1}, false")
        .sample("f32[7], {2}, {3}, {0, 0}, {2}, true");
    // A primitive for programs that keep the channels of a pixel next to each other, see conv2d_last.
    ops.add("max_window_last(x: same, kernel_size: ints, stride: ints, padding: ints, dilation: ints, ceil_mode: bool)")
        .doc("Largest element of each window of the axes before the last one, which are the channels; see max_window.")
        .example("max_window_last(tensor{{1.0, 2.0}, {3.0, 0.0}}, {2}, {2}, {0, 0}, {1}, false)", "tensor{{3.0, 2.0}}")
        .infer([](const Call& c) -> Types {
            const Window w = max_window_of(c, 0, 1);
            Shape out = c.shape(kX);
            for (int i = 0; i < w.axes; ++i)
                out[out.rank() - 1 - w.axes + i] = w.out[static_cast<size_t>(w.first() + i)];
            return checked_type(c, c.dtype, out);
        })
        .expand(expand_max_last)
        .cut("@window last")
        .sample("f32[2,5,6,3], {2, 3}, {2, 1}, {1, 1, 0, 1}, {1, 1}, false")
        .sample("f32[5,8,20], {2, 2}, {2, 2}, {0, 0}, {1, 1}, false")
        .sample("f32[7,2], {2}, {3}, {0, 0}, {2}, true");
    ops.add("argmax_window(x: same, kernel_size: ints, stride: ints, padding: ints, dilation: ints, ceil_mode: bool)")
        .doc("Position, within its plane, of the largest element of each window.")
        .example("argmax_window(tensor{1.0, 3.0, 2.0, 0.0}, {2}, {2}, {0, 0}, {1}, false)", "tensor{1, 2}")
        .infer([](const Call& c) -> Types {
            return checked_type(c, DType::i64, with_planes(c.shape(0), max_window_of(c)));
        })
        .no_grad("positions are integers")
        .batched(batch::last_axes<1>)
        .cut("@planes list kernel_size")
        .sample("f32[2,5,6], {2, 3}, {2, 1}, {1, 1, 0, 1}, {1, 1}, false")
        .sample("f32[3,5,8], {2, 2}, {2, 2}, {0, 0}, {1, 1}, false")
        .sample("f32[7], {2}, {3}, {0, 0}, {2}, true");
    // One operator, because the positions need not be written down: they take twice the memory of the elements.
    ops.add(
           "max_window_grad(dout: same, x: same, kernel_size: ints, stride: ints, padding: ints, dilation: ints, "
           "ceil_mode: bool)")
        .doc("Gradient of max_window with respect to x.")
        .example("max_window_grad(tensor{5.0, 6.0}, tensor{1.0, 3.0, 2.0, 0.0}, {2}, {2}, {0, 0}, {1}, false)",
                 "tensor{0.0, 5.0, 6.0, 0.0}")
        .infer([](const Call& c) -> Types {
            const Shape windows = with_planes(c.shape(1), max_window_of(c, 1));
            if (!(c.shape(0) == windows))
                throw shape_error(c.name(), str("dout is ", c.shape(0), " and there are windows of ", windows));
            return checked_type(c, c.dtype, c.shape(1));
        })
        .grad(max_window_grad_grad)
        .batched(batch::last_axes<1>)
        .linear({0})
        .cut("@planes list kernel_size")
        .sample("f32[2,3,5], f32[2,5,6], {2, 3}, {2, 1}, {1, 1, 0, 1}, {1, 1}, false")
        .sample("f32[3,2,4], f32[3,5,8], {2, 2}, {2, 2}, {0, 0}, {1, 1}, false")
        .sample("f32[2,4,20], f32[2,5,21], {2, 2}, {1, 1}, {0, 0}, {1, 1}, false")
        .sample("f32[3], f32[7], {2}, {3}, {0, 0}, {2}, true");
    ops.add("plane_gather(x: same, indices: index, axes: int)")
        .doc("Elements of each plane (the last `axes` axes of x) at the positions that indices gives.")
        .example("plane_gather(tensor{{1.0, 2.0}, {3.0, 4.0}}, tensor{{3, 0}}, 2)", "tensor{{4.0, 1.0}}")
        .infer(infer_plane_gather)
        .grad([](const GradRule& g) -> Grads {
            Shape x = g.shape(0), size;
            for (int i = x.rank() - static_cast<int>(g.integer(2)); i < x.rank(); ++i) size.push_back(x[i]);
            return {g.call("plane_scatter", {g.dout, g.in(1), size})};
        })
        .batched(batch::last_axes<1>)
        .raises()
        .moves()
        .linear({0})
        .cut("@plane_gather")
        .sample("f32[2,3,4], i64[2,2,2]:(0,12), 2")
        .sample("f32[3,5], i64[3,1]:(0,5), 1");
    ops.add("plane_scatter(x: same, indices: index, size: ints, accumulate: bool = true)")
        .doc(
            "Planes of the given size, 0 but for the elements of x at the positions that indices gives; elements for "
            "one position are added up, or the last one stays when accumulate is false.")
        .example("plane_scatter(tensor{5.0, 6.0, 7.0}, tensor{2, 0, 2}, {4})", "tensor{6.0, 0.0, 12.0, 0.0}")
        .infer(infer_plane_scatter)
        .grad([](const GradRule& g) -> Grads {
            return {g.call("plane_gather", {g.dout, g.in(1), static_cast<int64_t>(g.ints(2).size())})};
        })
        .batched(batch::last_axes<1>)
        .raises()
        .cut("@planes list size")
        .sample("f32[2,2,2], i64[2,2,2]:(0,12), {3, 4}")
        .sample("f32[3,5], i64[3,5]:(0,3), 3");
    ops.add(
           "max_unpool1d(x/input: same, indices: index, kernel_size: ints, stride: ints? = nil, padding: ints = 0, "
           "output_size: ints? = nil)")
        .doc("Puts maxima back to the positions where max_pool1d found them; 0 elsewhere.")
        .example("max_unpool1d(tensor{{{3.0, 2.0}}}, tensor{{{1, 2}}}, 2)", "tensor{{{0.0, 3.0, 2.0, 0.0}}}")
        .expand(expand_max_unpool)
        .sample("f32[1,1,1], i64[1,1,1]:(0,3), 3")
        .sample("f32[2,3,1], i64[2,3,1]:(0,4), 2, output_size=4");
    ops.add(
           "max_unpool2d(x/input: same, indices: index, kernel_size: ints, stride: ints? = nil, padding: ints = 0, "
           "output_size: ints? = nil)")
        .doc("Puts maxima back to the positions where max_pool2d found them; 0 elsewhere.")
        .example("max_unpool2d(tensor{{{{4.0}}}}, tensor{{{{2}}}}, 2)", "tensor{{{{0.0, 0.0}, {4.0, 0.0}}}}")
        .expand(expand_max_unpool)
        .sample("f32[1,2,1,1], i64[1,2,1,1]:(0,4), 2")
        .sample("f32[2,1,1,1], i64[2,1,1,1]:(0,9), 2, output_size={3, 3}");
    ops.add(
           "max_unpool3d(x/input: same, indices: index, kernel_size: ints, stride: ints? = nil, padding: ints = 0, "
           "output_size: ints? = nil)")
        .doc("Puts maxima back to the positions where max_pool3d found them; 0 elsewhere.")
        .example("max_unpool3d(tensor{{{{{4.0}}}}}, tensor{{{{{1}}}}}, {1, 1, 2})", "tensor{{{{{0.0, 4.0}}}}}")
        .expand(expand_max_unpool)
        .sample("f32[1,2,1,1,1], i64[1,2,1,1,1]:(0,8), 2")
        .sample("f32[1,1,1,1,1], i64[1,1,1,1,1]:(0,27), 3");
    auto describe_avg = [](Op& op) { op.infer(infer_avg_pool).grad(avg_pool_grad).batched(batch::merged); };
    describe_avg(ops.add("avg_pool1d(input_x/x/input: float, kernel_size: ints = 1, stride: ints? = 1, "
                         "padding: ints = 0, ceil_mode: bool = false, count_include_pad: bool = true, "
                         "divisor_override: int? = 0)")
                     .doc("Mean of each window of the last axis. stride = nil means kernel_size.")
                     .example("avg_pool1d(tensor{{{1.0, 3.0, 2.0, 0.0}}}, 2, 2)", "tensor{{{2.0, 1.0}}}")
                     .linear({0})
                     .cut("@planes 1")
                     .sample("f32[2,3,9], 3, stride=2")
                     .sample("f32[3,7], 2, stride=2, padding=1, count_include_pad=false, ceil_mode=true"));
    describe_avg(ops.add("avg_pool2d(input_x/x/input: float, kernel_size: ints = 1, stride: ints? = 1, "
                         "padding: ints = 0, ceil_mode: bool = false, count_include_pad: bool = true, "
                         "divisor_override: int? = 0)")
                     .doc("Mean of each window of the last two axes; divisor_override divides the sums by that number "
                          "instead. stride = nil means kernel_size.")
                     .example("avg_pool2d(tensor{{{{1.0, 2.0}, {4.0, 3.0}}}}, 2)", "tensor{{{{2.5}}}}")
                     .linear({0})
                     .cut("@planes 2")
                     .sample("f32[2,2,7,5], 3, stride=2, padding=1")
                     .sample("f32[1,2,5,6], {2, 3}, stride={1, 2}, padding=1, count_include_pad=false, ceil_mode=true")
                     .sample("f32[2,4,4], 2, stride=1, divisor_override=3"));
    describe_avg(ops.add("avg_pool3d(input_x/x/input: float, kernel_size: ints = 1, stride: ints? = 1, "
                         "padding: ints = 0, ceil_mode: bool = false, count_include_pad: bool = true, "
                         "divisor_override: int? = 0)")
                     .doc("Mean of each window of the last three axes. stride = nil means kernel_size.")
                     .example("avg_pool3d(ones({1, 1, 2, 2, 2}), 2)", "tensor{{{{{1.0}}}}}")
                     .linear({0})
                     .cut("@planes 3")
                     .sample("f32[1,2,4,4,5], 2, stride=2")
                     .sample("f32[2,3,4,3], {1, 2, 3}, stride=1, padding={0, 1, 1}"));
    ops.add(
           "avg_pool_grad(dout: float, input_size: ints, kernel_size: ints, stride: ints?, padding: ints, "
           "ceil_mode: bool, count_include_pad: bool, divisor_override: int?)")
        .doc("Gradient of average pooling with respect to its input, whose planes have the sizes input_size.")
        .example("avg_pool_grad(tensor{2.0, 4.0}, {4}, 2, 2, 0, false, true, 0)", "tensor{1.0, 1.0, 2.0, 2.0}")
        .infer(infer_avg_pool_grad)
        .grad(avg_pool_grad_grad)
        .batched(batch::last_axes<1>)
        .linear({0})
        .cut("@planes list input_size")
        .sample("f32[2,4,3], {7, 5}, 3, 2, 1, false, true, 0")
        .sample("f32[2,4], {7}, 2, 2, 0, true, false, 0");
    ops.add("adaptive_avg_pool1d(input/x: float, output_size: ints)")
        .doc("Mean over windows chosen so that the last axis gets output_size elements.")
        .example("adaptive_avg_pool1d(tensor{{1.0, 3.0, 5.0}}, 2)", "tensor{{2.0, 4.0}}")
        .expand(expand_adaptive_avg)
        .sample("f32[2,3,8], 3")
        .sample("f32[2,3,7], 1");
    ops.add("adaptive_avg_pool2d(input/x: float, output_size: ints)")
        .doc("Mean over windows chosen so that the last two axes get the sizes output_size; -1 keeps a size.")
        .example("adaptive_avg_pool2d(tensor{{{{1.0, 2.0}, {4.0, 3.0}}}}, 1)", "tensor{{{{2.5}}}}")
        .expand(expand_adaptive_avg)
        .sample("f32[2,3,7,9], {2, 3}")
        .sample("f32[1,2,4,6], {2, 3}")
        .sample("f32[2,5,5], {-1, 2}");
    ops.add("adaptive_avg_pool3d(input/x: float, output_size: ints)")
        .doc("Mean over windows chosen so that the last three axes get the sizes output_size; -1 keeps a size.")
        .example("adaptive_avg_pool3d(ones({1, 1, 2, 2, 3}), 1)", "tensor{{{{{1.0}}}}}")
        .expand(expand_adaptive_avg)
        .sample("f32[1,2,3,4,5], {2, 2, 3}")
        .sample("f32[2,2,4,3], {1, 2, -1}");
    ops.add("adaptive_argmax(x: same, output_size: ints)")
        .doc("Position, within its plane, of the largest element of each window of adaptive max pooling.")
        .example("adaptive_argmax(tensor{1.0, 3.0, 5.0}, 2)", "tensor{1, 2}")
        .infer([](const Call& c) -> Types {
            auto size = c.ints(1);
            int axes = static_cast<int>(size.size());
            if (axes < 1 || axes > Window::kAxes || axes > c.rank(0))
                throw value_error(c.name(), str("output_size names ", axes, " axes, but x has shape ", c.shape(0)));
            Shape out = c.shape(0);
            for (int i = 0; i < axes; ++i) {
                expect_positive(c, 1, size[static_cast<size_t>(i)]);
                if (out[out.rank() - axes + i] == 0)
                    throw shape_error(c.name(), str("x is ", out, ": an axis that is pooled over is empty"));
                out[out.rank() - axes + i] = size[static_cast<size_t>(i)];
            }
            return checked_type(c, DType::i64, out);
        })
        .no_grad("positions are integers")
        .batched(batch::last_axes<1>)
        .cut("@planes list output_size")
        .sample("f32[2,5,7], {2, 3}")
        .sample("f32[5], 2");
    ops.add("adaptive_max_pool1d(input/x: same, output_size: ints, return_indices: bool = false)")
        .doc("Maximum over windows chosen so that the last axis gets output_size elements.")
        .example("adaptive_max_pool1d(tensor{{1.0, 3.0, 5.0}}, 2)", "tensor{{3.0, 5.0}}")
        .expand(expand_adaptive_max)
        .sample("f32[2,3,8], 3")
        .sample("f32[2,7], 1");
    ops.add("adaptive_max_pool2d(input/x: same, output_size: ints, return_indices: bool = false)")
        .doc("Maximum over windows chosen so that the last two axes get the sizes output_size; -1 keeps a size.")
        .example("adaptive_max_pool2d(tensor{{{{1.0, 2.0}, {4.0, 3.0}}}}, 1)", "tensor{{{{4.0}}}}")
        .expand(expand_adaptive_max)
        .sample("f32[2,2,7,9], {2, 3}")
        .sample("f32[2,5,5], {-1, 2}");
    ops.add("adaptive_max_pool3d(input/x: same, output_size: ints, return_indices: bool = false)")
        .doc("Maximum over windows chosen so that the last three axes get the sizes output_size; -1 keeps a size.")
        .example("adaptive_max_pool3d(ones({1, 1, 2, 2, 3}), 1)", "tensor{{{{{1.0}}}}}")
        .expand(expand_adaptive_max)
        .sample("f32[1,2,3,4,5], {2, 2, 3}")
        .sample("f32[2,2,4,3], {1, 2, -1}");
    ops.add(
           "lp_pool1d(x/input: float, norm_type: number, kernel_size: ints, stride: ints? = nil, "
           "ceil_mode: bool = false)")
        .doc("Norm of order norm_type of each window of the last axis.")
        .example("lp_pool1d(tensor{{{3.0, 4.0}}}, 2, 2)", "tensor{{{5.0}}}")
        .expand(expand_lp_pool)
        .wide()
        .sample("f32[1,2,6]:(0.5,2), 2, 3, stride=1")
        .sample("f32[2,7]:(0.5,2), 3, 2");
    ops.add(
           "lp_pool2d(x/input: float, norm_type: number, kernel_size: ints, stride: ints? = nil, "
           "ceil_mode: bool = false)")
        .doc("Norm of order norm_type of each window of the last two axes.")
        .example("lp_pool2d(tensor{{{{3.0, 4.0}}}}, 2, {1, 2})", "tensor{{{{5.0}}}}")
        .expand(expand_lp_pool)
        .wide()
        .sample("f32[1,2,5,6]:(0.5,2), 2, 3, stride=1")
        .sample("f32[2,3,3]:(0.5,2), 3, 2");
}

}  // namespace lunaria
