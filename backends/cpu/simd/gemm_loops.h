// The interface between products of matrices (backends/cpu/gemm_tiles.cpp) and their inner loops, which are compiled
// per instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lunaria::cpu {

// Two neighbours of bfloat16 along the axis over which a product sums, in the order of memory.
enum class Bf16Pair : uint32_t {};

// The type in which products of T are summed, and of the result's elements.
template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, Bf16Pair>, float, T>;

// The role of c's content: none, or the product is added to it, or it is a product that has been begun, whose sums
// continue as if there had been no end.
enum class Onto : uint8_t { nothing, added, begun };

template <class T>
struct GemmLoops {
    using Sum = SumOf<T>;

    int64_t lanes;  // elements of a vector register
    int64_t panel;  // number of columns whose sums for a few rows fit into the registers
    int64_t strip;  // the same for one or two rows of a, where reading b takes the time
    // c = a·b, or c + a·b, where a is m × k with any strides, and b and c have dense rows, `b_row` and `c_row` apart.
    // Rows of b are read in whole vectors: up to n rounded up to a multiple of `lanes`, with no effect on c. Where
    // `bias` is not null, its n elements are added to each row, after everything else.
    void (*multiply)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                     int64_t b_row, Sum* c, int64_t c_row, Onto onto, const Sum* bias);
    // Copies a k × n matrix of any strides into dense rows of n rounded up to a multiple of `lanes`, padded with zeros.
    void (*pack)(const T* b, int64_t row, int64_t column, int64_t k, int64_t n, T* packed);

    // Adds `bias`, where it is not null, to m rows of n elements that are `row` apart, and with `relu` then replaces
    // negative elements by 0.
    void (*finish)(Sum* c, int64_t m, int64_t n, int64_t row, const Sum* bias, bool relu);

    // For floating-point numbers: c = a·b where the rows of a and the columns of b are dense; the sums have another
    // order.
    void (*dots)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_column, T* c,
                 int64_t c_row) = nullptr;
    // c = a·b for any strides and a dense c, with the sums of `multiply`, where vectors do not pay.
    void (*small)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_column, const T* b,
                  int64_t b_row, int64_t b_column, T* c) = nullptr;
    // c = a·b of one row or two, where the rows of all are dense, added up as in core/loops/small_product.h.
    void (*few)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_row, T* c) = nullptr;

    int64_t whole(int64_t n) const { return (n + lanes - 1) / lanes * lanes; }
};

// Integers wrap around, so that signed ones are multiplied as unsigned ones.
struct GemmTable {
    GemmLoops<float> f32;
    GemmLoops<double> f64;
    GemmLoops<uint16_t> i16;
    GemmLoops<uint32_t> i32;
    GemmLoops<uint64_t> i64;
    GemmLoops<Bf16Pair> bf16;  // for processors that have such products (has_bf16_products); else null
    // Pairs of the elements of two arrays of bfloat16; null for the second one means zeros.
    void (*pair)(const void* first, const void* second, Bf16Pair* to, int64_t count);
};

// For the instruction set in use.
const GemmTable& gemm_table();
template <class T>
const GemmLoops<T>& gemm_loops() {
    const GemmTable& table = gemm_table();
    if constexpr (std::is_same_v<T, float>)
        return table.f32;
    else if constexpr (std::is_same_v<T, double>)
        return table.f64;
    else if constexpr (std::is_same_v<T, Bf16Pair>)
        return table.bf16;
    else if constexpr (sizeof(T) == 2)
        return table.i16;
    else if constexpr (sizeof(T) == 4)
        return table.i32;
    else
        return table.i64;
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
