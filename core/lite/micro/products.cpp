// Products and convolutions of floats.
#include <algorithm>

#include "core/lite/micro/epilogue.h"
#include "core/lite/micro/weights.h"
#include "core/lite/micro/windows.h"

namespace lunaria::lite::micro {

namespace {

using kernels::ConvolutionMethod;
using kernels::ConvolutionShape;
using kernels::WeightType;

constexpr std::string_view kTypes[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};
constexpr std::string_view kMethods[] = {"direct", "winograd2", "winograd4", "depthwise"};

template <class T, size_t N>
T read_name(const StepForm& form, const std::string_view (&names)[N], std::string_view attribute) {
    const std::string_view name = form.text(attribute);
    const auto* const found = name.empty() ? names : std::ranges::find(names, name);
    form.demand(found != std::end(names), str("its ", attribute, " '", name, "' is not known"));
    return static_cast<T>(found - names);
}

std::vector<std::byte> bytes_of(const std::vector<float>& elements) {
    const auto* const first = reinterpret_cast<const std::byte*>(elements.data());
    return {first, first + elements.size() * sizeof(float)};
}

void write_product(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1 && form.in[1].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &w = form.in[1], &y = form.out[0];
    const int64_t k = form.integer("k"), n = form.integer("n");
    form.demand(k > 0 && n > 0 && x.rank() > 0 && x.shape.back() == k && x.is_dense() && x.dtype == DType::f32 &&
                    y.dtype == DType::f32 && y.is_dense() && y.size() == x.size() / k * n,
                "its operands do not fit");
    const int64_t m = x.size() / k;
    const auto type = read_name<WeightType>(form, kTypes, "type");
    const std::string weight = form.program.array_of(w.value, str("product ", k, " ", n), [&] {
        const auto plain = plain_product(type, k, n, form.elements<std::byte>(w));
        form.demand(plain.has_value(), "its weight cannot be read");
        return Array{{}, DType::f32, k * n, str(n, " rows of ", k), bytes_of(*plain)};
    });
    const FloatEnd end(form, 2, n);
    std::vector<Parameter> parameters{form.read("x", x), form.array("w", DType::f32, weight)};
    end.add_parameters(parameters);
    parameters.push_back(form.written("y", y));
    Lines to;
    to.set_depth(1);
    if (m != 1) to.count("i", m);
    to.count("j", n);
    to.line("float sum = 0.0f;");
    to.line("for (int k = 0; k < ", k, "; ++k) sum += x[", m == 1 ? "" : Index().add("i", k).text() + " + ",
            "k] * w[j * ", k, " + k];");
    end.write(to, "sum", "j", m == 1 ? "j" : Index().add("i", n).add("j", 1).text());
    to.close_to(1);
    form.call(form.step.label.empty() ? "product" : form.step.label, parameters, to.take());
}

void write_batched(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1, "it lacks operands");
    const Operand &a = form.in[0], &b = form.in[1], &y = form.out[0];
    const size_t rank = a.rank();
    bool fits = rank >= 2 && b.rank() == rank && y.rank() == rank && y.is_dense();
    for (const Operand* o : {&a, &b, &y}) fits = fits && o->dtype == DType::f32;
    for (size_t i = 0; fits && i + 2 < rank; ++i) fits = a.shape[i] == b.shape[i] && a.shape[i] == y.shape[i];
    fits = fits && a.shape[rank - 1] == b.shape[rank - 2] && y.shape[rank - 2] == a.shape[rank - 2] &&
           y.shape[rank - 1] == b.shape[rank - 1];
    form.demand(fits, "its operands do not fit");
    const FloatEnd end(form, 2, y.shape[rank - 1]);
    std::vector<Parameter> parameters{form.read("a", a), form.read("b", b)};
    end.add_parameters(parameters);
    parameters.push_back(form.written("y", y));
    Lines to;
    to.set_depth(1);
    Index from_a, from_b, at;
    for (size_t axis = 0; axis < rank; ++axis) {
        const std::string variable = axis + 2 == rank ? "i" : axis + 1 == rank ? "j" : str("n", axis);
        if (y.shape[axis] == 1 && axis + 1 != rank) continue;
        to.count(variable, y.shape[axis]);
        if (axis + 1 != rank) from_a.add(variable, a.strides[axis]);
        if (axis + 2 != rank) from_b.add(variable, b.strides[axis]);
        at.add(variable, y.strides[axis]);
    }
    from_a.add("k", a.strides[rank - 1]);
    from_b.add("k", b.strides[rank - 2]);
    to.line("float sum = 0.0f;");
    to.line("for (int k = 0; k < ", a.shape[rank - 1], "; ++k) sum += a[", from_a.text(), "] * b[", from_b.text(),
            "];");
    std::string sum = "sum";
    if (const float factor = form.single("factor", 1); factor != 1) {
        to.line("const float weighted = sum * ", literal(factor), ";");
        sum = "weighted";
    }
    end.write(to, sum, "j", at.text());
    to.close_to(1);
    form.call(form.step.label.empty() ? "batched_product" : form.step.label, parameters, to.take());
}

// (out_channels, taps, channels / groups); each channel for itself: (taps, channels).
std::vector<float> in_order_of_loops(const ConvolutionShape& s, const std::vector<float>& plain, bool is_depthwise) {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], depth = s.channels / s.groups,
                  n = s.out_channels / s.groups;
    std::vector<float> result(plain.size());
    for (int64_t o = 0; o < s.out_channels; ++o)
        for (int64_t c = 0; c < depth; ++c)
            for (int64_t t = 0; t < taps; ++t) {
                const int64_t from =
                    s.transposed ? ((o / n * depth + c) * n + o % n) * taps + t : (o * depth + c) * taps + t;
                const int64_t to = is_depthwise ? t * s.channels + o : (o * taps + t) * depth + c;
                result[static_cast<size_t>(to)] = plain[static_cast<size_t>(from)];
            }
    return result;
}

void write_convolution(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1 && form.in[1].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &w = form.in[1], y = convolution_result(form);
    form.demand(x.dtype == DType::f32 && y.dtype == DType::f32, "its operands are no floats of 32 bits");
    ConvolutionShape s = window_shape(form, x, y);
    s.groups = form.integer("groups", 1);
    s.transposed = form.integer("transposed") != 0;
    form.demand(s.groups >= 1 && s.channels % s.groups == 0 && s.out_channels % s.groups == 0,
                "its groups do not divide its channels");
    const auto type = read_name<WeightType>(form, kTypes, "type");
    const auto method = read_name<ConvolutionMethod>(form, kMethods, "method");
    const int64_t depth = s.channels / s.groups, n = s.out_channels / s.groups;
    const bool is_depthwise = depth == 1 && n == 1 && s.groups > 1;
    const std::string weight =
        form.program.array_of(w.value, str("convolution ", s.groups, s.transposed ? " transposed" : ""), [&] {
            const auto plain = plain_convolution(s, method, type, form.elements<std::byte>(w));
            form.demand(plain.has_value(), "its weight cannot be read");
            const std::vector<float> ordered = in_order_of_loops(s, *plain, is_depthwise);
            const std::string window =
                str(s.kernel[0] == 1 ? "" : str(s.kernel[0], " x "), s.kernel[1], " x ", s.kernel[2]);
            return Array{{},
                         DType::f32,
                         static_cast<int64_t>(ordered.size()),
                         is_depthwise ? str(window, " taps of ", s.channels, " channels")
                                      : str(s.out_channels, " x ", window, " x ", depth),
                         bytes_of(ordered)};
        });
    const FloatEnd end(form, 2, s.out_channels);
    std::vector<Parameter> parameters{form.read("x", x), form.array("w", DType::f32, weight)};
    end.add_parameters(parameters);
    parameters.push_back(form.written("y", form.out[0]));
    Lines to;
    to.set_depth(1);
    open_convolution(form, to, s);
    to.line("float sum = 0.0f;");
    const int before = to.depth();
    open_taps(to, s);
    Index from = picture_pixel(s), with;
    if (is_depthwise) {
        add_tap(with, s, s.channels);
        to.line("sum += x[", from.add("o", 1).text(), "] * w[", with.add("o", 1).text(), "];");
    } else {
        if (s.groups > 1) from.add(str("o / ", n), depth);
        with.add("o", s.kernel[0] * s.kernel[1] * s.kernel[2] * depth);
        add_tap(with, s, depth);
        if (depth > 1) to.count("c", depth);
        if (depth > 1) from.add("c", 1), with.add("c", 1);
        to.line("sum += x[", from.text(), "] * w[", with.text(), "];");
    }
    to.close_to(before);
    end.write(to, "sum", "o", result_pixel(s).add("o", 1).text());
    close_convolution(form, to, s);
    form.call(form.step.label.empty() ? "convolution" : form.step.label, parameters, to.take());
}

constexpr StepKind kKinds[] = {
    {"product", write_product}, {"batched_product", write_batched}, {"convolution", write_convolution}};

}  // namespace

std::span<const StepKind> product_kinds() { return kKinds; }

}  // namespace lunaria::lite::micro
