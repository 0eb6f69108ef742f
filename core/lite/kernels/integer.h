// Products and convolutions of 8-bit integers with sums of 32 bits: the same bits with every instruction set.
//
// Real values are scale * (q - zero): activations s8 or u8 with one scale and zero, weights s8 with a scale for each
// output channel and zero 0. Zeros that pad a picture are the activation's zero. Sums are exact as long as k <=
// 131,072.
//
// The end of a product, by definition (the C99 that the micro writer makes does the same, step by step; every float
// operation is IEEE single, rounded to nearest even, and none is fused with another):
//   s = sum over k of (x - x_zero) * w, plus bias[j] if there is one         32-bit integers
//   f = float(s) * multiplier[j]
//   f = f + float(r - residual_zero) * residual_multiplier                   if there is a residual
//   f = min(max(f, float(low - zero)), float(high - zero))
//   q = nearest even integer of f, plus zero
//   q = table[q - (-128 for s8, 0 for u8)]                                   if there is a table
// The multiplier of column j is float(double(x_scale) * double(w_scale[j]) / double(y_scale)), the bias is
// nearest(b[j] / (x_scale * w_scale[j])); relu and its like are `low` and `high`; other activations are a table of 256
// entries. For float results: y = f + float_bias[j] after the second line, then the Activation of common.h.
#pragma once

#include "core/lite/kernels/convolution.h"

namespace lunaria::lite::kernels {

enum class IntegerType : uint8_t { s8, u8 };

struct IntegerEpilogue {
    const int32_t* bias = nullptr;
    const float* multiplier = nullptr;   // one for each column
    IntegerType type = IntegerType::s8;  // of the result
    int32_t zero = 0, low = -128, high = 127;
    const void* residual = nullptr;  // of the result's type, at its places
    int64_t residual_row = 0;
    int32_t residual_zero = 0;
    float residual_multiplier = 0;
    const void* table = nullptr;
    // Float results instead of integers: what is above is not used but for bias and multiplier.
    bool to_float = false;
    const float* float_bias = nullptr;
    Activation activation = Activation::none;
    float alpha = 0, beta = 0;
};

// Panels of 16 columns in groups of 4 rows, then the sum of each column: one arrangement for all instruction sets.
// Without VNNI, weights that are all within -64 and 64 are a third faster than others ("reduced range"); the results
// are exact with either.
int64_t integer_weight_bytes(int64_t k, int64_t n);
void pack_integer_weight(int64_t k, int64_t n, const int8_t* from, int64_t k_step, int64_t n_step, void* to);

struct IntegerProduct {
    int64_t m = 0, n = 0, k = 0;
    const void* a = nullptr;  // columns side by side
    int64_t a_row = 0;
    IntegerType type = IntegerType::s8;  // of a
    int32_t a_zero = 0;
    const void* b = nullptr;
    void* c = nullptr;
    int64_t c_row = 0;
    IntegerEpilogue epilogue;
};
int64_t integer_product_scratch(const IntegerProduct& p, int workers);
void integer_product(Isa isa, const IntegerProduct& p, void* scratch, const Workers& workers = {});

// Channels-last, direct or depthwise (groups == channels == out_channels); transposed ones are refused (returns 0,
// false).
int64_t integer_convolution_weight_bytes(const ConvolutionShape& s);
bool pack_integer_convolution(const ConvolutionShape& s, const int8_t* from, void* to);

struct IntegerConvolution {
    ConvolutionShape shape;
    const void* x = nullptr;
    IntegerType type = IntegerType::s8;  // of x
    int32_t x_zero = 0;
    const void* weight = nullptr;
    void* y = nullptr;
    int64_t x_pixel = 0, y_pixel = 0;  // 0: the number of channels
    IntegerEpilogue epilogue;
};
int64_t integer_convolution_scratch(const IntegerConvolution& c, int workers);
void integer_convolution(Isa isa, const IntegerConvolution& c, void* scratch, const Workers& workers = {});

// q = nearest even integer of min(max(x * (1 / scale), low - zero), high - zero), plus zero, and back. low and high are
// the limits of the type. NaN becomes zero.
void quantize(Isa isa, int64_t count, const float* x, float scale, int32_t zero, IntegerType type, void* q);
void dequantize(Isa isa, int64_t count, const void* q, float scale, int32_t zero, IntegerType type, float* x);

// y = a + b of integers: f = float(a - a_zero) * a_multiplier + float(b - b_zero) * b_multiplier, then the third line
// above and those after it. Multipliers are scales divided by the result's.
struct IntegerSum {
    int64_t count = 0;
    const void *a = nullptr, *b = nullptr;
    void* y = nullptr;
    IntegerType type = IntegerType::s8;  // of all three
    int32_t a_zero = 0, b_zero = 0, zero = 0, low = -128, high = 127;
    float a_multiplier = 1, b_multiplier = 1;
};
void integer_sum(Isa isa, const IntegerSum& s);

}  // namespace lunaria::lite::kernels
