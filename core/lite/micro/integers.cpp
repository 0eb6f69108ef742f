// Products, convolutions and sums of 8-bit integers: the bits are those of core/lite/kernels/integer.h, whose steps
// these follow one by one.
#include <cmath>

#include "core/lite/micro/epilogue.h"
#include "core/lite/micro/weights.h"
#include "core/lite/micro/windows.h"

namespace lunaria::lite::micro {

namespace {

using kernels::ConvolutionShape;

bool is_byte(DType t) { return t == DType::i8 || t == DType::u8; }

// `text - zero` without two signs in a row.
std::string less(const std::string& text, int64_t zero) {
    if (zero == 0) return text;
    return zero < 0 ? str("(", text, " + ", -zero, ")") : str("(", text, " - ", zero, ")");
}
std::string real(const std::string& text, int64_t zero) { return str("(float)", less(text, zero)); }

void write_quantize(const StepForm& form) {
    form.demand(form.in.size() == 1 && form.out.size() == 1 && form.in[0].dtype == DType::f32 &&
                    is_byte(form.out[0].dtype) && form.in[0].is_dense() && form.out[0].is_dense() &&
                    form.in[0].size() == form.out[0].size(),
                "its operands do not fit");
    const std::string inverse = literal(1.0f / form.single("scale", 1));
    Lines to;
    to.set_depth(1);
    to.count("i", form.out[0].size());
    to.line("const float scaled = x[i] * ", inverse, ";");
    to.line("const float f = scaled == scaled ? scaled : 0.0f;");
    to.line("y[i] = ", rounded(form, form.out[0].dtype), ";");
    to.close_to(1);
    form.call("quantize", {form.read("x", form.in[0]), form.written("y", form.out[0])}, to.take());
}

void write_dequantize(const StepForm& form) {
    form.demand(form.in.size() == 1 && form.out.size() == 1 && form.out[0].dtype == DType::f32 &&
                    is_byte(form.in[0].dtype) && form.in[0].is_dense() && form.out[0].is_dense() &&
                    form.in[0].size() == form.out[0].size(),
                "its operands do not fit");
    Lines to;
    to.set_depth(1);
    to.line("for (int i = 0; i < ", form.out[0].size(), "; ++i) y[i] = ", real("x[i]", form.integer("zero")), " * ",
            literal(form.single("scale", 1)), ";");
    form.call("dequantize", {form.read("x", form.in[0]), form.written("y", form.out[0])}, to.take());
}

void write_sum(const StepForm& form) {
    form.demand(form.in.size() == 2 && form.out.size() == 1, "it lacks operands");
    const Operand &a = form.in[0], &b = form.in[1], &y = form.out[0];
    form.demand(is_byte(y.dtype) && a.dtype == y.dtype && b.dtype == y.dtype && a.is_dense() && b.is_dense() &&
                    y.is_dense() && a.size() == y.size() && b.size() == y.size(),
                "its operands do not fit");
    Lines to;
    to.set_depth(1);
    to.count("i", y.size());
    to.line("const float first = ", real("a[i]", form.integer("a_zero")), " * ",
            literal(form.single("a_multiplier", 1)), ";");
    to.line("const float second = ", real("b[i]", form.integer("b_zero")), " * ",
            literal(form.single("b_multiplier", 1)), ";");
    to.line("const float f = first + second;");
    to.line("y[i] = ", rounded(form, y.dtype), ";");
    to.close_to(1);
    form.call("sum", {form.read("a", a), form.read("b", b), form.written("y", y)}, to.take());
}

void write_product(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1 && form.in[1].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &w = form.in[1], &y = form.out[0];
    const int64_t k = form.integer("k"), n = form.integer("n");
    form.demand(k > 0 && n > 0 && x.rank() > 0 && x.shape.back() == k && x.is_dense() && is_byte(x.dtype) &&
                    y.is_dense() && y.size() == x.size() / k * n,
                "its operands do not fit");
    const int64_t m = x.size() / k;
    const std::string weight = form.program.array_of(w.value, str("product ", k, " ", n), [&] {
        const auto plain = plain_integer_product(k, n, form.elements<std::byte>(w));
        form.demand(plain.has_value(), "its weight cannot be read");
        return weight_array(*plain, str(n, " rows of ", k));
    });
    const IntegerEnd end(form, n);
    std::vector<Parameter> parameters{form.read("x", x), form.array("w", DType::i8, weight)};
    end.add_parameters(parameters);
    parameters.push_back(form.written("y", y));
    Lines to;
    to.set_depth(1);
    if (m != 1) to.count("i", m);
    to.count("j", n);
    to.line("int32_t sum = ", end.start("j"), ";");
    const std::string from = m == 1 ? "x[k]" : str("x[", Index().add("i", k).text(), " + k]");
    to.line("for (int k = 0; k < ", k, "; ++k) sum += ", less(from, form.integer("x_zero")), " * w[j * ", k, " + k];");
    end.write(to, "j", m == 1 ? "j" : Index().add("i", n).add("j", 1).text());
    to.close_to(1);
    form.call(form.step.label.empty() ? "product" : form.step.label, parameters, to.take());
}

void write_convolution(const StepForm& form) {
    form.demand(form.in.size() >= 2 && form.out.size() == 1 && form.in[1].is_there(), "it lacks operands");
    const Operand &x = form.in[0], &w = form.in[1], y = convolution_result(form);
    form.demand(is_byte(x.dtype), "its operand is not of 8-bit integers");
    const ConvolutionShape s = convolution_shape(form, x, y);
    const std::string weight = form.program.array_of(w.value, str("convolution ", s.groups), [&] {
        const auto plain = plain_integer_convolution(s, form.elements<std::byte>(w));
        form.demand(plain.has_value(), "its weight cannot be read");
        return convolution_array(s, *plain);
    });
    const IntegerEnd end(form, s.out_channels);
    std::vector<Parameter> parameters{form.read("x", x), form.array("w", DType::i8, weight)};
    end.add_parameters(parameters);
    parameters.push_back(form.written("y", form.out[0]));
    Lines to;
    to.set_depth(1);
    open_convolution(form, to, s);
    to.line("int32_t sum = ", end.start("o"), ";");
    const int before = to.depth();
    const FactorIndices at = open_factors(to, s);
    to.line("sum += ", less(str("x[", at.picture, "]"), form.integer("x_zero")), " * w[", at.weight, "];");
    to.close_to(before);
    end.write(to, "o", result_pixel(s).add("o", 1).text());
    close_convolution(form, to, s);
    form.call(form.step.label.empty() ? "convolution" : form.step.label, parameters, to.take());
}

constexpr StepKind kIntegersKinds[] = {{"quantize", write_quantize},
                                       {"dequantize", write_dequantize},
                                       {"integer_sum", write_sum},
                                       {"integer_product", write_product},
                                       {"integer_convolution", write_convolution}};

}  // namespace

std::span<const StepKind> integer_kinds() { return kIntegersKinds; }

}  // namespace lunaria::lite::micro
