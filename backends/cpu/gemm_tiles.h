// Matrix products by our own loops. For f32 and f64 they take less time than OpenBLAS at the sizes of networks, since
// OpenBLAS copies both operands or splits small work badly; integers (unsigned, so that they wrap around) and pairs of
// bfloat16 have only these loops.
#pragma once

#include <atomic>

#include "backends/cpu/blas.h"
#include "backends/cpu/simd/gemm_loops.h"
#include "core/tensor/tensor.h"

namespace lunaria::cpu {

// The operations on a product as soon as a part of it is complete: `bias` is added to each row where it is not null,
// and with `relu` negative elements become 0. As with separate operators, the bias is added to the complete sum.
template <class T>
struct Epilogue {
    const SumOf<T>* bias = nullptr;
    bool relu = false;
};

// From so many multiplications on, OpenBLAS's copies of both operands pay where its vectors are as long.
inline constexpr double kManyProducts = 2e9;

// The loops that compute a product. They are chosen by sizes and strides alone, and with them the order of the sums: a
// packed weight gives the same bits as one that is not packed.
enum class Way { dots, tiles, library };
template <class T>
Way way_of(const MatrixRef<T>& a, const MatrixRef<T>& b, double most = kManyProducts);

// c = a·b, or c + a·b, where c is dense and row-major, and then `after`. False where OpenBLAS is the better choice, and
// beyond `most` multiplications.
template <class T>
bool tile_product(const MatrixRef<T>& a, const MatrixRef<T>& b, SumOf<T>* c, bool add, const Epilogue<T>& after = {},
                  double most = kManyProducts);

// A right side in the order in which the loops read it: for tiles, panels of `width` columns, each row by row in whole
// vectors; for dots, the matrix itself, in place.
template <class T>
struct PackedMatrix {
    int64_t rows, columns, width;
    Tensor memory;
    Way way = Way::tiles;
    MatrixRef<T> lying{};
    mutable bool backwards = false;

    // Whether a product that reads the matrix once goes from its end to its begin: every other one does, so that it
    // finds in the cache what the last one has read at its end. Always from the begin, a matrix a little larger than
    // the cache would evict itself. The sums are the same either way: each column has its own.
    bool turn() const {
        const std::atomic_ref<bool> way(backwards);
        return way.exchange(!way.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
};

// The product by these loops in any case, with safe points where it takes long: for integers and for pairs of bfloat16,
// which are added up in floats.
template <class T>
void own_product(const MatrixRef<T>& a, const MatrixRef<T>& b, SumOf<T>* c, bool add);

// The same with a packed right side.
void packed_own_product(const MatrixRef<Bf16Pair>& a, const PackedMatrix<Bf16Pair>& b, float* c);

// Whether the loops for pairs of bfloat16 can be called: the processor and the instruction set in use support them.
bool has_bf16_products();

// Whether packing b pays: these loops compute the product, and it has too few rows to reorder b each time.
template <class T>
bool is_worth_packing(const MatrixRef<T>& a, const MatrixRef<T>& b);
// Packs b for products with left sides like a.
template <class T>
PackedMatrix<T> pack_matrix(const MatrixRef<T>& a, const MatrixRef<T>& b);
template <class T>
void packed_product(const MatrixRef<T>& a, const PackedMatrix<T>& b, SumOf<T>* c, const Epilogue<T>& after);
// Replaces negative elements among n by 0, by all threads where there are many.
template <class T>
void cut_negatives(T* c, int64_t n);
// Applies `after` to a product of dense rows, by all threads where there are many.
template <class T>
void finish_rows(T* c, int64_t rows, int64_t columns, const Epilogue<T>& after);
// An address that identifies the instruction set's packing.
const void* packing();

}  // namespace lunaria::cpu
