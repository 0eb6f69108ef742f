// Matrix products for f32 and f64, by OpenBLAS or by our own loops (gemm_tiles.h). The only header of the project that
// knows of BLAS beside blas.cpp is this one, and it shows none of BLAS's types.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

// A matrix in memory of any layout; strides in elements.
template <class T>
struct MatrixRef {
    const T* data;
    int64_t rows, columns, row_stride, column_stride;

    MatrixRef transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

// c = a·b + beta·c, where c is dense and row-major with a.rows × b.columns elements. Operands whose rows or columns are
// dense are used as they lie; others are copied first. Polls for interrupts between blocks of
// some hundredths of a second.
// False when a size is beyond BLAS's 32-bit integers.
template <class T>
bool gemm(const MatrixRef<T>& a, const MatrixRef<T>& b, T* c, T beta);

}  // namespace lunaria::cpu
