// The integer entries of an instruction set (see table.h).
#pragma once

#include "core/lite/kernels/table.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

void integer_product(const IntegerProduct& p, void* scratch, const Workers& workers);
void integer_direct(const IntegerConvolution& c, void* scratch, const Workers& workers);
void integer_depthwise(const IntegerConvolution& c, void* scratch, const Workers& workers);
void quantize(int64_t count, const float* x, float scale, int32_t zero, IntegerType type, void* q);
void dequantize(int64_t count, const void* q, float scale, int32_t zero, IntegerType type, float* x);
void integer_sum(const IntegerSum& s);
void block_product(const Product& p, void* scratch, const Workers& workers);

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
