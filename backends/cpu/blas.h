// Matrix products for f32 and f64, by OpenBLAS or by our own loops (gemm_tiles.h). Only this header and blas.cpp know
// of BLAS, and the header shows none of its types.
#pragma once

#include <cstdint>
#include <string_view>

namespace lunaria::cpu {

// To be alive while this thread calls OpenBLAS, which never returns when it gets no memory for its buffers: false where
// that would happen. Nested calls belong to the outer one.
class BlasCall {
  public:
    BlasCall();
    ~BlasCall();
    BlasCall(const BlasCall&) = delete;
    BlasCall& operator=(const BlasCall&) = delete;
    explicit operator bool() const { return may_call_; }
    // Throws memory_error in the name of `where`, for an operator without loops of our own.
    void need(std::string_view where) const;

  private:
    bool may_call_ = false;
};

// A matrix in memory of any layout; strides in elements.
template <class T>
struct MatrixRef {
    const T* data;
    int64_t rows, columns, row_stride, column_stride;

    MatrixRef transposed() const { return {data, columns, rows, column_stride, row_stride}; }
};

// c = a·b + beta·c, where c is dense and row-major with a.rows × b.columns elements. Operands whose rows or columns are
// dense are used in place; others are copied first. Polls for interrupts between blocks of
// some hundredths of a second.
// False when a size is beyond BLAS's 32-bit integers, or BLAS has no memory for its buffers.
template <class T>
bool gemm(const MatrixRef<T>& a, const MatrixRef<T>& b, T* c, T beta);

}  // namespace lunaria::cpu
