// Weights quantised in blocks of 32 with an f16 scale each, as GGUF files hold them: n rows of k / 32 blocks. A row of
// the file is a column of b (k x n): y = a b with n outputs. Nothing is rearranged, so that a mapped file is used in
// place.
//   q8_0  34 bytes: scale, 32 numbers of 8 bits                                     value = scale * q
//   q4_0  18 bytes: scale, 16 bytes with numbers i (low bits) and i + 16 (high)     value = scale * (q - 8)
//
// Activations are rounded to blocks of 8 bits with a float scale each on the way, and sums of a block are integers: for
// one row (a step of a language model) the speed is that of memory. Use them by product() of product.h with the type
// q8_0 or q4_0, or by the functions here from outside the light runtime.
#pragma once

#include "core/lite/kernels/product.h"

namespace lunaria::lite::kernels {

inline constexpr int64_t kBlock = 32, kBytesQ8 = 34, kBytesQ4 = 18;

// n rows of k numbers to blocks and back; k is a multiple of 32. The scale is the largest magnitude / 127 (for q4_0 the
// number of the largest magnitude / -8), as the reference implementation of the format has it.
void quantize_blocks(WeightType type, int64_t n, int64_t k, const float* from, int64_t from_row, void* to);
void dequantize_blocks(WeightType type, int64_t n, int64_t k, const void* from, float* to, int64_t to_row);

}  // namespace lunaria::lite::kernels
