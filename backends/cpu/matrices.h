// Matrices by columns, LAPACK's form, read from tensors and written to them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "backends/cpu/kernel_table.h"
#include "backends/cpu/lapack.h"
#include "core/base/interrupt.h"
#include "core/operator/infer.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

using Doubles = std::vector<double>;

// A column-major matrix.
template <class T>
struct ColumnsOf {
    int rows, columns;
    std::vector<T> data;

    // With room after the last element, since some of OpenBLAS's loops read past it.
    ColumnsOf(int64_t r, int64_t c) : rows(static_cast<int>(r)), columns(static_cast<int>(c)) {
        data.reserve(static_cast<size_t>(r * c) + 4);
        data.resize(static_cast<size_t>(r * c));
    }
    T& at(int i, int j) { return data[static_cast<size_t>(j) * static_cast<size_t>(rows) + static_cast<size_t>(i)]; }
    int leading() const { return std::max(rows, 1); }
};

// The types in which these kernels compute: f64, or complex128 for complex numbers.
template <class T>
using RealOf = decltype(std::abs(T()));

inline float conjugate(float x) { return x; }
inline double conjugate(double x) { return x; }
inline Complex128 conjugate(Complex128 z) { return std::conj(z); }
inline bool is_finite(double x) { return std::isfinite(x); }
inline bool is_finite(Complex128 z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

inline size_t index(int i) { return static_cast<size_t>(i); }

inline int64_t rows_in(const Tensor& t) { return t.dim(t.rank() - 2); }
inline int64_t columns_in(const Tensor& t) { return t.dim(t.rank() - 1); }

inline int64_t batches_in(const Tensor& t) {
    int64_t n = 1;
    for (int i = 0; i + 2 < t.rank(); ++i) n *= t.dim(i);
    return n;
}

inline void check_size(const KernelCall& c, const Tensor& t) {
    // For larger matrices LAPACK's 32-bit sizes of work arrays overflow.
    if (std::max(rows_in(t), columns_in(t)) > 32768)
        throw shape_error(c.op.name(),
                          str("a matrix of shape ", t.shape(), " is too large: at most 32768 rows and columns"));
}

// The indices of the matrices in the first operand, whose size is checked: for (int64_t b : matrices_of(c)). Interrupts
// are noticed before each of them.
class MatrixNumbers {
  public:
    explicit MatrixNumbers(const KernelCall& c) : count_(batches_in(c.tensor(0))) { check_size(c, c.tensor(0)); }

    struct Iterator {
        int64_t b;
        int64_t operator*() const {
            poll_interrupt();
            return b;
        }
        Iterator& operator++() {
            ++b;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return b != other.b; }
    };
    Iterator begin() const { return {0}; }
    Iterator end() const { return {count_}; }

  private:
    int64_t count_;
};
inline MatrixNumbers matrices_of(const KernelCall& c) { return MatrixNumbers(c); }

// Calls f(i, j) for all elements, a tile at a time: one side of a transposition is read across its cache lines.
template <class F>
void for_tiles(int rows, int columns, F f) {
    constexpr int kTile = 32;
    constexpr int64_t kWorthwhile = 65536;
    const int64_t strips = (static_cast<int64_t>(columns) + kTile - 1) / kTile;
    parallel_for(strips, kWorthwhile / (static_cast<int64_t>(rows) * kTile + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t strip = begin; strip < end; ++strip)
            for (int top = 0; top < rows; top += kTile)
                for (int j = static_cast<int>(strip) * kTile;
                     j < std::min(columns, static_cast<int>(strip + 1) * kTile); ++j)
                    for (int i = top; i < std::min(rows, top + kTile); ++i) f(i, j);
    });
}

// The n-th matrix of a dense batch.
template <class To = double>
ColumnsOf<To> read(const Tensor& t, int64_t n) {
    ColumnsOf<To> m(rows_in(t), columns_in(t));
    int64_t size = rows_in(t) * columns_in(t);
    visit_dtype(t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_floating_point_v<T> || (kIsComplex<T> && kIsComplex<To>)) {
            const T* from = t.data<T>() + n * size;
            for_tiles(m.rows, m.columns, [&](int i, int j) {
                m.at(i, j) = static_cast<To>(from[static_cast<int64_t>(i) * m.columns + j]);
            });
        }
    });
    return m;
}

inline void store(const Tensor& t, int64_t at, double x) {
    if (t.dtype() == DType::f32)
        t.data<float>()[at] = static_cast<float>(x);
    else
        t.data<double>()[at] = x;
}
inline void store(const Tensor& t, int64_t at, Complex128 z) {
    if (t.dtype() == DType::c64)
        t.data<Complex64>()[at] = Complex64(z);
    else
        t.data<Complex128>()[at] = z;
}

template <class T>
void write(const Tensor& t, int64_t n, ColumnsOf<T>& m) {
    const int64_t first = n * m.rows * m.columns;
    for_tiles(m.rows, m.columns,
              [&](int i, int j) { store(t, first + static_cast<int64_t>(i) * m.columns + j, m.at(i, j)); });
}

template <class T>
void write(const Tensor& t, int64_t n, const std::vector<T>& values) {
    int64_t at = n * static_cast<int64_t>(values.size());
    for (T x : values) store(t, at++, x);
}

template <class T>
void expect_finite(const KernelCall& c, const ColumnsOf<T>& m) {
    for (T x : m.data)
        if (!is_finite(x)) throw value_error(c.op.name(), "the matrix holds NaN or infinity");
}

inline void expect_converged(const KernelCall& c, int info) {
    if (info != 0) throw value_error(c.op.name(), str("the decomposition did not converge (LAPACK's code ", info, ")"));
}

// Calls f(work, size), which calls LAPACK, twice: to ask for the best size of the work array, then with it.
template <class T = double, class F>
void with_work(F f) {
    const StoppableLapack stops;
    T best = 0;
    f(&best, -1);
    std::vector<T> work(std::max<size_t>(1, static_cast<size_t>(std::real(best))));
    f(work.data(), static_cast<int>(work.size()));
}

// Adds the kernel f(call, zero), which computes in the type of zero: complex128 for complex numbers, f64 for all
// others.
template <class F>
void add_for_real_and_complex(KernelTable& table, const char* op, F) {
    table.plain(op, [](const KernelCall& c) { return is_complex(c.dtype) ? F()(c, Complex128()) : F()(c, double()); });
}

// Kernels of the family solve in files of their own.
void add_factor_kernels(KernelTable& table);
void add_sparse_kernels(KernelTable& table);

}  // namespace lunaria::cpu
