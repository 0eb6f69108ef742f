// CPU kernels: products of sparse matrices in rows (CSR) with dense ones.
#include <algorithm>
#include <type_traits>

#include "backends/cpu/matrices.h"
#include "core/interrupt.h"
#include "core/op.h"
#include "core/threads.h"

namespace lunaria::cpu {

namespace {

// A row of the result: the rows of `dense` that the columns name, times their values. Few elements stay in registers
// while the row's values pass by; of many, whole rows are added to the result, which then stays in the first cache.
template <int kWidth, class T, class I>
void narrow_row(const I* columns, const T* values, int64_t count, const T* dense, int64_t width, T* out) {
    T sum[kWidth] = {};
    for (int64_t k = 0; k < count; ++k) {
        const T v = values[k];
        const T* row = dense + static_cast<int64_t>(columns[k]) * width;
        for (int i = 0; i < kWidth; ++i) sum[i] += v * row[i];
    }
    std::copy_n(sum, kWidth, out);
}

template <class T, class I>
void wide_row(const I* columns, const T* values, int64_t count, const T* dense, int64_t width, T* __restrict out) {
    std::fill_n(out, width, T(0));
    for (int64_t k = 0; k < count; ++k) {
        const T v = values[k];
        const T* __restrict row = dense + static_cast<int64_t>(columns[k]) * width;
        for (int64_t j = 0; j < width; ++j) out[j] += v * row[j];
    }
}

template <class T, class I>
void product_row(const I* columns, const T* values, int64_t count, const T* dense, int64_t width, T* out) {
    int64_t j = 0;
    auto narrow = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
        for (; j + kWidth <= width; j += kWidth) narrow_row<kWidth>(columns, values, count, dense + j, width, out + j);
    };
    if (width >= 64) return wide_row(columns, values, count, dense, width, out);
    narrow(std::integral_constant<int, 32>());
    narrow(std::integral_constant<int, 16>());
    narrow(std::integral_constant<int, 8>());
    narrow(std::integral_constant<int, 4>());
    narrow(std::integral_constant<int, 1>());
}

template <class I>
void check(const KernelCall& c, const I* indptr, int64_t rows, const I* columns, int64_t count, int64_t size) {
    if (indptr[0] != 0 || indptr[rows] != static_cast<I>(count))
        throw value_error(c.op.name(), str("indptr must begin with 0 and end with the number of values, ", count));
    for (int64_t i = 0; i < rows; ++i)
        if (indptr[i] > indptr[i + 1]) throw value_error(c.op.name(), str("indptr falls behind place ", i));
    // Negative columns are large ones without a sign.
    using U = std::make_unsigned_t<I>;
    bool outside = false;
    for (int64_t k = 0; k < count; ++k) outside |= static_cast<U>(columns[k]) >= static_cast<U>(size);
    for (int64_t k = 0; outside && k < count; ++k)
        if (static_cast<U>(columns[k]) >= static_cast<U>(size))
            throw index_error(c.op.name(), str("column ", static_cast<int64_t>(columns[k]),
                                               " is out of range: the dense matrix has ", size, " rows"));
}

bool csr_matmul(const KernelCall& c) {
    const Tensor &indptr = c.tensor(0), &columns = c.tensor(1), &values = c.tensor(2), &dense = c.tensor(3);
    const int64_t rows = indptr.size() - 1, width = dense.dim(1), count = values.size();
    auto typed = [&]<class T, class I>(T, I) {
        const I *ptr = indptr.data<I>(), *col = columns.data<I>();
        check(c, ptr, rows, col, count, dense.dim(0));
        const T *from = values.data<T>(), *x = dense.data<T>();
        T* out = c.out[0].data<T>();
        const int64_t mean = (count * std::max<int64_t>(width, 1)) / std::max<int64_t>(rows, 1) + 1;
        parallel_for(rows, 32768 / mean + 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                const auto at = static_cast<int64_t>(ptr[i]);
                product_row(col + at, from + at, static_cast<int64_t>(ptr[i + 1]) - at, x, width, out + i * width);
            }
        });
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
