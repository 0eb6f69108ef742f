// Pooling of floats and 8-bit integers, channels-last.
#include <algorithm>

#include "core/lite/micro/epilogue.h"
#include "core/lite/micro/windows.h"

namespace lunaria::lite::micro {

namespace {

using kernels::ConvolutionShape;

ConvolutionShape pool_shape(const StepForm& form) {
    form.demand(form.in.size() == 1 && form.out.size() == 1, "it lacks operands");
    const Operand &x = form.in[0], &y = form.out[0];
    form.demand(x.dtype == y.dtype && (x.dtype == DType::f32 || x.dtype == DType::i8 || x.dtype == DType::u8) &&
                    x.rank() > 0 && y.rank() > 0 && x.shape.back() == y.shape.back(),
                "its operands do not fit");
    return window_shape(form, x, y);
}

void write_max(const StepForm& form) {
    const ConvolutionShape s = pool_shape(form);
    const DType type = form.in[0].dtype;
    Lines to;
    to.set_depth(1);
    open_pixels(to, s);
    to.count("c", s.channels);
    to.line(type_name(type), " best = ", type == DType::f32 ? "-INFINITY" : type == DType::i8 ? "INT8_MIN" : "0", ";");
    const int before = to.depth();
    open_taps(to, s);
    to.line("const ", type_name(type), " v = x[", picture_pixel(s).add("c", 1).text(), "];");
    to.line("if (v > best", type == DType::f32 ? " || v != v" : "", ") best = v;");
    to.close_to(before);
    to.line("y[", result_pixel(s).add("c", 1).text(), "] = best;");
    to.close_to(1);
    form.call(form.step.label.empty() ? "max_pool" : form.step.label,
              {form.read("x", form.in[0]), form.written("y", form.out[0])}, to.take());
}

// The number of elements of each window, where it is the same for all; otherwise 0.
int64_t size_of_windows(const StepForm& form, const ConvolutionShape& s) {
    if (const int64_t divisor = form.integer("divisor"); divisor > 0) return divisor;
    int64_t after[3];
    std::copy(std::begin(s.pad), std::end(s.pad), after);
    const std::vector<int64_t> given = form.integers("pad_after");
    for (size_t i = 0; i < given.size() && i < 3; ++i) after[3 - given.size() + i] = given[i];
    const bool counts_pad = form.integer("count_include_pad", 1) != 0;
    int64_t size = 1;
    for (int axis = 0; axis < 3; ++axis) {
        const int64_t end = (s.out[axis] - 1) * s.stride[axis] - s.pad[axis] + s.kernel[axis] * s.dilation[axis];
        const bool is_whole =
            counts_pad ? end <= s.in[axis] + after[axis] : s.pad[axis] == 0 && end - s.dilation[axis] < s.in[axis];
        if (!is_whole) {
            form.demand(!counts_pad, "windows that end behind the padding are not supported in C");
            return 0;
        }
        size *= s.kernel[axis];
    }
    return size;
}

void write_average(const StepForm& form) {
    const ConvolutionShape s = pool_shape(form);
    const int64_t size = size_of_windows(form, s);
    const DType type = form.in[0].dtype;
    const bool is_float = type == DType::f32;
    Lines to;
    to.set_depth(1);
    open_pixels(to, s);
    to.count("c", s.channels);
    to.line(is_float ? "float sum = 0.0f;" : "int32_t sum = 0;");
    if (size == 0) to.line("int count = 0;");
    const int before = to.depth();
    open_taps(to, s);
    const int64_t zero = form.integer("x_zero");
    to.line("sum += x[", picture_pixel(s).add("c", 1).text(), "]",
            is_float || zero == 0 ? ""
            : zero < 0            ? str(" + ", -zero)
                                  : str(" - ", zero),
            ";");
    if (size == 0) to.line("++count;");
    to.close_to(before);
    const std::string place = result_pixel(s).add("c", 1).text();
    const std::string count = size == 0 ? "(float)count" : literal(static_cast<float>(size));
    if (is_float) {
        to.line("y[", place, "] = sum / ", count, ";");
    } else {
        const float multiplier = form.single("multiplier", 1);
        if (size == 0) to.line("const float share = ", literal(multiplier), " / ", count, ";");
        to.line("const float f = (float)sum * ", size == 0 ? "share" : literal(multiplier / static_cast<float>(size)),
                ";");
        to.line("y[", place, "] = ", rounded(form, type), ";");
    }
    to.close_to(1);
    form.call(form.step.label.empty() ? "average_pool" : form.step.label,
              {form.read("x", form.in[0]), form.written("y", form.out[0])}, to.take());
}

constexpr StepKind kKinds[] = {{"max_pool", write_max}, {"average_pool", write_average}};

}  // namespace

std::span<const StepKind> pool_kinds() { return kKinds; }

}  // namespace lunaria::lite::micro
