// Operators on images and feature maps: resizing, sampling, rearranging, patches, boxes. All are composites, most of
// them linear maps, so that their gradients follow from those of products and gathers.
#include <cmath>

#include "core/base/interrupt.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/matrix.h"
#include "core/ops/open.h"
#include "core/ops/window.h"

namespace lunaria {

namespace {

Expr constant(const ExpandCall& c, const Tensor& t, DType dtype) { return c.builder.constant(t.cast(dtype)); }

// x with axis `axis` multiplied by a matrix (old size, new size).
Expr map_axis(const Expr& x, int axis, const Expr& matrix) {
    int last = x.rank() - 1;
    if (axis == last) return matmul(x, matrix);
    Shape swap;
    for (int i = 0; i <= last; ++i) swap.push_back(i);
    std::swap(swap[axis], swap[last]);
    return matmul(x.transpose(swap), matrix).transpose(swap);
}

struct Resize {
    int64_t in, out;
    double scale;  // input positions per output position
    bool align_corners;

    double source(int64_t i) const {
        if (align_corners) return out > 1 ? static_cast<double>(i * (in - 1)) / static_cast<double>(out - 1) : 0.0;
        return (static_cast<double>(i) + 0.5) * scale - 0.5;
    }
};

// Adds `weight` for input position `from` (moved inside at the edges) to output position `to`.
void add_weight(Tensor& m, int64_t in, int64_t out, int64_t from, int64_t to, double weight) {
    int64_t at = std::clamp<int64_t>(from, 0, in - 1) * out + to;
    m.set_at(at, m.at(at) + weight);
}

Tensor linear_weights(const Resize& r) {
    Tensor m = Tensor::zeros(DType::f64, {r.in, r.out});
    for_elements(r.out, [&](int64_t i) {
        double at = std::max(r.source(i), 0.0), low = std::floor(at);
        add_weight(m, r.in, r.out, static_cast<int64_t>(low), i, 1.0 - (at - low));
        add_weight(m, r.in, r.out, static_cast<int64_t>(low) + 1, i, at - low);
    });
    return m;
}

// Keys' cubic convolution with a = -0.75, as in image libraries.
Tensor cubic_weights(const Resize& r) {
    constexpr double a = -0.75;
    auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    Tensor m = Tensor::zeros(DType::f64, {r.in, r.out});
    for_elements(r.out, [&](int64_t i) {
        double at = r.source(i), low = std::floor(at), t = at - low;
        double weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
        for (int k = 0; k < 4; ++k) add_weight(m, r.in, r.out, static_cast<int64_t>(low) + k - 1, i, weights[k]);
    });
    return m;
}

Expr resize_nearest(const ExpandCall& c, const Expr& x, int axis, const Resize& r, bool exact) {
    Tensor index = Tensor::empty(DType::i64, {r.out});
    for_elements(r.out, [&](int64_t i) {
        double at = (static_cast<double>(i) + (exact ? 0.5 : 0.0)) * r.scale;
        index.data<int64_t>()[i] = std::clamp<int64_t>(static_cast<int64_t>(std::floor(at)), 0, r.in - 1);
    });
    return c.call("gather", {x, c.builder.constant(index), axis});
}

Expr expand_interpolate(const ExpandCall& c) {
    Shape s = c.shape(0);
    int axes = s.rank() - 2;
    const std::string& mode = c.string(3);
    if (axes < 1 || axes > 3) throw shape_error(c.name(), str("input must have 3 to 5 axes, not shape ", s));
    constexpr std::string_view kLinear[] = {"linear", "bilinear", "trilinear"};
    for (int i = 0; i < 3; ++i)
        if (mode == kLinear[i] && axes != i + 1)
            throw value_error(c.name(), str("mode \"", mode, "\" needs ", i + 3, " axes, but input has shape ", s));
    if (mode == "bicubic" && axes != 2)
        throw value_error(c.name(), str("mode \"bicubic\" needs 4 axes, but input has shape ", s));
    if (c.has(1) == c.has(2)) throw argument_error(c.name(), "give either size or scale_factor");
    auto sizes = c.ints(1);
    auto scales = numbers_in(c.args[2]);
    size_t given = c.has(1) ? sizes.size() : scales.size(), n = static_cast<size_t>(axes);
    if (given != 1 && given != n)
        throw value_error(c.name(),
                          str(c.has(1) ? "size" : "scale_factor", " must be one number or ", axes, ", not ", given));
    bool align = c.has(4) && c.boolean(4), recompute = c.has(5) && c.boolean(5);
    if (align && (mode == "nearest" || mode == "nearest-exact" || mode == "area"))
        throw value_error(c.name(), str("align_corners has no meaning in mode \"", mode, "\""));
    Expr x = c.in(0);
    Shape target = s;
    for (int i = 0; i < axes; ++i) {
        int axis = i + 2;
        auto k = given == 1 ? size_t{0} : static_cast<size_t>(i);
        Resize r{s[axis], 0, 1.0, align};
        double wanted = c.has(1) ? static_cast<double>(sizes[k]) : std::floor(static_cast<double>(r.in) * scales[k]);
        if (!(wanted >= 1) || wanted > 1e9 || r.in == 0)
            throw value_error(c.name(), str("axis ", axis, " would be resized from ", r.in, " to ", wanted,
                                            ": both sizes must be at least 1"));
        r.out = static_cast<int64_t>(wanted);
        r.scale = static_cast<double>(r.in) / static_cast<double>(r.out);
        if (c.has(2) && !recompute) r.scale = 1.0 / scales[k];
        target[axis] = r.out;
        if (mode == "area" || (r.in == r.out && mode != "nearest" && mode != "nearest-exact" && r.scale == 1.0))
            continue;
        if (mode == "nearest" || mode == "nearest-exact")
            x = resize_nearest(c, x, axis, r, mode != "nearest");
        else
            x = map_axis(x, axis, constant(c, mode == "bicubic" ? cubic_weights(r) : linear_weights(r), x.dtype()));
    }
    if (mode != "area") return x;
    Shape size;
    for (int i = 2; i < s.rank(); ++i) size.push_back(target[i]);
    return c.call(str("adaptive_avg_pool", axes, "d"), {x, size});
}

// Pixel coordinates from [-1, 1].
Expr unnormalise(const Expr& grid, int64_t size, bool align_corners) {
    double n = static_cast<double>(size);
    return align_corners ? (grid + 1.0) * ((n - 1) / 2) : ((grid + 1.0) * n - 1.0) * 0.5;
}

Expr clamp(const ExpandCall& c, const Expr& x, double low, double high) {
    return c.call("minimum", {c.call("maximum", {x, low}), high});
}

// Coordinates mirrored at the edges until they are inside.
Expr reflect(const ExpandCall& c, const Expr& x, double low, double high) {
    if (high <= low) return x * 0.0;
    double span = high - low;
    Expr distance = c.call("abs", {x - low});
    Expr turns = c.call("floor", {distance / span});
    Expr rest = distance - turns * span;
    Expr odd = c.call("greater", {turns - 2.0 * c.call("floor", {turns * 0.5}), 0.5});
    return c.call("where", {odd, high - rest, rest + low});
}

struct Sampler {
    const ExpandCall& c;
    Expr planes;  // (N, C, H W)
    Shape in, out;
    bool zeros;

    // Elements at integral coordinates; outside 0 (or the nearest element).
    Expr at(const Expr& x, const Expr& y) const {
        double w = static_cast<double>(in[3]), h = static_cast<double>(in[2]);
        Expr cx = clamp(c, x, 0, w - 1), cy = clamp(c, y, 0, h - 1);
        // In whole numbers: a float cannot count the elements of a large plane.
        Expr index = c.call("add", {c.call("mul", {cy.cast(DType::i64), in[3]}), cx.cast(DType::i64)});
        Shape flat{in[0], in[1], out[1] * out[2]};
        index = index.reshape({in[0], 1, out[1] * out[2]}).broadcast_to(flat);
        Expr found = c.call("plane_gather", {planes, index, 1}).reshape({in[0], in[1], out[1], out[2]});
        if (!zeros) return found;
        Expr inside = c.call("logical_and", {c.call("equal", {cx, x}), c.call("equal", {cy, y})});
        return c.call("where", {inside.reshape({in[0], 1, out[1], out[2]}), found, 0.0});
    }
    Expr weight(const Expr& w) const { return w.reshape({in[0], 1, out[1], out[2]}); }
};

Expr expand_grid_sample(const ExpandCall& c) {
    expect_rank(c, 0, 4);
    expect_rank(c, 1, 4);
    Shape in = c.shape(0), grid = c.shape(1);
    if (in[0] != grid[0] || grid[3] != 2)
        throw shape_error(
            c.name(), str("input is ", in, " and grid is ", grid, ": grid must be (", in[0], ", height, width, 2)"));
    if (in[2] == 0 || in[3] == 0) throw shape_error(c.name(), str("input is ", in, ": its planes are empty"));
    bool align = c.has(4) && c.boolean(4);
    const std::string &mode = c.string(2), &padding = c.string(3);
    auto coordinate = [&](int64_t k, int64_t size) {
        Expr part = c.call("slice", {c.in(1), Shape{0, 0, 0, k}, Shape{grid[0], grid[1], grid[2], 1}});
        Expr x = unnormalise(part.reshape({grid[0], grid[1], grid[2]}), size, align);
        double n = static_cast<double>(size);
        if (padding == "reflection") x = align ? reflect(c, x, 0, n - 1) : reflect(c, x, -0.5, n - 0.5);
        return padding == "zeros" ? x : clamp(c, x, 0, n - 1);
    };
    Expr x = coordinate(0, in[3]), y = coordinate(1, in[2]);
    Sampler sample{c, c.in(0).reshape({in[0], in[1], in[2] * in[3]}), in, grid, padding == "zeros"};
    if (mode == "nearest") return sample.at(c.call("round", {x}), c.call("round", {y}));
    Expr x0 = c.call("floor", {x}), y0 = c.call("floor", {y});
    Expr x1 = x0 + 1.0, y1 = y0 + 1.0, fx = x - x0, fy = y - y0, gx = 1.0 - fx, gy = 1.0 - fy;
    return sample.at(x0, y0) * sample.weight(gx * gy) + sample.at(x1, y0) * sample.weight(fx * gy) +
           sample.at(x0, y1) * sample.weight(gx * fy) + sample.at(x1, y1) * sample.weight(fx * fy);
}

// Axes (…, C, H, W) taken apart into (…, a, b, …), permuted and put together again.
Expr rearranged(const Expr& x, int lead, const Shape& split, std::initializer_list<int> order, const Shape& joined) {
    Shape s = x.shape(), apart, perm, out;
    for (int i = 0; i < lead; ++i) {
        apart.push_back(s[i]);
        perm.push_back(i);
        out.push_back(s[i]);
    }
    for (int64_t n : split) apart.push_back(n);
    for (int i : order) perm.push_back(lead + i);
    for (int64_t n : joined) out.push_back(n);
    return x.reshape(apart).transpose(perm).reshape(out);
}

Expr expand_pixel_shuffle(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 3);
    int64_t r = c.integer(1);
    expect_positive(c, 1, r);
    Shape s = c.shape(0);
    int lead = s.rank() - 3;
    int64_t channels = s[lead], h = s[lead + 1], w = s[lead + 2];
    if (r > (int64_t{1} << 20) || channels % (r * r))
        throw shape_error(c.name(), str("input is ", s, ": its ", channels,
                                        " channels must be divisible by the square of upscale_factor (", r, ")"));
    int64_t n = channels / (r * r);
    return rearranged(c.in(0), lead, {n, r, r, h, w}, {0, 3, 1, 4, 2}, {n, h * r, w * r});
}

Expr expand_pixel_unshuffle(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 3);
    int64_t r = c.integer(1);
    expect_positive(c, 1, r);
    Shape s = c.shape(0);
    int lead = s.rank() - 3;
    int64_t channels = s[lead], h = s[lead + 1], w = s[lead + 2];
    if (h % r || w % r)
        throw shape_error(c.name(), str("input is ", s, ": height (", h, ") and width (", w,
                                        ") must be divisible by downscale_factor (", r, ")"));
    return rearranged(c.in(0), lead, {channels, h / r, r, w / r, r}, {0, 2, 4, 1, 3}, {channels * r * r, h / r, w / r});
}

Expr expand_channel_shuffle(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 3);
    int64_t groups = c.integer(1);
    expect_positive(c, 1, groups);
    Shape s = c.shape(0);
    if (s[1] % groups)
        throw shape_error(c.name(),
                          str("x is ", s, ": its ", s[1], " channels must be divisible by groups (", groups, ")"));
    Shape apart{s[0], groups, s[1] / groups}, perm{0, 2, 1};
    for (int i = 2; i < s.rank(); ++i) {
        apart.push_back(s[i]);
        perm.push_back(i + 1);
    }
    return c.in(0).reshape(apart).transpose(perm).reshape(s);
}

// The weights with which a convolution copies every element of a patch into a channel of its own.
Expr patch_weights(const ExpandCall& c, int64_t channels, const Window& w, DType dtype) {
    int64_t n = w.kernel_size();
    const Shape shape{capped_product(channels, n), 1, w.kernel[1], w.kernel[2]};
    Tensor weights = Tensor::zeros(DType::f32, checked_shape(c.name(), shape.dims(), sizeof(float)));
    for (int64_t i = 0; i < shape[0]; ++i) weights.data<float>()[i * n + i % n] = 1.0f;
    return constant(c, weights, dtype);
}

Window patch_window(const Call& c, size_t kernel, size_t dilation, size_t padding, size_t stride) {
    Window w;
    w.kernel = window_sizes(c, kernel, 2, 1);
    w.dilation = window_sizes(c, dilation, 2, 1);
    w.stride = window_sizes(c, stride, 2, 1);
    window_padding(c, padding, w);
    return w;
}

Expr expand_unfold(const ExpandCall& c) {
    expect_rank(c, 0, 4);
    Shape s = c.shape(0);
    Window w = patch_window(c, 1, 2, 3, 4);
    w.in = spatial_sizes(s, 2);
    set_window_output(c, w, false);
    Expr patches = c.call("conv2d", {c.in(0), patch_weights(c, s[1], w, c.type(0).dtype), Value(),
                                     w.attribute(w.stride), "pad", w.padding(), w.attribute(w.dilation), s[1]});
    return patches.reshape({s[0], s[1] * w.kernel_size(), w.out_size()});
}

Expr expand_fold(const ExpandCall& c) {
    expect_rank(c, 0, 3);
    Shape s = c.shape(0);
    Window w = patch_window(c, 2, 3, 4, 5);
    w.in = window_sizes(c, 1, 2, 1);
    set_window_output(c, w, false);
    int64_t n = w.kernel_size(), channels = s[1] / n;
    if (s[1] % n || s[2] != w.out_size())
        throw shape_error(c.name(), str("input is ", s, ": axis 1 must be divisible by the kernel's size (", n,
                                        ") and axis 2 must be the number of patches (", w.out_size(), ")"));
    Expr patches = c.in(0).reshape({s[0], s[1], w.out[1], w.out[2]});
    return c.call("conv_input_grad",
                  {patches, patch_weights(c, channels, w, c.type(0).dtype), Shape{s[0], channels, w.in[1], w.in[2]},
                   w.attribute(w.stride), w.padding(), w.attribute(w.dilation), channels});
}

Expr expand_lrn(const ExpandCall& c) {
    expect_rank_at_least(c, 0, 2);
    int64_t radius = c.integer(1);
    expect_not_negative(c, 1, radius);
    Shape s = c.shape(0), planes{s[0], 1, s[1], 1};
    for (int i = 2; i < s.rank(); ++i) planes[3] *= s[i];
    radius = std::min(radius, s[1]);
    Expr x = c.in(0);
    Expr sums =
        c.call("avg_pool2d", {(x * x).reshape(planes), Shape{2 * radius + 1, 1}, 1, Shape{radius, 0}, false, true, 1});
    Expr base = sums.reshape(s) * c.number(3) + c.number(2);
    return x * c.call("pow", {base, -c.number(4)});
}

}  // namespace

void add_image_ops(Registry& ops) {
    ops.add(
           "interpolate(input/x: float, size: ints? = nil, scale_factor: numbers? = nil, mode: \"nearest\"|"
           "\"nearest-exact\"|\"linear\"|\"bilinear\"|\"trilinear\"|\"bicubic\"|\"area\" = \"nearest\", "
           "align_corners: bool? = nil, recompute_scale_factor: bool? = nil)")
        .alias("upsample")
        .doc("Resizes the axes after batch and channels to size, or by scale_factor.")
        .example("interpolate(tensor{{{1.0, 3.0}}}, 4)", "tensor{{{1.0, 1.0, 3.0, 3.0}}}")
        .example("interpolate(tensor{{{1.0, 3.0}}}, 3, nil, \"linear\", true)", "tensor{{{1.0, 2.0, 3.0}}}")
        .expand(expand_interpolate)
        .wide()
        .sample("f32[1,2,4,5], {7, 6}")
        .sample("f32[1,2,4,5], {7, 9}, mode=\"bilinear\", align_corners=false")
        .sample("f32[1,2,4,5], {3, 7}, mode=\"bicubic\"")
        .sample("f32[2,2,5], scale_factor=1.6, mode=\"linear\"")
        .sample("f32[1,2,4,5], {2, 3}, mode=\"area\"");
    ops.add(
           "grid_sample(input/x: float, grid: float, mode: \"bilinear\"|\"nearest\" = \"bilinear\", "
           "padding_mode: \"zeros\"|\"border\"|\"reflection\" = \"zeros\", align_corners: bool? = false)")
        .doc(
            "Elements of input (batch, channels, height, width) at the places that grid (batch, height, width, 2) "
            "names by x and y between -1 and 1.")
        .example("grid_sample(tensor{{{{1.0, 3.0}}}}, tensor{{{{0.0, 0.0}}}})", "tensor{{{{2.0}}}}")
        .expand(expand_grid_sample)
        .wide()
        .sample("f32[1,2,4,5], f32[1,3,3,2]:(-0.9,0.9)")
        .sample("f32[2,1,3,4], f32[2,2,3,2]:(-1.4,1.4), padding_mode=\"reflection\", align_corners=true")
        .sample("f32[1,2,4,5], f32[1,3,3,2]:(-1.4,1.4), mode=\"nearest\", padding_mode=\"border\"");
    ops.add("pixel_shuffle(input/x: tensor, upscale_factor: int)")
        .doc("Moves channels into space: (C r r, H, W) becomes (C, H r, W r).")
        .example("pixel_shuffle(tensor{{{1}}, {{2}}, {{3}}, {{4}}}, 2)", "tensor{{{1, 2}, {3, 4}}}")
        .expand(expand_pixel_shuffle)
        .sample("f32[2,8,2,3], 2")
        .sample("f32[9,1,2], 3");
    ops.add("pixel_unshuffle(input/x: tensor, downscale_factor: int)")
        .doc("Moves space into channels: (C, H r, W r) becomes (C r r, H, W).")
        .example("pixel_unshuffle(tensor{{{1, 2}, {3, 4}}}, 2)", "tensor{{{1}}, {{2}}, {{3}}, {{4}}}")
        .expand(expand_pixel_unshuffle)
        .sample("f32[1,2,4,6], 2")
        .sample("f32[1,3,3], 3");
    ops.add("channel_shuffle(x/input: tensor, groups: int)")
        .doc("Deals the channels (axis 1) of each group out over all groups.")
        .example("channel_shuffle(tensor{{{1}, {2}, {3}, {4}}}, 2)", "tensor{{{1}, {3}, {2}, {4}}}")
        .expand(expand_channel_shuffle)
        .sample("f32[1,6,2,2], 3")
        .sample("f32[2,4,1], 2");
    ops.add("unfold(input/x: float, kernel_size: ints, dilation: ints = 1, padding: ints = 0, stride: ints = 1)")
        .doc("The patches that a kernel sees, as columns: (batch, channels kernel size, patches).")
        .example("unfold(tensor{{{{1.0, 2.0, 3.0}}}}, {1, 2})", "tensor{{{1.0, 2.0}, {2.0, 3.0}}}")
        .method(false)
        .expand(expand_unfold)
        .sample("f32[2,2,4,5], {2, 3}")
        .sample("f32[1,2,5,5], 3, stride=2, padding=1");
    ops.add(
           "fold(input/x: float, output_size: ints, kernel_size: ints, dilation: ints = 1, padding: ints = 0, "
           "stride: ints = 1)")
        .doc("Adds patches up to an image of output_size: the transpose of unfold.")
        .example("fold(tensor{{{1.0, 2.0}, {2.0, 3.0}}}, {1, 3}, {1, 2})", "tensor{{{{1.0, 4.0, 3.0}}}}")
        .expand(expand_fold)
        .sample("f32[1,8,9], {4, 4}, {2, 2}")
        .sample("f32[2,9,4], {3, 3}, 3, padding=1, stride=2");
    ops.add(
           "lrn(x/input: float, depth_radius: int = 5, bias: number = 1.0, alpha: number = 1.0, beta: number = 0.5, "
           "norm_region: \"ACROSS_CHANNELS\" = \"ACROSS_CHANNELS\")")
        .doc(
            "Local response normalisation: x / (bias + alpha s)^beta, where s sums the squares of 2 depth_radius + 1 "
            "neighbouring channels.")
        .example("lrn(tensor{{1.0}}, 1, 3.0, 1.0, 0.5)", "tensor{{0.5}}")
        .expand(expand_lrn)
        .open(open::lrn)
        .wide()
        .sample("f32[2,6,2,3], 2, 1.0, 0.5, 0.75")
        .sample("f32[1,3,5], 1");
}

}  // namespace lunaria
