// Operators: convolutions over one to three spatial axes. The convolution is bilinear in input and weight, and its two
// gradients are operators of the same kind: each of the three has the other two for its gradients, to any order.
#include "core/ops/conv.h"

#include "core/batching/rules.h"
#include "core/operator/infer.h"
#include "core/ops/families.h"
#include "core/ops/flops.h"
#include "core/ops/matrix.h"

namespace lunaria {

namespace {

enum ConvParam : size_t { kInput, kWeight, kBias, kStride, kPadMode, kPadding, kDilation, kGroups };
enum LastParam : size_t { kLastStride = 3, kLastPadding, kLastDilation, kLastGroups };
enum GradParam : size_t { kFirst, kSecond, kSize, kGradStride, kGradPadding, kGradDilation, kGradGroups };

int spatial_axes(const Call& c, size_t i) {
    int axes = c.rank(i) - 2;
    if (axes < 1 || axes > Window::kAxes)
        throw shape_error(c.name(), str(param_name(c, i), " must have 3 to 5 axes, not shape ", c.shape(i), " (rank ",
                                        c.rank(i), ")"));
    return axes;
}

// conv1d, conv2d or conv3d: the digit is the number of axes.
int axes_in_name(std::string_view name) { return name[name.find_first_of("123")] - '0'; }

std::string conv_name(int axes) { return str("conv", axes, "d"); }

int64_t groups_of(const Call& c, size_t i) {
    int64_t groups = c.integer(i);
    expect_positive(c, i, groups);
    return groups;
}

void check_channels(const Call& c, const Convolution& conv, const Shape& input, const Shape& weight) {
    if (input[1] != capped_product(weight[1], conv.groups))
        throw shape_error(c.name(), str("input is ", input, " and weight is ", weight, ": the ", input[1],
                                        " channels of input must equal axis 1 of weight (", weight[1],
                                        ") times groups (", conv.groups, ")"));
    if (weight[0] % conv.groups)
        throw shape_error(c.name(), str("weight is ", weight, ": its ", weight[0],
                                        " output channels must be divisible by groups (", conv.groups, ")"));
}

void check_bias(const Call& c, const Shape& weight) {
    if (c.has(kBias) && !(c.shape(kBias) == Shape{weight[0]}))
        throw shape_error(c.name(), str("bias is ", c.shape(kBias), " and weight is ", weight,
                                        ": bias must have shape (", weight[0], "), one number per output channel"));
}

Window::Sizes kernel_of(const Call& c, const Shape& weight, int axes) {
    const Window::Sizes kernel = spatial_sizes(weight, axes);
    for (int64_t n : kernel)
        if (n == 0) throw shape_error(c.name(), str("weight is ", weight, ": the kernel is empty"));
    return kernel;
}

void pad_to_same(Window& w) {
    for (auto i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i) {
        if (w.in[i] < 0) continue;
        int64_t out = (w.in[i] + w.stride[i] - 1) / w.stride[i];
        int64_t total = std::max<int64_t>(0, (out - 1) * w.stride[i] + w.reach(static_cast<int>(i)) - w.in[i]);
        w.before[i] = total / 2;
        w.after[i] = total - total / 2;
    }
}

// Geometry from the arguments that the two gradients share.
Convolution geometry(const Call& c, int axes) {
    Convolution conv;
    Window& w = conv.window;
    w.axes = axes;
    w.stride = window_sizes(c, kGradStride, axes, 1);
    w.dilation = window_sizes(c, kGradDilation, axes, 1);
    window_padding(c, kGradPadding, w);
    conv.groups = groups_of(c, kGradGroups);
    return conv;
}

// The attribute that gives the shape of the gradient.
Shape given_shape(const Call& c) {
    const Shape shape(c.ints(kSize));
    for (int64_t n : shape)
        if (n < 0) throw shape_error(c.name(), str(param_name(c, kSize), " is ", shape, ": a size is negative"));
    return shape;
}

void set_shapes(const Call& c, Convolution& conv, const Shape& input, const Shape& weight, const Shape& dout) {
    int axes = conv.window.axes;
    if (input.rank() != axes + 2 || weight.rank() != axes + 2 || dout.rank() != axes + 2)
        throw shape_error(c.name(),
                          str("shapes ", input, ", ", weight, " and ", dout, " must have ", axes + 2, " axes"));
    check_channels(c, conv, input, weight);
    conv.batch = input[0];
    conv.in_channels = input[1];
    conv.out_channels = weight[0];
    conv.window.in = spatial_sizes(input, axes);
    conv.window.kernel = spatial_sizes(weight, axes);
    set_window_output(c, conv.window, false);
    if (!(conv.output_shape() == dout))
        throw shape_error(c.name(), str("dout is ", dout, ", but the convolution of ", input, " with ", weight,
                                        " has shape ", conv.output_shape()));
}

Types infer_conv(const Call& c) { return checked_type(c, c.dtype, convolution_of(c).output_shape()); }

std::vector<Arg> gradient_args(const Expr& first, const Expr& second, const Shape& size, const Convolution& conv) {
    const Window& w = conv.window;
    return {first, second, size, w.attribute(w.stride), w.padding(), w.attribute(w.dilation), conv.groups};
}

Expr input_grad(const Expr& dout, const Expr& weight, const Convolution& conv) {
    return dout.builder().call_args("conv_input_grad", gradient_args(dout, weight, conv.input_shape(), conv));
}
Expr weight_grad(const Expr& input, const Expr& dout, const Convolution& conv) {
    return dout.builder().call_args("conv_weight_grad", gradient_args(input, dout, conv.weight_shape(), conv));
}
Expr convolve(const Expr& input, const Expr& weight, const Convolution& conv) {
    const Window& w = conv.window;
    return input.builder().call(conv_name(w.axes), {input, weight, Value(), w.attribute(w.stride), "pad", w.padding(),
                                                    w.attribute(w.dilation), conv.groups});
}

// Sum over all axes but that of the channels.
Expr bias_grad(const Expr& dout) {
    Shape axes{0};
    for (int i = 2; i < dout.rank(); ++i) axes.push_back(i);
    return dout.sum(axes);
}

Grads conv_grad(const GradRule& g) {
    Convolution conv = convolution_of(g);
    Expr db;
    if (g.has(kBias)) db = bias_grad(g.dout);
    return {input_grad(g.dout, g.in(kWeight), conv), weight_grad(g.in(kInput), g.dout, conv), db};
}

Grads input_grad_grad(const GradRule& g) {
    Convolution conv = convolution_of_input_grad(g);
    return {convolve(g.dout, g.in(1), conv), weight_grad(g.dout, g.in(0), conv)};
}

Grads weight_grad_grad(const GradRule& g) {
    Convolution conv = convolution_of_weight_grad(g);
    return {input_grad(g.in(1), g.dout, conv), convolve(g.in(0), g.dout, conv)};
}

// Between (batch, height, width, channels) and (batch, channels, height, width).
Expr expand_conv_relu(const ExpandCall& c) {
    std::vector<Arg> args{c.in(kInput), c.in(kWeight), c.has(kBias) ? Arg(c.in(kBias)) : Arg(Value())};
    args.insert(args.end(), c.args.begin() + kStride, c.args.end());
    return c.call("relu", {c.builder.call_args("conv2d", args)});
}

const Shape kToFront{0, 3, 1, 2}, kToBack{0, 2, 3, 1};

Expr expand_conv_last(const ExpandCall& c) {
    const Window w = convolution_of_last(c).window;
    return c
        .call("conv2d",
              {c.in(kInput).transpose(kToFront), c.in(kWeight), c.has(kBias) ? Arg(c.in(kBias)) : Arg(Value()),
               w.attribute(w.stride), "pad", w.padding(), w.attribute(w.dilation), c.args[kLastGroups]})
        .transpose(kToBack);
}

enum TransposeParam : size_t { kTStride = 3, kTPadding, kTOutputPadding, kTGroups, kTDilation };

Expr expand_transpose(const ExpandCall& c) {
    int axes = axes_in_name(c.name());
    for (size_t i : {0, 1}) expect_rank(c, i, axes + 2);
    Shape input = c.shape(0), weight = c.shape(1);
    Window w;
    w.axes = axes;
    w.stride = window_sizes(c, kTStride, axes, 1);
    w.dilation = window_sizes(c, kTDilation, axes, 1);
    window_padding(c, kTPadding, w);
    w.kernel = kernel_of(c, weight, axes);
    w.out = spatial_sizes(input, axes);
    Window::Sizes more = window_sizes(c, kTOutputPadding, axes, 0);
    int64_t groups = groups_of(c, kTGroups);
    if (input[1] != weight[0] || input[1] % groups)
        throw shape_error(c.name(), str("input is ", input, " and weight is ", weight, ": the ", input[1],
                                        " channels of input must equal axis 0 of weight (", weight[0],
                                        ") and be divisible by groups (", groups, ")"));
    Shape size{input[0], weight[1] * groups};
    Window::Sizes beyond{};
    for (auto i = static_cast<size_t>(w.first()); i < Window::kAxes; ++i) {
        if (more[i] >= std::max(w.stride[i], w.dilation[i]))
            throw value_error(c.name(), str("output_padding (", more[i], ") must be smaller than stride (", w.stride[i],
                                            ") or dilation (", w.dilation[i], ")"));
        // The convolution's input could have up to a stride more elements. The extra ones are cut off at the end, and
        // elements that are still missing there are zeros, which no window reaches.
        if (more[i] >= w.stride[i]) {
            const int64_t uncut = std::min(more[i], w.after[i]);
            w.after[i] -= uncut;
            beyond[i] = more[i] - uncut;
            more[i] = 0;
        }
        int64_t n = (w.out[i] - 1) * w.stride[i] - w.before[i] - w.after[i] + w.reach(static_cast<int>(i)) + more[i];
        if (n <= 0 || w.out[i] == 0)
            throw shape_error(c.name(), str("an input of ", input, " with kernel ", weight,
                                            " and this padding would give an empty output"));
        size.push_back(n);
    }
    Expr out = c.call("conv_input_grad",
                      {c.in(0), c.in(1), size, w.attribute(w.stride), w.padding(), w.attribute(w.dilation), groups});
    if (beyond != Window::Sizes{}) {
        std::vector<Value> amounts;  // from the last axis on
        for (int i = Window::kAxes; i-- > w.first();) {
            amounts.emplace_back(0);
            amounts.emplace_back(beyond[static_cast<size_t>(i)]);
        }
        out = c.call("pad", {out, Value::list(std::move(amounts)), "constant", 0.0});
    }
    if (!c.has(kBias)) return out;
    if (!(c.shape(kBias) == Shape{size[1]}))
        throw shape_error(c.name(), str("bias is ", c.shape(kBias), ", but there are ", size[1], " output channels"));
    Shape channel{size[1]};
    for (int i = 0; i < axes; ++i) channel.push_back(1);
    return out + c.in(kBias).reshape(channel);
}

// Every element is multiplied with all weights of its channel.
double conv_flops(const Call& c, std::span<const TensorType> results) {
    const Shape weight = c.shape(kWeight);
    return 2 * elements(results[0].shape) * elements(weight) / std::max(size_from_end(weight, weight.rank()), 1.0);
}
double input_grad_flops(const Call& c, std::span<const TensorType>) {
    const Shape weight = c.shape(kSecond);
    return 2 * elements(c.shape(kFirst)) * elements(weight) / std::max(size_from_end(weight, weight.rank()), 1.0);
}
double weight_grad_flops(const Call& c, std::span<const TensorType> results) {
    const Shape weight = results[0].shape;
    return 2 * elements(c.shape(kSecond)) * elements(weight) / std::max(size_from_end(weight, weight.rank()), 1.0);
}

void describe_conv(Op& op) {
    op.infer(infer_conv).grad(conv_grad).batched(batch::convolution).flops(conv_flops).keeps_weight();
}

}  // namespace

Shape Convolution::input_shape() const {
    Shape s{batch, in_channels};
    window.append(s, window.in);
    return s;
}

Shape Convolution::weight_shape() const {
    Shape s{out_channels, in_channels / groups};
    window.append(s, window.kernel);
    return s;
}

Shape Convolution::output_shape() const {
    Shape s{batch, out_channels};
    window.append(s, window.out);
    return s;
}

Convolution convolution_of(const Call& c) {
    int axes = axes_in_name(c.name());
    expect_rank(c, kInput, axes + 2);
    expect_rank(c, kWeight, axes + 2);
    Shape input = c.shape(kInput), weight = c.shape(kWeight);
    Convolution conv;
    conv.batch = input[0];
    conv.in_channels = input[1];
    conv.out_channels = weight[0];
    conv.groups = groups_of(c, kGroups);
    check_channels(c, conv, input, weight);
    check_bias(c, weight);
    Window& w = conv.window;
    w.axes = axes;
    w.in = spatial_sizes(input, axes);
    w.kernel = kernel_of(c, weight, axes);
    w.stride = window_sizes(c, kStride, axes, 1);
    w.dilation = window_sizes(c, kDilation, axes, 1);
    window_padding(c, kPadding, w);
    const std::string& mode = c.string(kPadMode);
    if (mode != "pad" && (w.before != Window::Sizes{} || w.after != Window::Sizes{}))
        throw value_error(c.name(),
                          str("padding is ", to_string(c.args[kPadding]), ", but pad_mode \"", mode, "\" takes none"))
            .hint("pass pad_mode = \"pad\" as well");
    if (mode == "same") pad_to_same(w);
    set_window_output(c, w, false);
    return conv;
}

Convolution convolution_of_last(const Call& c) {
    for (size_t i : {kInput, kWeight}) expect_rank(c, i, 4);
    const Shape x = c.shape(kInput), weight = c.shape(kWeight);
    const Shape input{x[0], x[3], x[1], x[2]};
    Convolution conv;
    conv.batch = input[0];
    conv.in_channels = input[1];
    conv.out_channels = weight[0];
    conv.groups = groups_of(c, kLastGroups);
    check_channels(c, conv, input, weight);
    check_bias(c, weight);
    Window& w = conv.window;
    w.axes = 2;
    w.in = spatial_sizes(input, w.axes);
    w.kernel = kernel_of(c, weight, w.axes);
    w.stride = window_sizes(c, kLastStride, w.axes, 1);
    w.dilation = window_sizes(c, kLastDilation, w.axes, 1);
    window_padding(c, kLastPadding, w);
    set_window_output(c, w, false);
    return conv;
}

Convolution convolution_of_input_grad(const Call& c) {
    Convolution conv = geometry(c, spatial_axes(c, kSecond));
    set_shapes(c, conv, given_shape(c), c.shape(kSecond), c.shape(kFirst));
    return conv;
}

Convolution convolution_of_weight_grad(const Call& c) {
    Convolution conv = geometry(c, spatial_axes(c, kFirst));
    set_shapes(c, conv, c.shape(kFirst), given_shape(c), c.shape(kSecond));
    return conv;
}

void add_conv_ops(Registry& ops) {
    describe_conv(
        ops.add("conv1d(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, "
                "pad_mode: \"valid\"|\"same\"|\"pad\" = \"valid\", padding/pad: ints = 0, dilation: ints = 1, "
                "groups/group: int = 1)")
            .doc("Convolution over the last axis of (batch, channels, length); weight is (outputs, channels / groups, "
                 "kernel).")
            .example("conv1d(tensor{{{1.0, 2.0, 3.0}}}, tensor{{{1.0, -1.0}}})", "tensor{{{-1.0, -1.0}}}")
            .cut("@conv")
            .sample("f32[2,4,11], f32[4,2,3], f32[4], groups=2")
            .sample("f32[2,3,7], f32[2,3,3], stride=2, pad_mode=\"pad\", padding=2, dilation=2"));
    describe_conv(
        ops.add("conv2d(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, "
                "pad_mode: \"valid\"|\"same\"|\"pad\" = \"valid\", padding/pad: ints = 0, dilation: ints = 1, "
                "groups/group: int = 1)")
            .doc("Convolution over the last two axes of (batch, channels, height, width); weight is (outputs, channels "
                 "/ groups, kernel height, kernel width). padding is one number, two (height, width) or four (top, "
                 "bottom, left, right), with pad_mode \"pad\".")
            .example("conv2d(ones({1, 1, 3, 3}), ones({1, 1, 2, 2}))", "tensor{{{{4.0, 4.0}, {4.0, 4.0}}}}")
            .cut("@conv")
            .sample("f32[2,3,5,7], f32[4,3,3,2], f32[4], stride=2, pad_mode=\"same\"")
            .sample("f32[1,4,5,4], f32[6,2,3,3], pad_mode=\"pad\", padding={1, 2, 0, 1}, groups=2")
            .sample("f32[2,2,6,5], f32[1,2,2,2], dilation={2, 1}"));
    describe_conv(
        ops.add("conv3d(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, "
                "pad_mode: \"valid\"|\"same\"|\"pad\" = \"valid\", padding/pad: ints = 0, dilation: ints = 1, "
                "groups/group: int = 1)")
            .doc("Convolution over the last three axes of (batch, channels, depth, height, width).")
            .example("conv3d(ones({1, 1, 2, 2, 2}), ones({1, 1, 2, 2, 2}))", "tensor{{{{{8.0}}}}}")
            .cut("@conv")
            .sample("f32[1,2,4,5,4], f32[3,2,2,3,2], f32[3]")
            .sample("f32[1,2,3,3,4], f32[2,1,2,2,2], stride=2, pad_mode=\"pad\", padding=1, groups=2"));
    // A primitive for compiled programs: each image is clamped while it is in the cache.
    ops.add(
           "conv2d_relu(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, "
           "pad_mode: \"valid\"|\"same\"|\"pad\" = \"valid\", padding/pad: ints = 0, dilation: ints = 1, "
           "groups/group: int = 1)")
        .doc("Convolution as conv2d does it, with 0 in place of what is negative.")
        .example("conv2d_relu(tensor{{{{1.0, -2.0}}}}, ones({1, 1, 1, 1}))", "tensor{{{{1.0, 0.0}}}}")
        .infer(infer_conv)
        .expand(expand_conv_relu)
        .flops(conv_flops)
        .keeps_weight()
        .cut("@conv relu")
        .sample("f32[2,3,5,7], f32[4,3,3,2], f32[4], stride=2, pad_mode=\"same\"")
        .sample("f32[2,3,12,16], f32[6,3,3,3], f32[6]")
        .sample("f32[3,8,5,6], f32[5,8,1,1], f32[5]")
        .sample("f32[1,4,5,4], f32[6,2,3,3], pad_mode=\"pad\", padding={1, 2, 0, 1}, groups=2");
    // A primitive, because a program keeps this layout from one convolution to the next. The libraries compute in it,
    // and would otherwise convert to it and back in each convolution.
    ops.add(
           "conv2d_last(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, padding: ints = 0, "
           "dilation: ints = 1, groups: int = 1)")
        .doc(
            "Convolution of (batch, height, width, channels), with a result of that order; everything else is as "
            "in conv2d.")
        .example("conv2d_last(tensor{{{{1.0, 2.0}, {3.0, 4.0}}}}, ones({1, 2, 1, 1}))", "tensor{{{{3.0}, {7.0}}}}")
        .infer([](const Call& c) -> Types {
            const Shape s = convolution_of_last(c).output_shape();
            return checked_type(c, c.dtype, {s[0], s[2], s[3], s[1]});
        })
        .expand(expand_conv_last)
        .strided()
        .flops(conv_flops)
        .keeps_weight()
        .cut("@conv last")
        .sample("f32[2,5,7,3], f32[4,3,3,2], f32[4], stride=2, padding={1, 0, 0, 1}")
        .sample("f32[1,5,4,4], f32[6,2,3,3], padding=1, groups=2")
        .sample("f32[2,6,5,2], f32[1,2,2,2], dilation={2, 1}");
    // The gradients are primitives because a library computes them, by kernels that differ from the forward one.
    ops.add(
           "conv_input_grad(dout: float, weight: float, input_size: ints, stride: ints, padding: ints, "
           "dilation: ints, groups: int)")
        .doc(
            "Gradient of a convolution with respect to its input, whose shape is input_size; also the transposed "
            "convolution.")
        .example("conv_input_grad(tensor{{{1.0, 10.0}}}, tensor{{{1.0, -1.0}}}, {1, 1, 3}, 1, 0, 1, 1)",
                 "tensor{{{1.0, 9.0, -10.0}}}")
        .infer(
            [](const Call& c) -> Types { return checked_type(c, c.dtype, convolution_of_input_grad(c).input_shape()); })
        .grad(input_grad_grad)
        .batched(batch::conv_input_grad)
        .flops(input_grad_flops)
        .keeps_weight()
        .cut("@conv_input_grad")
        .sample("f32[2,4,3,2], f32[4,3,3,2], {2, 3, 5, 3}, 1, 0, 1, 1")
        .sample("f32[1,4,2,3], f32[4,1,2,2], {1, 2, 4, 5}, 2, {0, 1, 1, 0}, 1, 2");
    ops.add(
           "conv_weight_grad(input: float, dout: float, weight_size: ints, stride: ints, padding: ints, "
           "dilation: ints, groups: int)")
        .doc("Gradient of a convolution with respect to its weight, whose shape is weight_size.")
        .example("conv_weight_grad(tensor{{{1.0, 2.0, 3.0}}}, tensor{{{1.0, 10.0}}}, {1, 1, 2}, 1, 0, 1, 1)",
                 "tensor{{{21.0, 32.0}}}")
        .infer([](const Call& c) -> Types {
            return checked_type(c, c.dtype, convolution_of_weight_grad(c).weight_shape());
        })
        .grad(weight_grad_grad)
        .batched(batch::conv_weight_grad)
        .flops(weight_grad_flops)
        .keeps_weight()
        .cut("@conv_weight_grad")
        .sample("f32[2,3,5,3], f32[2,4,3,2], {4, 3, 3, 2}, 1, 0, 1, 1")
        .sample("f32[1,2,4,5], f32[1,4,2,3], {4, 1, 2, 2}, 2, {0, 1, 1, 0}, 1, 2");
    ops.add(
           "conv_transpose1d(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, padding: ints = 0, "
           "output_padding: ints = 0, groups/group: int = 1, dilation: ints = 1)")
        .doc("Transposed convolution over the last axis; weight is (channels, outputs / groups, kernel).")
        .example("conv_transpose1d(tensor{{{1.0, 10.0}}}, tensor{{{1.0, -1.0}}})", "tensor{{{1.0, 9.0, -10.0}}}")
        .expand(expand_transpose)
        .sample("f32[2,4,5], f32[4,2,3], f32[2], stride=2, padding=1, output_padding=1")
        .sample("f32[1,2,3], f32[2,2,2], dilation=2");
    ops.add(
           "conv_transpose2d(input/x: float, weight: float, bias: float? = nil, stride: ints = 1, padding: ints = 0, "
           "output_padding: ints = 0, groups/group: int = 1, dilation: ints = 1)")
        .doc("Transposed convolution over the last two axes; weight is (channels, outputs / groups, height, width).")
        .example("conv_transpose2d(tensor{{{{2.0}}}}, ones({1, 1, 1, 2}))", "tensor{{{{2.0, 2.0}}}}")
        .expand(expand_transpose)
        .sample("f32[2,4,3,4], f32[4,2,3,3], f32[2], stride={2, 1}, padding=1")
        .sample("f32[1,4,2,3], f32[4,1,2,3], groups=2, dilation=2")
        .sample("f32[1,2,2,3], f32[2,2,2,2], f32[2], padding=1, output_padding=2, dilation=3");
    ops.add(
           "conv_transpose3d(input/x/inputs: float, weight: float, bias: float? = nil, stride: ints = 1, "
           "padding: ints = 0, output_padding: ints = 0, groups/group: int = 1, dilation: ints = 1)")
        .alias("conv3d_transpose")
        .doc("Transposed convolution over the last three axes.")
        .example("conv_transpose3d(ones({1, 1, 1, 1, 1}), ones({1, 1, 1, 1, 2}))", "tensor{{{{{1.0, 1.0}}}}}")
        .expand(expand_transpose)
        .sample("f32[1,2,2,3,2], f32[2,2,2,2,3], f32[2], stride=2")
        .sample("f32[1,2,2,2,3], f32[2,1,2,2,2], groups=2, padding=1");
}

}  // namespace lunaria
