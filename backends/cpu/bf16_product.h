// Products of bfloat16 by the processor's own instruction, which multiplies pairs of neighbours and adds them up in
// floats.
#pragma once

#include "backends/cpu/gemm_tiles.h"

namespace lunaria::cpu {

// c = a·b, or c + a·b, of matrices of bfloat16 in any layout, where c is dense and row-major. Needs
// has_bf16_products(). Numbers below the normal range count as 0, as in that instruction.
void bf16_product(const MatrixRef<BFloat16>& a, const MatrixRef<BFloat16>& b, float* c, bool add);

}  // namespace lunaria::cpu
