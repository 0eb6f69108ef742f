// Steps on 8-bit integers, by the kernels of core/lite/kernels/integer.h.
#include <algorithm>
#include <cmath>

#include "core/lite/kernels/integer.h"
#include "core/lite/runtime/elements.h"
#include "core/lite/runtime/product_form.h"

namespace lunaria::lite {

namespace {

using kernels::IntegerType;

bool is_byte(const Operand& o) {
    return o.is_there() && o.is_dense() && (o.dtype == DType::i8 || o.dtype == DType::u8);
}
IntegerType type_of(const Operand& o) { return o.dtype == DType::u8 ? IntegerType::u8 : IntegerType::s8; }

bool is_vector(const Operand& o, DType t, int64_t size) {
    return !o.is_there() || (o.dtype == t && o.is_dense() && o.size() == size);
}

// Operands from 2 on: bias, multiplier, residual, table, and for float results their bias.
bool read_end(const StepForm& form, int64_t columns, kernels::IntegerEpilogue& e, std::string& fault) {
    const Operand &y = form.out[0], &residual = form.operand(4), &table = form.operand(5);
    bool good = is_vector(form.operand(2), DType::i32, columns) && form.operand(3).is_there() &&
                is_vector(form.operand(3), DType::f32, columns) && is_vector(form.operand(6), DType::f32, columns);
    good = good &&
           (!residual.is_there() || (residual.dtype == y.dtype && residual.is_dense() && residual.size() == y.size()));
    good = good && (!table.is_there() || (table.is_dense() && table.size() * table.width() == 256));
    e.to_float = y.dtype == DType::f32;
    good = good && y.is_dense() && (e.to_float || is_byte(y));
    if (!fits(good, fault) || !read_activation(form, e.activation, e.alpha, e.beta, fault)) return false;
    e.type = type_of(y);
    e.zero = static_cast<int32_t>(form.integer("zero"));
    e.low = static_cast<int32_t>(form.integer("low", e.type == IntegerType::u8 ? 0 : -128));
    e.high = static_cast<int32_t>(form.integer("high", e.type == IntegerType::u8 ? 255 : 127));
    e.residual_row = columns;
    e.residual_zero = static_cast<int32_t>(form.integer("residual_zero"));
    e.residual_multiplier = static_cast<float>(form.number("residual_multiplier"));
    return true;
}
void set_pointers(kernels::IntegerEpilogue& e, const Call& call, size_t count) {
    auto at = [&](size_t i) { return i < count ? call.in[i] : nullptr; };
    e.bias = reinterpret_cast<const int32_t*>(at(2));
    e.multiplier = reinterpret_cast<const float*>(at(3));
    e.residual = at(4);
    e.table = at(5);
    e.float_bias = reinterpret_cast<const float*>(at(6));
}

std::unique_ptr<Work> prepare_product(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 4 && form.out.size() == 1, fault)) return nullptr;
    const Operand &x = form.in[0], &w = form.in[1], &y = form.out[0];
    kernels::IntegerProduct p;
    p.k = form.integer("k");
    p.n = form.integer("n");
    constexpr int64_t kMost = int64_t{1} << 31;
    if (!fits(is_byte(x) && p.k > 0 && p.n > 0 && p.k < kMost && p.n < kMost && x.rank() > 0 && x.shape.back() == p.k &&
                  w.is_there() && w.size() * w.width() >= kernels::integer_weight_bytes(p.k, p.n) &&
                  y.size() == x.size() / p.k * p.n,
              fault) ||
        !read_end(form, p.n, p.epilogue, fault))
        return nullptr;
    p.m = x.size() / p.k;
    p.a_row = p.k;
    p.c_row = p.n;
    p.type = type_of(x);
    p.a_zero = static_cast<int32_t>(form.integer("x_zero"));
    return work(
        [p, isa = form.isa, count = form.in.size()](const Call& call) {
            kernels::IntegerProduct now = p;
            now.a = call.in[0];
            now.b = call.in[1];
            now.c = call.out[0];
            set_pointers(now.epilogue, call, count);
            kernels::integer_product(isa, now, call.scratch, call.workers);
        },
        kernels::integer_product_scratch(p, form.workers));
}

std::unique_ptr<Work> prepare_convolution(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() >= 4 && form.out.size() == 1 && is_byte(form.in[0]), fault)) return nullptr;
    kernels::IntegerConvolution c;
    if (!read_convolution(form, c.shape, fault)) return nullptr;
    const Operand& w = form.in[1];
    const int64_t bytes = kernels::integer_convolution_weight_bytes(c.shape);
    if (!fits(bytes > 0 && w.size() * w.width() >= bytes, fault, "its weight does not fit") ||
        !read_end(form, c.shape.out_channels, c.epilogue, fault))
        return nullptr;
    c.type = type_of(form.in[0]);
    c.x_zero = static_cast<int32_t>(form.integer("x_zero"));
    return work(
        [c, isa = form.isa, count = form.in.size()](const Call& call) {
            kernels::IntegerConvolution now = c;
            now.x = call.in[0];
            now.weight = call.in[1];
            now.y = call.out[0];
            set_pointers(now.epilogue, call, count);
            kernels::integer_convolution(isa, now, call.scratch, call.workers);
        },
        kernels::integer_convolution_scratch(c, form.workers));
}

std::unique_ptr<Work> prepare_sum(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 2 && form.out.size() == 1 && is_byte(form.in[0]) && is_byte(form.in[1]) &&
                  is_byte(form.out[0]) && form.in[0].dtype == form.out[0].dtype &&
                  form.in[1].dtype == form.out[0].dtype && form.in[0].size() == form.out[0].size() &&
                  form.in[1].size() == form.out[0].size(),
              fault))
        return nullptr;
    kernels::IntegerSum s;
    s.type = type_of(form.out[0]);
    s.a_zero = static_cast<int32_t>(form.integer("a_zero"));
    s.b_zero = static_cast<int32_t>(form.integer("b_zero"));
    s.zero = static_cast<int32_t>(form.integer("zero"));
    s.low = static_cast<int32_t>(form.integer("low", s.type == IntegerType::u8 ? 0 : -128));
    s.high = static_cast<int32_t>(form.integer("high", s.type == IntegerType::u8 ? 255 : 127));
    s.a_multiplier = static_cast<float>(form.number("a_multiplier", 1));
    s.b_multiplier = static_cast<float>(form.number("b_multiplier", 1));
    return work([s, isa = form.isa, all = form.out[0].size()](const Call& call) {
        share(call.workers, all, 32768, [&](int64_t begin, int64_t end, int) {
            kernels::IntegerSum now = s;
            now.count = end - begin;
            now.a = call.in[0] + begin;
            now.b = call.in[1] + begin;
            now.y = call.out[0] + begin;
            kernels::integer_sum(isa, now);
        });
    });
}

template <bool Back>
std::unique_ptr<Work> prepare_quantize(const StepForm& form, std::string& fault) {
    if (!fits(form.in.size() == 1 && form.out.size() == 1, fault)) return nullptr;
    const Operand &x = form.in[0], &y = form.out[0], &bytes = Back ? x : y, &floats = Back ? y : x;
    if (!fits(is_byte(bytes) && floats.is_there() && floats.is_dense() && floats.dtype == DType::f32 &&
                  x.size() == y.size(),
              fault))
        return nullptr;
    const auto scale = static_cast<float>(form.number("scale", 1));
    const auto zero = static_cast<int32_t>(form.integer("zero"));
    return work([=, isa = form.isa, type = type_of(bytes), all = x.size()](const Call& call) {
        share(call.workers, all, 16384, [&](int64_t begin, int64_t end, int) {
            if constexpr (Back)
                kernels::dequantize(isa, end - begin, call.in[0] + begin, scale, zero, type,
                                    reinterpret_cast<float*>(call.out[0]) + begin);
            else
                kernels::quantize(isa, end - begin, reinterpret_cast<const float*>(call.in[0]) + begin, scale, zero,
                                  type, call.out[0] + begin);
        });
    });
}

constexpr StepKind kIntegerStepsKinds[] = {{"integer_product", prepare_product},
                                           {"integer_convolution", prepare_convolution},
                                           {"integer_sum", prepare_sum},
                                           {"quantize", prepare_quantize<false>},
                                           {"dequantize", prepare_quantize<true>}};

}  // namespace

std::span<const StepKind> integer_kinds() { return kIntegerStepsKinds; }

}  // namespace lunaria::lite
