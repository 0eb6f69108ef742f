// Products of matrices: c (m x n) = a (m x k) b (k x n), with an epilogue.
//
// b is a weight that pack_weight() has arranged once, or any matrix of the program, which is arranged in scratch at
// each call. The arrangement is the same for all instruction sets, so that a file can hold it and a program can map it:
// panels of 16 columns, in each panel the k rows one after the other, and zeros in place of the columns that the last
// one lacks. f16 and bf16 weights lie in the same panels with elements of two bytes. Panels begin at multiples of 64
// bytes when the whole does.
//
// q8_0 and q4_0 weights have no panels: they are the n rows of GGUF files (see blocks.h), read where they are mapped.
#pragma once

#include "core/lite/kernels/common.h"

namespace lunaria::lite::kernels {

enum class WeightType : uint8_t { f32, f16, bf16, q8_0, q4_0 };

// Bytes of b (k x n) as a weight.
int64_t weight_bytes(WeightType type, int64_t k, int64_t n);
// Arranges b, whose element (i, j) is from[i * k_step + j * n_step]; rounds to the nearest where the type is smaller. k
// must be a multiple of 32 for q8_0 and q4_0. (Matrices of (out, in) as in nn.Dense: k_step 1, n_step k.)
void pack_weight(WeightType type, int64_t k, int64_t n, const float* from, int64_t k_step, int64_t n_step, void* to);

struct Product {
    int64_t m = 0, n = 0, k = 0;
    const float* a = nullptr;
    int64_t a_row = 0, a_column = 1;  // element (i, p) is a[i * a_row + p * a_column]
    const void* b = nullptr;          // as pack_weight() has written it
    WeightType type = WeightType::f32;
    float* c = nullptr;
    int64_t c_row = 0;  // its columns lie side by side
    Epilogue epilogue;
};
int64_t product_scratch(const Product& p, int workers);
void product(Isa isa, const Product& p, void* scratch, const Workers& workers = {});

// Products of two matrices of the program, as in attention: batch i has a + i * a_batch and so on. `factor` multiplies
// the sums.
struct BatchedProduct {
    int64_t batch = 1, m = 0, n = 0, k = 0;
    const float *a = nullptr, *b = nullptr;
    int64_t a_batch = 0, a_row = 0, a_column = 1;
    int64_t b_batch = 0, b_row = 0, b_column = 1;
    float* c = nullptr;
    int64_t c_batch = 0, c_row = 0;
    float factor = 1;
    Epilogue epilogue;  // the same for all batches, without a residual
};
int64_t batched_product_scratch(const BatchedProduct& p, int workers);
void batched_product(Isa isa, const BatchedProduct& p, void* scratch, const Workers& workers = {});

}  // namespace lunaria::lite::kernels
