// The interface between products of matrices (backends/cpu/gemm_tiles.cpp) and their inner loops, which are compiled
// per instruction set.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

template <class T>
struct GemmLoops {
    int64_t lanes;  // elements of a vector register
    int64_t panel;  // columns whose sums for a few rows fit into the registers
    int64_t strip;  // the same for one or two rows of a, where it is b that takes the time
    // c = a·b, or c + a·b, where a is m × k with any strides, and b and c have dense rows, `b_row` and `c_row` apart.
    // Rows of b are read in whole vectors: up to n rounded up to a multiple of `lanes`, with no effect on c. Where
    // `bias` is not null, its n elements are added to each row.
    void (*multiply)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                     int64_t b_row, T* c, int64_t c_row, bool add, const T* bias);
    // Copies a k × n matrix of any strides into dense rows of n rounded up to a multiple of `lanes`, with zeros behind.
    void (*pack)(const T* b, int64_t row, int64_t column, int64_t k, int64_t n, T* packed);

    // 0 in place of what is negative, in m rows of n elements that are `row` apart.
    void (*cut)(T* c, int64_t m, int64_t n, int64_t row);

    int64_t whole(int64_t n) const { return (n + lanes - 1) / lanes * lanes; }
};

struct GemmTable {
    GemmLoops<float> f32;
    GemmLoops<double> f64;
};

// Those for the instruction set in use.
const GemmTable& gemm_table();
template <class T>
const GemmLoops<T>& gemm_loops() {
    if constexpr (sizeof(T) == 4)
        return gemm_table().f32;
    else
        return gemm_table().f64;
}

namespace v2 {
extern const GemmTable gemm_table;
}
namespace avx2 {
extern const GemmTable gemm_table;
}
namespace avx512 {
extern const GemmTable gemm_table;
}

}  // namespace lunaria::cpu
