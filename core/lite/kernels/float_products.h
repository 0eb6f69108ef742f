// The float entries of an instruction set (see table.h).
#pragma once

#include "core/lite/kernels/table.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

void product(const Product& p, void* scratch, const Workers& workers);
void batched_product(const BatchedProduct& p, void* scratch, const Workers& workers);
void direct(const Convolution& c, void* scratch, const Workers& workers);
void few_channels(const Convolution& c, void* scratch, const Workers& workers);
void transposed(const Convolution& c, void* scratch, const Workers& workers);
void winograd(const Convolution& c, void* scratch, const Workers& workers);
void depthwise(const Convolution& c, void* scratch, const Workers& workers);

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
