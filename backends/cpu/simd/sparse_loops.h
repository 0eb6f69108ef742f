// The loops of products of sparse matrices in rows (CSR) with dense ones.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

// Some rows of a product. T: the elements; I: places of values and numbers of columns.
template <class T, class I>
struct SparseRows {
    const I *starts, *columns;  // begins of the rows and columns of the values, of the whole matrix
    const T *values, *dense;
    int64_t width;  // of the dense matrix
    int64_t begin, end;
    T* out;
};

template <class I>
struct SparseLoops {
    bool (*is_ascending)(const I* starts, int64_t count);
    // Whether all columns are from 0 to size - 1.
    bool (*are_within)(const I* columns, int64_t count, int64_t size);
    void (*single)(const SparseRows<float, I>& rows);
    void (*twice)(const SparseRows<double, I>& rows);

    void operator()(const SparseRows<float, I>& rows) const { single(rows); }
    void operator()(const SparseRows<double, I>& rows) const { twice(rows); }
};

namespace v2 {
extern const SparseLoops<int32_t> sparse_loops_i32;
extern const SparseLoops<int64_t> sparse_loops_i64;
}  // namespace v2
namespace avx2 {
extern const SparseLoops<int32_t> sparse_loops_i32;
extern const SparseLoops<int64_t> sparse_loops_i64;
}  // namespace avx2
namespace avx512 {
extern const SparseLoops<int32_t> sparse_loops_i32;
extern const SparseLoops<int64_t> sparse_loops_i64;
}  // namespace avx512

}  // namespace lunaria::cpu
