// Batches of small matrices by the loops of simd/matrix_loops.h.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/simd/matrix_loops.h"
#include "core/tensor/tensor.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

template <class T>
const MatrixLoops<T>& matrix_loops() {
    const Isa isa = current_isa();
    if constexpr (sizeof(T) == 4)
        return isa == Isa::avx512 ? avx512::matrix_loops_f32
               : isa == Isa::avx2 ? avx2::matrix_loops_f32
                                  : v2::matrix_loops_f32;
    else
        return isa == Isa::avx512 ? avx512::matrix_loops_f64
               : isa == Isa::avx2 ? avx2::matrix_loops_f64
                                  : v2::matrix_loops_f64;
}

// Calls small(loops, zero of the element type, number of the matrix), which returns whether it was done, for each of
// `batches` matrices of n rows and the dtype of `like`; returns the numbers of those that LAPACK has to do, in order.
template <class F>
std::vector<int64_t> left_by_small_loops(const Tensor& like, int64_t n, int64_t batches, F small) {
    std::vector<int64_t> left;
    const bool serves =
        n >= 1 && n <= kLargestSmallMatrix && (like.dtype() == DType::f32 || like.dtype() == DType::f64);
    if (!serves) {
        for (int64_t b = 0; b < batches; ++b) left.push_back(b);
        return left;
    }
    std::vector<char> done(static_cast<size_t>(batches));
    constexpr int64_t kWorthwhile = 1 << 16;
    parallel_for(batches, kWorthwhile / (n * n * n) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
            done[static_cast<size_t>(b)] = like.dtype() == DType::f32 ? small(matrix_loops<float>(), float(), b)
                                                                      : small(matrix_loops<double>(), double(), b);
    });
    for (int64_t b = 0; b < batches; ++b)
        if (!done[static_cast<size_t>(b)]) left.push_back(b);
    return left;
}

}  // namespace lunaria::cpu
