// Operators: pooling and convolution with windows at places that the data decide: random places, or places moved by
// offsets.
#include <cmath>

#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"
#include "core/ops/window.h"

namespace lunaria {

namespace {

// 0, 1, … as a constant of a dtype and a shape that has one axis with more than one element.
Expr ramp(const ExpandCall& c, DType dtype, const Shape& shape) {
    Tensor t = Tensor::empty(DType::i64, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.data<int64_t>()[i] = i;
    return c.builder.constant(t.cast(dtype));
}

int64_t product_of(const Shape& s, int first, int past) {
    int64_t n = 1;
    for (int i = first; i < past; ++i) n *= s[i];
    return n;
}

// The sizes of fractional_max_pool's result: output_size, or the ratios of output_ratio.
Window::Sizes fractional_sizes(const Call& c, const Window& w) {
    if (c.has(2) == c.has(3)) throw argument_error(c.name(), "give either output_size or output_ratio");
    if (c.has(2)) return window_sizes(c, 2, w.axes, 1);
    std::vector<double> ratios = numbers_in(c.args[3]);
    if (c.args[3].is_number()) ratios.resize(static_cast<size_t>(w.axes), ratios[0]);
    if (ratios.size() != static_cast<size_t>(w.axes))
        throw argument_error(c.name(),
                             str("output_ratio must be one number or ", w.axes, ", not ", to_string(c.args[3])));
    Window::Sizes out{1, 1, 1};
    for (size_t i = 0; i < ratios.size(); ++i) {
        if (!(ratios[i] > 0 && ratios[i] < 1))
            throw value_error(c.name(), str("output_ratio must lie between 0 and 1, not be ", ratios[i]));
        const auto axis = static_cast<size_t>(w.first()) + i;
        out[axis] = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(w.in[axis]) * ratios[i]));
    }
    return out;
}

// The first positions of the windows along one axis, (planes, out): steps of (in - kernel) / (out - 1) on average,
// which a number u of each plane rounds up or down (B. Graham, "Fractional Max-Pooling", 2014). The last window ends
// the axis.
Expr window_starts(const ExpandCall& c, const Expr& u, int64_t in, int64_t kernel, int64_t out) {
    const Shape column{u.shape()[0], 1};
    const Expr start = u.reshape(column), last = ramp(c, DType::i64, {1, out});
    const Expr end = c.builder.constant(Tensor::full(DType::i64, {1, 1}, static_cast<double>(in - kernel)));
    if (out == 1) return (last + end).broadcast_to({column[0], out});
    const double step = static_cast<double>(in - kernel) / static_cast<double>(out - 1);
    const Expr places = call("floor", {(ramp(c, u.dtype(), {1, out}) + start) * step}) - call("floor", {start * step});
    return call("where", {call("equal", {last, out - 1}), end, places.cast(DType::i64)});
}

// fractional_max_poolNd(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
Expr expand_fractional_max_pool(const ExpandCall& c) {
    Window w;
    w.axes = c.name().ends_with("3d") ? 3 : 2;
    const Shape s = c.shape(0);
    const int leading = s.rank() - w.axes;
    if (leading != 1 && leading != 2)
        throw shape_error(c.name(), str("input must have ", w.axes + 1, " or ", w.axes + 2, " axes, not shape ", s));
    w.in = spatial_sizes(s, w.axes);
    w.kernel = window_sizes(c, 1, w.axes, 1);
    w.out = fractional_sizes(c, w);
    for (auto i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i)
        if (w.out[i] > w.in[i] - w.kernel[i] + 1)
            throw value_error(c.name(), str("there are no ", w.out[i], " windows of ", w.kernel[i], " elements within ",
                                            w.in[i], ": output_size may be at most ", w.in[i] - w.kernel[i] + 1));
    const int64_t planes = product_of(s, 0, leading);
    Expr samples;
    if (c.has(5)) {
        if (c.shape(5).size() != planes * w.axes || c.shape(5).rank() == 0 || c.shape(5).back() != w.axes)
            throw shape_error(c.name(), str("_random_samples must have ", w.axes, " numbers for each of the ", planes,
                                            " planes, not shape ", c.shape(5)));
        samples = c.in(5).reshape({planes, w.axes});
    } else {
        samples = c.call("rand", {Shape{planes, w.axes}, {"dtype", DType::f32}});
    }
    // Places within a plane: those of the windows' first elements, (planes, windows), then those of the other elements.
    Expr first;
    Tensor within = Tensor::zeros(DType::i64, {w.kernel_size()});
    int64_t stride = 1, inner = 1;
    for (int axis = Window::kAxes - 1; axis >= w.first(); --axis) {
        const auto i = static_cast<size_t>(axis);
        // In two dimensions the first number belongs to the last axis.
        const int64_t number = w.axes == 2 ? Window::kAxes - 1 - axis : axis - w.first();
        const Expr u = c.call("narrow", {samples, 1, number, 1});
        const Expr starts = c.call("mul", {window_starts(c, u, w.in[i], w.kernel[i], w.out[i]), stride});
        const int64_t before = first ? first.shape()[1] : 1;
        first = first ? (starts.reshape({planes, w.out[i], 1}) + first.reshape({planes, 1, before})) : starts;
        first = first.reshape({planes, w.out[i] * before});
        for (int64_t k = 0; k < within.size(); ++k) within.data<int64_t>()[k] += k / inner % w.kernel[i] * stride;
        stride *= w.in[i];
        inner *= w.kernel[i];
    }
    const int64_t windows = w.out_size(), elements = w.kernel_size();
    const Expr at = first.reshape({planes, windows, 1}) + c.builder.constant(within);
    const Expr x = c.in(0).reshape({planes, w.in_size()});
    const Expr all = c.call("plane_gather", {x, at.reshape({planes, windows * elements}), 1});
    const Expr largest = c.call("argmax", {all.reshape({planes, windows, elements}), 2, true});
    const Expr places = c.call("gather_elements", {at, 2, largest}).reshape({planes, windows});
    Shape out = s;
    out.resize(leading);
    w.append(out, w.out);
    const Expr values = c.call("plane_gather", {x, places, 1}).reshape(out);
    if (!c.boolean(4)) return values;
    const Expr both[] = {values, places.reshape(out)};
    return c.builder.list(both);
}

// Two numbers, or four as for batch, channels, rows and columns.
std::array<int64_t, 2> for_rows_and_columns(const Call& c, size_t i, const char* what) {
    const auto given = c.ints(i);
    const size_t n = given.size();
    if (n != 1 && n != 2 && n != 4)
        throw argument_error(c.name(), str(what, " must be one, two or four numbers, not ", n));
    const std::array<int64_t, 2> result{given[n == 4 ? 2 : 0], given[n - 1]};
    if (result[0] < 1 || result[1] < 1) throw value_error(c.name(), str(what, " must be at least 1"));
    return result;
}

// The arguments of deformable_conv2d; its two axes are the last ones of the window.
struct Deformable {
    static constexpr size_t kRows = 1, kColumns = 2;

    Window window;
    int64_t batch, channels, parts;

    int64_t taps() const { return window.kernel_size(); }
    int64_t pixels() const { return window.out_size(); }
};

void set_both(Window::Sizes& sizes, const std::array<int64_t, 2>& both) {
    sizes[Deformable::kRows] = both[0];
    sizes[Deformable::kColumns] = both[1];
}

// deformable_conv2d(x, weight, offsets, kernel_size, strides, padding, bias, dilations, groups, deformable_groups,
// modulated)
Deformable deformable_of(const Call& c) {
    for (size_t i : {0, 1, 2}) expect_rank(c, i, 4);
    const Shape x = c.shape(0), weight = c.shape(1), offsets = c.shape(2);
    Deformable d{{}, x[0], x[1], c.integer(9)};
    Window& w = d.window;
    w.in = spatial_sizes(x, w.axes);
    set_both(w.kernel, for_rows_and_columns(c, 3, "kernel_size"));
    set_both(w.stride, for_rows_and_columns(c, 4, "strides"));
    set_both(w.dilation, for_rows_and_columns(c, 7, "dilations"));
    window_padding(c, 5, w);
    const int64_t groups = c.integer(8);
    if (groups < 1 || d.parts < 1 || x[1] % groups != 0 || x[1] % d.parts != 0 || weight[0] % groups != 0)
        throw value_error(c.name(), str("groups (", groups, ") and deformable_groups (", d.parts, ") must divide the ",
                                        x[1], " channels of x, and groups the ", weight[0], " of the result"));
    Shape wanted{weight[0], x[1] / groups}, places{d.batch, (c.boolean(10) ? 3 : 2) * d.parts};
    w.append(wanted, w.kernel);
    if (!(weight == wanted)) throw shape_error(c.name(), str("weight must have shape ", wanted, ", not ", weight));
    set_window_output(c, w, false);
    places[1] *= d.taps();
    w.append(places, w.out);
    if (!(offsets == places)) throw shape_error(c.name(), str("offsets must have shape ", places, ", not ", offsets));
    return d;
}

// The places of the kernel's taps along an axis before they are moved: (taps, rows, columns) of the result.
Tensor regular_places(const Deformable& d, size_t axis) {
    const Window& w = d.window;
    Tensor t = Tensor::empty(DType::f64, {d.taps(), w.out[Deformable::kRows], w.out[Deformable::kColumns]});
    double* to = t.data<double>();
    for (int64_t tap = 0; tap < d.taps(); ++tap)
        for (int64_t y = 0; y < w.out[Deformable::kRows]; ++y)
            for (int64_t x = 0; x < w.out[Deformable::kColumns]; ++x) {
                const int64_t width = w.kernel[Deformable::kColumns];
                const int64_t step = axis == Deformable::kRows ? tap / width : tap % width;
                const int64_t place = axis == Deformable::kRows ? y : x;
                *to++ = static_cast<double>(place * w.stride[axis] - w.before[axis] + step * w.dilation[axis]);
            }
    return t;
}

// The bilinear mean of the four pixels around each place, 0 beyond the edges: (planes, channels, places) of x
// (planes, channels, pixels), where y and x are (planes, places).
Expr sampled(const ExpandCall& c, const Window& w, const Expr& x, const Expr& row, const Expr& column) {
    const int64_t planes = x.shape()[0], channels = x.shape()[1], places = row.shape()[1];
    const int64_t height = w.in[Deformable::kRows], width = w.in[Deformable::kColumns];
    const Expr top = call("floor", {row}), left = call("floor", {column});
    Expr sum;
    for (int corner = 0; corner < 4; ++corner) {
        const Expr y = top + static_cast<double>(corner / 2), z = left + static_cast<double>(corner % 2);
        // 1 at the place, falling to 0 at the next one.
        const Expr weight = (1.0 - call("abs", {row - y})) * (1.0 - call("abs", {column - z}));
        const Expr inside =
            call("logical_and", {call("logical_and", {call("greater_equal", {y, 0.0}), call("less", {y, height})}),
                                 call("logical_and", {call("greater_equal", {z, 0.0}), call("less", {z, width})})});
        const Expr at = call("where", {inside, y * static_cast<double>(width) + z, 0.0}).cast(DType::i64);
        const Expr values =
            c.call("plane_gather", {x, at.reshape({planes, 1, places}).broadcast_to({planes, channels, places}), 1});
        const Expr share = call("where", {inside, weight, 0.0}).cast(c.dtype).reshape({planes, 1, places}) * values;
        sum = sum ? sum + share : share;
    }
    return sum;
}

Expr expand_deformable_conv2d(const ExpandCall& c) {
    const Deformable d = deformable_of(c);
    const int64_t planes = d.batch * d.parts, places = d.taps() * d.pixels(), groups = c.integer(8);
    auto part = [&](int64_t i) {
        const int64_t n = d.parts * d.taps();
        return c.call("narrow", {c.in(2), 1, i * n, n}).reshape({planes, places});
    };
    // Places are numbers in the thousands and need digits after the point.
    const DType precise = c.dtype == DType::f64 ? DType::f64 : DType::f32;
    auto moved = [&](int64_t i, size_t axis) {
        return part(i).cast(precise) + c.builder.constant(regular_places(d, axis).cast(precise)).reshape({1, places});
    };
    const Expr x = c.in(0).reshape({planes, d.channels / d.parts, d.window.in_size()});
    Expr taps = sampled(c, d.window, x, moved(1, Deformable::kRows), moved(0, Deformable::kColumns));
    if (c.boolean(10)) taps = taps * part(2).reshape({planes, 1, places});
    const int64_t features = c.shape(1)[0], depth = d.channels / groups * d.taps();
    const Expr product =
        matmul(c.in(1).reshape({groups, features / groups, depth}), taps.reshape({d.batch, groups, depth, d.pixels()}));
    Shape out{d.batch, features};
    d.window.append(out, d.window.out);
    const Expr result = product.reshape(out);
    if (!c.has(6)) return result;
    if (!(c.shape(6) == Shape{features}))
        throw shape_error(c.name(), str("bias must have shape ", Shape{features}, ", not ", c.shape(6)));
    return result + c.in(6).reshape({features, 1, 1});
}

}  // namespace

void add_placed_ops(Registry& ops) {
    ops.add(
           "fractional_max_pool2d(input/x: float, kernel_size: ints, output_size: ints? = nil, output_ratio: any = "
           "nil, "
           "return_indices: bool = false, _random_samples: float? = nil)")
        .doc(
            "Largest element of each of output_size windows (or of output_ratio times as many as there are elements) "
            "of the last two axes, at distances that are drawn for each plane; _random_samples, two numbers in [0, 1) "
            "for each plane, decides them. With return_indices also the positions within the plane.")
        .example("fractional_max_pool2d(tensor{{{1.0, 2.0}, {4.0, 3.0}}}, 2, 1)", "tensor{{{4.0}}}")
        .expand(expand_fractional_max_pool)
        .wide()
        .sample("f32[2,2,7,9], 2, {3,4}, _random_samples=f32[2,2,2]:(0,1)")
        .sample("f32[3,6,5], {3,2}, output_ratio=0.5, _random_samples=f32[1,3,2]:(0,1)");
    ops.add(
           "fractional_max_pool3d(input/x: float, kernel_size: ints, output_size: ints? = nil, output_ratio: any = "
           "nil, "
           "return_indices: bool = false, _random_samples: float? = nil)")
        .doc("The same as fractional_max_pool2d over the last three axes, with three numbers for each plane.")
        .example("fractional_max_pool3d(ones({1, 2, 2, 2}), 2, 1)", "tensor{{{{1.0}}}}")
        .expand(expand_fractional_max_pool)
        .wide()
        .sample("f32[2,1,4,5,6], 2, {2,3,2}, _random_samples=f32[2,1,3]:(0,1)");
    ops.add(
           "deformable_conv2d(x/input: float, weight: float, offsets/offset: float, kernel_size: ints, "
           "strides/stride: ints = 1, padding: ints = 0, bias: float? = nil, dilations/dilation: ints = 1, "
           "groups: int = 1, deformable_groups: int = 1, modulated: bool = true)")
        .doc(
            "Convolution whose taps are moved by offsets, between pixels by bilinear interpolation (X. Zhu and others, "
            "\"Deformable ConvNets v2\", 2019). offsets has, for every tap of every deformable group, the distances "
            "along columns first, then all those along rows, then (modulated) what each tap is multiplied with.")
        .example("deformable_conv2d(ones({1, 1, 2, 2}), ones({1, 1, 1, 1}), ones({1, 3, 2, 2}), 1)",
                 "tensor{{{{1.0, 0.0}, {0.0, 0.0}}}}")
        .expand(expand_deformable_conv2d)
        .wide()
        .sample(
            "f32[2,4,5,6], f32[6,2,3,2], f32[2,36,5,5], {3,2}, padding={1,1,0,0}, bias=f32[6], groups=2, "
            "deformable_groups=2")
        .sample("f32[1,2,5,5], f32[3,2,2,2], f32[1,8,2,2], 2, {1,1,2,2}, dilations={1,1,2,2}, modulated=false");
}

}  // namespace lunaria
