// CPU kernels: products of sparse matrices in rows (CSR) with dense ones.
#include <algorithm>
#include <atomic>
#include <type_traits>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/matrices.h"
#include "backends/cpu/simd/sparse_loops.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

template <class I>
const SparseLoops<I>& sparse_loops() {
    constexpr bool is_short = sizeof(I) == sizeof(int32_t);
    const Isa isa = current_isa();
    if constexpr (is_short)
        return isa == Isa::avx512 ? avx512::sparse_loops_i32
               : isa == Isa::avx2 ? avx2::sparse_loops_i32
                                  : v2::sparse_loops_i32;
    else
        return isa == Isa::avx512 ? avx512::sparse_loops_i64
               : isa == Isa::avx2 ? avx2::sparse_loops_i64
                                  : v2::sparse_loops_i64;
}

template <class I>
void check_starts(const KernelCall& c, const I* indptr, int64_t rows, int64_t count) {
    if (indptr[0] != 0 || indptr[rows] != static_cast<I>(count))
        throw value_error(c.op.name(), str("indptr must begin with 0 and end with the number of values, ", count));
    if (sparse_loops<I>().is_ascending(indptr, rows + 1)) return;
    for (int64_t i = 0; i < rows; ++i)
        if (indptr[i] > indptr[i + 1]) throw value_error(c.op.name(), str("indptr falls behind place ", i));
}

// Reports a column that is outside of the dense matrix of so many rows.
template <class I>
[[noreturn]] void fail_outside(const KernelCall& c, const I* columns, int64_t size) {
    while (*columns >= 0 && *columns < size) ++columns;
    throw index_error(c.op.name(), str("column ", static_cast<int64_t>(*columns),
                                       " is out of range: the dense matrix has ", size, " rows"));
}

bool csr_matmul(const KernelCall& c) {
    const Tensor &indptr = c.tensor(0), &columns = c.tensor(1), &values = c.tensor(2), &dense = c.tensor(3);
    const int64_t rows = indptr.size() - 1, width = dense.dim(1), count = values.size();
    auto typed = [&]<class T, class I>(T, I) {
        const I *ptr = indptr.data<I>(), *col = columns.data<I>();
        check_starts(c, ptr, rows, count);
        const T *from = values.data<T>(), *x = dense.data<T>();
        T* out = c.out[0].data<T>();
        const int64_t mean = (count * std::max<int64_t>(width, 1)) / std::max<int64_t>(rows, 1) + 1;
        const int64_t piece = 32768 / mean + 1;
        std::atomic<bool> outside = false;
        // Columns are checked just before they are used, while they come into the cache.
        parallel_for(rows, piece, [&](int64_t first, int64_t last) {
            for (int64_t begin = first, end = 0; begin < last; begin = end) {
                end = std::min(begin + piece, last);
                if (!sparse_loops<I>().are_within(col + ptr[begin], ptr[end] - ptr[begin], dense.dim(0)))
                    return outside.store(true, std::memory_order_relaxed);
                sparse_loops<I>()({ptr, col, from, x, width, begin, end, out});
            }
        });
        if (outside) fail_outside(c, col, dense.dim(0));
    };
    auto indexed = [&](auto number) {
        if (indptr.dtype() == DType::i32)
            typed(number, int32_t());
        else
            typed(number, int64_t());
    };
    if (c.dtype == DType::f32)
        indexed(0.0F);
    else if (c.dtype == DType::f64)
        indexed(0.0);
    else
        return false;
    return true;
}

}  // namespace

void add_sparse_kernels(KernelTable& table) { table.plain("csr_matmul", csr_matmul); }

}  // namespace lunaria::cpu
