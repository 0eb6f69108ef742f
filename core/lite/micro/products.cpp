// Products and convolutions of floats.
#include "core/lite/kernels/names.h"
#include "core/lite/micro/epilogue.h"
#include "core/lite/micro/weights.h"
#include "core/lite/micro/windows.h"

namespace lunaria::lite::micro {

namespace {

using kernels::ConvolutionMethod;
using kernels::ConvolutionShape;
using kernels::WeightType;

template <class T, size_t N>
T named(const StepForm& form, const std::string_view (&names)[N], std::string_view attribute) {
    T read{};
    const std::string_view name = form.text(attribute);
    form.demand(kernels::read_name(names, name, read), str("its ", attribute, " '", name, "' is not known"));
    return read;
}

void write_product(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1 && form.in[1].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &w = form.in[1], &y = form.out[0];
    const int64_t k = form.integer("k"), n = form.integer("n");
    form.demand(k > 0 && n > 0 && x.rank() > 0 && x.shape.back() == k && x.is_dense() && x.dtype == DType::f32 &&
                    y.dtype == DType::f32 && y.is_dense() && y.size() == x.size() / k * n,
                "its operands do not fit");
    const int64_t m = x.size() / k;
    const auto type = named<WeightType>(form, kernels::kWeightTypes, "type");
    const std::string weight = form.program.array_of(w.value, str("product ", k, " ", n), [&] {
        const auto plain = plain_product(type, k, n, form.elements<std::byte>(w));
        form.demand(plain.has_value(), "its weight cannot be read");
        return weight_array(*plain, str(n, " rows of ", k));
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

void write_convolution(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1 && form.in[1].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &w = form.in[1], y = convolution_result(form);
    form.demand(x.dtype == DType::f32 && y.dtype == DType::f32, "its operands are no floats of 32 bits");
    const ConvolutionShape s = convolution_shape(form, x, y);
    const auto type = named<WeightType>(form, kernels::kWeightTypes, "type");
    const auto method = named<ConvolutionMethod>(form, kernels::kConvolutionMethods, "method");
    const std::string weight =
        form.program.array_of(w.value, str("convolution ", s.groups, s.transposed ? " transposed" : ""), [&] {
            const auto plain = plain_convolution(s, method, type, form.elements<std::byte>(w));
            form.demand(plain.has_value(), "its weight cannot be read");
            return convolution_array(s, *plain);
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
    const FactorIndices at = open_factors(to, s);
    to.line("sum += x[", at.picture, "] * w[", at.weight, "];");
    to.close_to(before);
    end.write(to, "sum", "o", result_pixel(s).add("o", 1).text());
    close_convolution(form, to, s);
    form.call(form.step.label.empty() ? "convolution" : form.step.label, parameters, to.take());
}

constexpr StepKind kProductsKinds[] = {
    {"product", write_product}, {"batched_product", write_batched}, {"convolution", write_convolution}};

}  // namespace

std::span<const StepKind> product_kinds() { return kProductsKinds; }

}  // namespace lunaria::lite::micro
