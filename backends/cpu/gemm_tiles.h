// Matrix products by our own loops. For f32 and f64 they take less time than OpenBLAS at the sizes of networks, as that
// copies both operands or splits small work badly; integers (unsigned, so that they wrap around) and pairs of bfloat16
// have nothing else.
#pragma once

#include <atomic>

#include "backends/cpu/blas.h"
#include "backends/cpu/simd/gemm_loops.h"
#include "core/tensor/tensor.h"

namespace lunaria::cpu {

// What is done to a product as soon as a part of it is complete: `bias` is added to each row where it is not null, and
// with `relu` what is negative becomes 0. As in separate operators, the bias is added to the whole sum.
template <class T>
struct Epilogue {
    const SumOf<T>* bias = nullptr;
    bool relu = false;
};

// From so many multiplications on, OpenBLAS's copies of both operands pay where its vectors are as long.
inline constexpr double kManyProducts = 2e9;

// Which loops a product is done by. Sizes and strides alone decide, and so the order in which it is added up: a weight
// that has been packed gives the bits of one that has not.
enum class Way { dots, tiles, library };
template <class T>
Way way_of(const MatrixRef<T>& a, const MatrixRef<T>& b, double most = kManyProducts);

// c = a·b, or c + a·b, where c is dense and row-major, and then `after`. False where OpenBLAS is the better choice, and
// beyond `most` multiplications.
template <class T>
bool tile_product(const MatrixRef<T>& a, const MatrixRef<T>& b, SumOf<T>* c, bool add, const Epilogue<T>& after = {},
                  double most = kManyProducts);

// A right side in the order in which the loops read it: for tiles panels of `width` columns, each row by row in whole
// vectors; for dots it lies as they like it, and is read where it is.
template <class T>
struct PackedMatrix {
    int64_t rows, columns, width;
    Tensor memory;
    Way way = Way::tiles;
    MatrixRef<T> lying{};
    mutable bool backwards = false;

    // Whether a product that reads the matrix once goes from its end to its begin: every other one does, and finds in
    // the cache what the one before has read last. From the begin each time, a matrix a little larger than the cache
    // would drive itself out. Sums are the same either way: each column has its own.
    bool turn() const {
        const std::atomic_ref<bool> way(backwards);
        return way.exchange(!way.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
};

// The same in any case, with safe points where it takes long: for integers and for pairs of bfloat16, which are added
// up in floats.
template <class T>
void own_product(const MatrixRef<T>& a, const MatrixRef<T>& b, SumOf<T>* c, bool add);

// With the right side in the order of the loops.
void packed_own_product(const MatrixRef<Bf16Pair>& a, const PackedMatrix<Bf16Pair>& b, float* c);

// Whether the loops for pairs of bfloat16 can be called: the processor multiplies them and the instruction set in use
// has loops that do.
bool has_bf16_products();

// Whether b is worth an order of its own: the loops here do the product, and its rows do not make up for one each time.
template <class T>
bool is_worth_packing(const MatrixRef<T>& a, const MatrixRef<T>& b);
// For products with such matrices on the left.
template <class T>
PackedMatrix<T> pack_matrix(const MatrixRef<T>& a, const MatrixRef<T>& b);
template <class T>
void packed_product(const MatrixRef<T>& a, const PackedMatrix<T>& b, SumOf<T>* c, const Epilogue<T>& after);
// 0 in place of what is negative in n elements, by all threads where they are many.
template <class T>
void cut_negatives(T* c, int64_t n);
// `after` for a product of dense rows, by all threads where they are many.
template <class T>
void finish_rows(T* c, int64_t rows, int64_t columns, const Epilogue<T>& after);
// Differs between instruction sets, for which matrices are packed differently.
const void* packing();

}  // namespace lunaria::cpu
