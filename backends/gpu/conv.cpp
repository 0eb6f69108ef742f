// GPU kernels: convolutions and their two gradients, as products of matrices whose elements are picked from the tensors
// on demand.
#include "core/ops/conv.h"

#include <array>
#include <memory>

#include "backends/gpu/library_conv.h"
#include "backends/gpu/operators.h"
#include "backends/gpu/product.h"
#include "core/base/error.h"

namespace lunaria::gpu {

namespace {

using Kind = ConvolutionKind;

using Axes = std::array<Number, Window::kAxes>;

// The data for picking the matrices' elements.
struct Picker {
    Elements first, second, out, bias;
    Number in_channels, out_channels, group_in, group_out;
    Axes in, outs;
    Number in_size, out_size, kernel_size;
    std::shared_ptr<Number> group = std::make_shared<Number>();
    Window w;

    // The place on each axis for a number that counts all places.
    Axes places(Number i, const Axes& sizes) const {
        Axes at{};
        for (size_t axis = Window::kAxes; axis-- > static_cast<size_t>(w.first());) {
            const bool last = axis == static_cast<size_t>(w.first());
            at[axis] = last ? i : remainder(i, sizes[axis]);
            if (!last) i = quotient(i, sizes[axis]);
        }
        return at;
    }
    Axes kernel_places(Number i) const {
        Axes at{};
        for (size_t axis = Window::kAxes; axis-- > static_cast<size_t>(w.first());) {
            at[axis] = remainder(i, w.kernel[axis]);
            i = quotient(i, w.kernel[axis]);
        }
        return at;
    }
    // The element of the plane at these places, 0 outside.
    Number element(const Elements& from, Number plane, const Axes& at, Number inside, const Axes& sizes) const {
        Writer& writer = Writer::current();
        const Variable v = writer.variable(writer.constant(from.dtype, 0, 0));
        Number i = plane;
        for (size_t axis = static_cast<size_t>(w.first()); axis < Window::kAxes; ++axis) {
            inside = inside & (at[axis] >= 0) & (at[axis] < sizes[axis]);
            i = i * sizes[axis] + at[axis];
        }
        writer.when(inside, [&] { v.set(from.get(i)); });
        return v.get();
    }
    // The element of the input that a place of the kernel meets for a place of the output.
    Number from_input(const Elements& x, Number image, Number channel, const Axes& kernel, const Axes& place) const {
        Axes at{};
        for (size_t axis = static_cast<size_t>(w.first()); axis < Window::kAxes; ++axis)
            at[axis] = place[axis] * w.stride[axis] + kernel[axis] * w.dilation[axis] - w.before[axis];
        const Number plane = image * in_channels + *group * group_in + channel;
        return element(x, plane, at, Writer::current().constant(DType::boolean, 1, 1), in);
    }
    // The element of the output for which a place of the kernel meets the place of the input.
    Number from_output(const Elements& y, Number image, Number channel, const Axes& kernel, const Axes& place) const {
        Axes at{};
        Number inside = Writer::current().constant(DType::boolean, 1, 1);
        for (size_t axis = static_cast<size_t>(w.first()); axis < Window::kAxes; ++axis) {
            const Number start = place[axis] + w.before[axis] - kernel[axis] * w.dilation[axis];
            if (w.stride[axis] == 1) {
                at[axis] = start;
                continue;
            }
            // Checked first: the place must not be negative.
            const Number from = select(start < 0, like(start, 0), start);
            at[axis] = quotient(from, w.stride[axis]);
            inside = inside & (start >= 0) & (remainder(from, w.stride[axis]) == 0);
        }
        return element(y, image * out_channels + *group * group_out + channel, at, inside, outs);
    }
};

Picker picker(Writer& w, const Convolution& conv, DType t, bool bias) {
    Picker p;
    p.w = conv.window;
    p.first = w.tensor(t);
    p.second = w.tensor(t);
    p.out = w.tensor(t);
    if (bias) p.bias = w.tensor(t);
    for (Number* n : {&p.in_channels, &p.out_channels, &p.group_in, &p.group_out}) *n = w.size();
    for (Axes* axes : {&p.in, &p.outs})
        for (size_t i = static_cast<size_t>(p.w.first()); i < Window::kAxes; ++i) (*axes)[i] = w.size();
    for (Number* n : {&p.in_size, &p.out_size}) *n = w.size();
    p.kernel_size = w.index(p.w.kernel_size());
    return p;
}

ProductElements forward(const Picker& p) {
    ProductElements e;
    e.a = [=](Number row, Number k) {
        return p.second.get((*p.group * p.group_out + row) * (p.group_in * p.kernel_size) + k);
    };
    e.b = [=](Number k, Number column) {
        const Number image = quotient(column, p.out_size), place = remainder(column, p.out_size);
        return p.from_input(p.first, image, quotient(k, p.kernel_size), p.kernel_places(remainder(k, p.kernel_size)),
                            p.places(place, p.outs));
    };
    e.store = [=](Number row, Number column, Number v) {
        const Number channel = *p.group * p.group_out + row;
        if (p.bias.address.at) v += cast(p.bias.get(channel), v.dtype);
        const Number image = quotient(column, p.out_size), place = remainder(column, p.out_size);
        p.out.set((image * p.out_channels + channel) * p.out_size + place, cast(v, p.out.dtype));
    };
    return e;
}

// first: the gradient of the output, second: the weight.
ProductElements input_grad(const Picker& p) {
    ProductElements e;
    e.a = [=](Number row, Number k) {
        const Number channel = *p.group * p.group_out + quotient(k, p.kernel_size);
        return p.second.get((channel * p.group_in + row) * p.kernel_size + remainder(k, p.kernel_size));
    };
    e.b = [=](Number k, Number column) {
        const Number image = quotient(column, p.in_size), place = remainder(column, p.in_size);
        return p.from_output(p.first, image, quotient(k, p.kernel_size), p.kernel_places(remainder(k, p.kernel_size)),
                             p.places(place, p.in));
    };
    e.store = [=](Number row, Number column, Number v) {
        const Number image = quotient(column, p.in_size), place = remainder(column, p.in_size);
        p.out.set((image * p.in_channels + *p.group * p.group_in + row) * p.in_size + place, cast(v, p.out.dtype));
    };
    return e;
}

// first: the input, second: the gradient of the output.
ProductElements weight_grad(const Picker& p) {
    ProductElements e;
    e.a = [=](Number row, Number k) {
        const Number image = quotient(k, p.out_size), place = remainder(k, p.out_size);
        return p.second.get((image * p.out_channels + *p.group * p.group_out + row) * p.out_size + place);
    };
    e.b = [=](Number k, Number column) {
        const Number image = quotient(k, p.out_size), place = remainder(k, p.out_size);
        return p.from_input(p.first, image, quotient(column, p.kernel_size),
                            p.kernel_places(remainder(column, p.kernel_size)), p.places(place, p.outs));
    };
    e.store = [=](Number row, Number column, Number v) {
        p.out.set((*p.group * p.group_out + row) * (p.group_in * p.kernel_size) + column, cast(v, p.out.dtype));
    };
    return e;
}

Convolution geometry(Kind kind, const KernelCall& c) {
    const Call call(c.op, c.args, c.dtype);
    return kind == Kind::forward      ? convolution_of(call)
           : kind == Kind::input_grad ? convolution_of_input_grad(call)
                                      : convolution_of_weight_grad(call);
}

bool by_library(Launcher& launcher, Kind kind, const Convolution& conv, const KernelCall& c, bool bias) {
    auto address = [](const Tensor& t) { return reinterpret_cast<Address>(t.raw()); };
    return run_library_convolution(launcher, {.kind = kind,
                                              .geometry = conv,
                                              .dtype = c.dtype,
                                              .first = address(c.tensor(0)),
                                              .second = address(c.tensor(1)),
                                              .out = address(c.out[0]),
                                              .bias = bias ? address(c.tensor(2)) : 0});
}

template <Kind kKind>
bool convolve(Launcher& launcher, const KernelCall& c) {
    if (!is_float(c.dtype) || is_complex(c.dtype)) return false;
    const Convolution conv = geometry(kKind, c);
    const Window& w = conv.window;
    const bool bias = kKind == Kind::forward && c.has(2);
    if (by_library(launcher, kKind, conv, c, bias)) return true;
    const int64_t group_in = conv.in_channels / conv.groups, group_out = conv.out_channels / conv.groups;
    ProductShape s{.batches = conv.groups, .sum = is_half(c.dtype) ? DType::f32 : c.dtype};
    if (kKind == Kind::forward) {
        s.rows = group_out, s.columns = conv.batch * w.out_size(), s.depth = group_in * w.kernel_size();
    } else if (kKind == Kind::input_grad) {
        s.rows = group_in, s.columns = conv.batch * w.in_size(), s.depth = group_out * w.kernel_size();
    } else {
        s.rows = group_out, s.columns = group_in * w.kernel_size(), s.depth = conv.batch * w.out_size();
        s.b_along_depth = true;
    }
    Words words;
    words.tensor(c.tensor(0)).tensor(c.tensor(1)).tensor(c.out[0]);
    if (bias) words.tensor(c.tensor(2));
    words.size(conv.in_channels).size(conv.out_channels).size(group_in).size(group_out);
    const auto first = static_cast<size_t>(w.first());
    for (const Window::Sizes* sizes : {&w.in, &w.out})
        for (size_t i = first; i < Window::kAxes; ++i) words.size((*sizes)[i]);
    words.size(w.in_size()).size(w.out_size());
    std::string name = str("convolution ", static_cast<int>(kKind), ' ', name_of(c.dtype), bias ? " with bias" : "");
    for (size_t i = first; i < Window::kAxes; ++i)
        name += str(' ', w.kernel[i], ' ', w.stride[i], ' ', w.dilation[i], ' ', w.before[i]);
    return run_product(launcher, name, s, words, [&](Writer& writer) {
        const Picker p = picker(writer, conv, c.dtype, bias);
        ProductElements e = kKind == Kind::forward      ? forward(p)
                            : kKind == Kind::input_grad ? input_grad(p)
                                                        : weight_grad(p);
        e.a = [sum = s.sum, a = e.a](Number row, Number k) { return cast(a(row, k), sum); };
        e.b = [sum = s.sum, b = e.b](Number k, Number column) { return cast(b(k, column), sum); };
        e.begin = [group = p.group](Writer&, Number batch) { *group = batch; };
        return e;
    });
}

}  // namespace

void add_conv_kernels(KernelTable& table) {
    for (const char* op : {"conv1d", "conv2d", "conv3d"}) table.add_for_halves(op, convolve<Kind::forward>);
    table.add_for_halves("conv_input_grad", convolve<Kind::input_grad>);
    table.add_for_halves("conv_weight_grad", convolve<Kind::weight_grad>);
}

}  // namespace lunaria::gpu
