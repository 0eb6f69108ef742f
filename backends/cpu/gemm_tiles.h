// Matrix products by our own loops, for f32 and f64: for the sizes of networks they take less time than OpenBLAS, which
// copies both operands or splits small work badly.
#pragma once

#include "backends/cpu/blas.h"

namespace lunaria::cpu {

// c = a·b, or c + a·b, where c is dense and row-major. False where OpenBLAS is the better choice.
template <class T>
bool tile_product(const MatrixRef<T>& a, const MatrixRef<T>& b, T* c, bool add);

}  // namespace lunaria::cpu
