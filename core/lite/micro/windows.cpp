#include "core/lite/micro/windows.h"

#include "core/lite/micro/pooled.h"
#include "core/lite/micro/weights.h"

namespace lunaria::lite::micro {

using kernels::ConvolutionShape;

namespace {

constexpr const char *kOut[] = {"oz", "oy", "ox"}, *kTap[] = {"kz", "ky", "kx"}, *kIn[] = {"iz", "iy", "ix"};

void read_three(const StepForm& form, std::string_view name, int64_t least, int64_t (&to)[3]) {
    const std::vector<int64_t> list = form.integers(name);
    form.demand(list.size() <= 3, str("its attribute ", name, " has more than three numbers"));
    for (size_t i = 0; i < list.size(); ++i) {
        form.demand(list[i] >= least && list[i] < (1 << 20), str("its attribute ", name, " is out of range"));
        to[3 - list.size() + i] = list[i];
    }
}

// The place in the picture of the current tap, before it is known to lie there.
Index place(const ConvolutionShape& s, int axis) {
    Index index;
    if (s.out[axis] != 1) index.add(kOut[axis], s.stride[axis]);
    if (s.kernel[axis] != 1) index.add(kTap[axis], s.dilation[axis]);
    index.add(-s.pad[axis]);
    return index;
}
bool is_inside(const ConvolutionShape& s, int axis) {
    const int64_t last = (s.out[axis] - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] - s.pad[axis];
    return s.pad[axis] == 0 && last < s.in[axis];
}
// Whether the picture has one element along the axis, which every tap reads.
bool is_flat(const ConvolutionShape& s, int axis) {
    return s.in[axis] == 1 && s.kernel[axis] == 1 && s.out[axis] == 1 && s.pad[axis] == 0;
}

}  // namespace

ConvolutionShape window_shape(const StepForm& form, const Operand& x, const Operand& y) {
    ConvolutionShape s;
    const size_t rank = x.rank();
    form.demand(rank >= 3 && rank <= 5 && y.rank() == rank && x.is_dense() && y.is_dense() && x.shape[0] == y.shape[0],
                "its operands do not fit");
    s.batch = x.shape[0];
    s.channels = x.shape.back();
    s.out_channels = y.shape.back();
    for (size_t i = 1; i + 1 < rank; ++i) {
        s.in[4 - rank + i] = x.shape[i];
        s.out[4 - rank + i] = y.shape[i];
    }
    read_three(form, "kernel", 1, s.kernel);
    read_three(form, "stride", 1, s.stride);
    read_three(form, "dilation", 1, s.dilation);
    read_three(form, "pad", 0, s.pad);
    return s;
}

ConvolutionShape convolution_shape(const StepForm& form, const Operand& x, const Operand& y) {
    ConvolutionShape s = window_shape(form, x, y);
    s.groups = form.integer("groups", 1);
    s.transposed = form.integer("transposed") != 0;
    form.demand(s.groups >= 1 && s.channels % s.groups == 0 && s.out_channels % s.groups == 0,
                "its groups do not divide its channels");
    return s;
}

void open_pixels(Lines& to, const ConvolutionShape& s) {
    if (s.batch != 1) to.count("n", s.batch);
    for (int axis = 0; axis < 3; ++axis)
        if (s.out[axis] != 1) to.count(kOut[axis], s.out[axis]);
}

Operand convolution_result(const StepForm& form) {
    Operand y = form.out[0];
    if (!form.has(kPooled)) return y;
    y.shape = form.integers(kPooled);
    y.strides.assign(y.rank(), 1);
    for (size_t axis = y.rank(); axis-- > 1;) y.strides[axis - 1] = y.strides[axis] * y.shape[axis];
    return y;
}

void open_convolution(const StepForm& form, Lines& to, const ConvolutionShape& s) {
    if (!form.has(kPooled)) {
        open_pixels(to, s);
        to.count("o", s.out_channels);
        return;
    }
    if (s.batch != 1) to.count("n", s.batch);
    to.count("o", s.out_channels);
    to.line("float total = 0.0f;");
    ConvolutionShape one = s;
    one.batch = 1;
    open_pixels(to, one);
}

void close_convolution(const StepForm& form, Lines& to, const ConvolutionShape& s) {
    if (form.has(kPooled)) {
        to.close_to(s.batch != 1 ? 3 : 2);
        Index place;
        if (s.batch != 1) place.add("n", s.out_channels);
        to.line("y[", place.add("o", 1).text(), "] = total / ",
                literal(static_cast<float>(s.out[0] * s.out[1] * s.out[2])), ";");
    }
    to.close_to(1);
}

void open_taps(Lines& to, const ConvolutionShape& s) {
    for (int axis = 0; axis < 3; ++axis) {
        if (s.kernel[axis] != 1) to.count(kTap[axis], s.kernel[axis]);
        if (s.transposed) {
            // The pixel whose tap this is, if there is one.
            Index index;
            if (s.out[axis] != 1) index.add(kOut[axis], 1);
            if (s.kernel[axis] != 1) index.add(kTap[axis], -s.dilation[axis]);
            index.add(s.pad[axis]);
            const int64_t stride = s.stride[axis];
            const std::string from = stride == 1 ? kIn[axis] : str(kIn[axis], "_up");
            if (is_flat(s, axis) && stride == 1) continue;
            to.line("const int ", from, " = ", index.text(), ";");
            to.line("if (", from, " < 0 || ", from, " >= ", s.in[axis] * stride,
                    stride == 1 ? "" : str(" || ", from, " % ", stride, " != 0"), ") continue;");
            if (stride != 1) to.line("const int ", kIn[axis], " = ", from, " / ", stride, ";");
        } else if (!is_inside(s, axis)) {
            to.line("const int ", kIn[axis], " = ", place(s, axis).text(), ";");
            to.line("if (", kIn[axis], " < 0 || ", kIn[axis], " >= ", s.in[axis], ") continue;");
        }
    }
}

Index picture_pixel(const ConvolutionShape& s) {
    Index index;
    int64_t step = s.channels, steps[3];
    for (int axis = 2; axis >= 0; --axis) {
        steps[axis] = step;
        step *= s.in[axis];
    }
    if (s.batch != 1) index.add("n", step);
    for (int axis = 0; axis < 3; ++axis) {
        if (s.transposed ? !(is_flat(s, axis) && s.stride[axis] == 1) : !is_inside(s, axis)) {
            index.add(kIn[axis], steps[axis]);
        } else if (!s.transposed) {
            if (s.out[axis] != 1) index.add(kOut[axis], s.stride[axis] * steps[axis]);
            if (s.kernel[axis] != 1) index.add(kTap[axis], s.dilation[axis] * steps[axis]);
        }
    }
    return index;
}

Index result_pixel(const ConvolutionShape& s) {
    Index index;
    int64_t step = s.out_channels, steps[3];
    for (int axis = 2; axis >= 0; --axis) {
        steps[axis] = step;
        step *= s.out[axis];
    }
    if (s.batch != 1) index.add("n", step);
    for (int axis = 0; axis < 3; ++axis)
        if (s.out[axis] != 1) index.add(kOut[axis], steps[axis]);
    return index;
}

void add_tap(Index& index, const ConvolutionShape& s, int64_t factor) {
    int64_t step = factor, steps[3];
    for (int axis = 2; axis >= 0; --axis) {
        steps[axis] = step;
        step *= s.kernel[axis];
    }
    for (int axis = 0; axis < 3; ++axis)
        if (s.kernel[axis] != 1) index.add(kTap[axis], steps[axis]);
}

FactorIndices open_factors(Lines& to, const ConvolutionShape& s) {
    open_taps(to, s);
    Index from = picture_pixel(s), with;
    if (is_by_channel(s)) {
        add_tap(with, s, s.channels);
        return {from.add("o", 1).text(), with.add("o", 1).text()};
    }
    const int64_t depth = s.channels / s.groups;
    if (s.groups > 1) from.add(str("o / ", s.out_channels / s.groups), depth);
    with.add("o", s.kernel[0] * s.kernel[1] * s.kernel[2] * depth);
    add_tap(with, s, depth);
    if (depth > 1) {
        to.count("c", depth);
        from.add("c", 1), with.add("c", 1);
    }
    return {from.text(), with.text()};
}

bool is_inside(const ConvolutionShape& s) { return is_inside(s, 0) && is_inside(s, 1) && is_inside(s, 2); }

}  // namespace lunaria::lite::micro
