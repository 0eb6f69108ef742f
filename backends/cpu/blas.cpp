#include "backends/cpu/blas.h"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>

#include "backends/cpu/elementwise.h"
#include "backends/cpu/gemm_tiles.h"
#include "core/base/address_space.h"
#include "core/base/error.h"
#include "core/base/visit.h"
#include "core/tensor/tensor.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

void call_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const float* a, int lda, const float* b,
               int ldb, float beta, float* c, int ldc) {
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}
void call_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, const double* a, int lda, const double* b,
               int ldb, double beta, double* c, int ldc) {
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1.0, a, lda, b, ldb, beta, c, ldc);
}
void call_gemv(CBLAS_TRANSPOSE t, int m, int n, const float* a, int lda, const float* x, int incx, float beta,
               float* y) {
    cblas_sgemv(CblasRowMajor, t, m, n, 1.0f, a, lda, x, incx, beta, y, 1);
}
void call_gemv(CBLAS_TRANSPOSE t, int m, int n, const double* a, int lda, const double* x, int incx, double beta,
               double* y) {
    cblas_dgemv(CblasRowMajor, t, m, n, 1.0, a, lda, x, incx, beta, y, 1);
}

double call_dot(int n, const float* x, int incx, const float* y, int incy) { return cblas_sdot(n, x, incx, y, incy); }
double call_dot(int n, const double* x, int incx, const double* y, int incy) { return cblas_ddot(n, x, incx, y, incy); }

// The size of the buffer that OpenBLAS allocates, once, for each concurrent call and for each thread of the pool; it
// keeps its buffers.
constexpr size_t kBuffer = (size_t{128} << 20) + (size_t{1} << 16);

// OpenBLAS makes buffers for so many threads when it is loaded. It is asked for before main, since programs may set
// another number of threads before their first product.
const int threads_at_start = std::min(omp_get_max_threads(), omp_get_num_procs());

struct Buffers {
    std::mutex mutex;
    int calls = 0, most_calls = 0;   // concurrent ones: now, and at most so far
    int threads = threads_at_start;  // with buffers
};

Buffers& buffers() {
    static Buffers all;
    return all;
}

thread_local int calls_of_thread = 0;  // nested calls

// Whether there are buffers for one more calling thread.
bool enter() {
    Buffers& b = buffers();
    const std::lock_guard lock(b.mutex);
    const int threads = std::max(b.threads, omp_get_max_threads()), calls = std::max(b.most_calls, b.calls + 1);
    const int more = threads - b.threads + calls - b.most_calls;
    if (more > 0 && !address_space_has(kBuffer * static_cast<size_t>(more))) return false;
    b.threads = threads;
    b.most_calls = calls;
    ++b.calls;
    return true;
}

bool fits(int64_t n) { return n >= 0 && n <= std::numeric_limits<int>::max(); }

// The form of a matrix for BLAS: as stored, or as the transpose of what is stored.
struct Layout {
    CBLAS_TRANSPOSE transpose = CblasNoTrans;
    int64_t leading = 0;  // 0: neither; a copy is needed
};

template <class T>
Layout layout_of(const MatrixRef<T>& m) {
    // The stride along an axis of size 1 has no meaning.
    if ((m.column_stride == 1 || m.columns == 1) && (m.row_stride >= m.columns || m.rows == 1))
        return {CblasNoTrans, std::max(m.rows == 1 ? m.columns : m.row_stride, int64_t{1})};
    if ((m.row_stride == 1 || m.rows == 1) && (m.column_stride >= m.rows || m.columns == 1))
        return {CblasTrans, std::max(m.columns == 1 ? m.rows : m.column_stride, int64_t{1})};
    return {};
}

// The matrix itself where BLAS can read it, else a dense copy in `storage`.
template <class T>
MatrixRef<T> readable(const MatrixRef<T>& m, Tensor& storage) {
    if (layout_of(m).leading) return m;
    storage = Tensor::empty(dtype_of<T>(), {m.rows, m.columns});
    T* out = storage.data<T>();
    for (int64_t i = 0; i < m.rows; ++i)
        for (int64_t j = 0; j < m.columns; ++j) *out++ = m.data[i * m.row_stride + j * m.column_stride];
    return {storage.data<T>(), m.rows, m.columns, m.columns, 1};
}

// The instruction set of OpenBLAS's kernels.
Isa blas_isa() {
    static const Isa isa = [] {
        const std::string_view core = openblas_get_corename();
        if (core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids") return Isa::avx512;
        return core == "Haswell" || core == "Zen" ? Isa::avx2 : Isa::v2;
    }();
    return isa;
}

// Whether our own loops have longer vectors: OpenBLAS does not know processors that are newer than itself.
bool outdoes_blas() { return current_isa() > blas_isa(); }

// For some cores there are gemm kernels that read both operands in place, up to about a million multiplications, and
// these take less time than gemv. Beyond that gemm copies its operands first and gemv does not, which saves a third of
// the time.
bool gemm_suits_vectors(int64_t m, int64_t k, int64_t n) {
    constexpr double kMost = 1e6;
    return blas_isa() == Isa::avx512 &&
           static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) <= kMost;
}

// y = m·x + beta·y.
template <class T>
bool matrix_times_vector(const MatrixRef<T>& m, const T* x, int64_t step, T* y, T beta) {
    Layout l = layout_of(m);
    if (!fits(l.leading) || step <= 0 || !fits(step)) return false;
    int rows = static_cast<int>(m.rows), columns = static_cast<int>(m.columns);
    if (l.transpose == CblasTrans) std::swap(rows, columns);
    call_gemv(l.transpose, rows, columns, m.data, static_cast<int>(l.leading), x, static_cast<int>(step), beta, y);
    return true;
}

}  // namespace

BlasCall::BlasCall() {
    prepare_pool();
    if (calls_of_thread == 0 && !enter()) return;
    ++calls_of_thread;
    may_call_ = true;
}

BlasCall::~BlasCall() {
    if (!may_call_ || --calls_of_thread > 0) return;
    Buffers& b = buffers();
    const std::lock_guard lock(b.mutex);
    --b.calls;
}

void BlasCall::need(std::string_view where) const {
    if (may_call_) return;
    throw memory_error(where, str("the library of linear algebra (OpenBLAS) needs ", kBuffer >> 20,
                                  " MB of addresses more than the limit leaves"))
        .hint("raise the limit (ulimit -v), or use fewer threads (OMP_NUM_THREADS=1)");
}

template <class T>
bool gemm(const MatrixRef<T>& a_given, const MatrixRef<T>& b_given, T* c, T beta) {
    int64_t m = a_given.rows, k = a_given.columns, n = b_given.columns;
    if ((beta == T(0) || beta == T(1)) && tile_product(a_given, b_given, c, beta == T(1))) return true;
    const BlasCall call;
    if (!call || !fits(m) || !fits(k) || !fits(n)) return false;
    Tensor a_copy, b_copy;
    MatrixRef<T> a = readable(a_given, a_copy), b = readable(b_given, b_copy);
    const bool vectors = (m == 1 || n == 1) && !gemm_suits_vectors(m, k, n);
    if (vectors && n == 1 && m > 1 && matrix_times_vector(a, b.data, k == 1 ? 1 : b.row_stride, c, beta)) return true;
    if (vectors && m == 1 && n > 1 &&
        matrix_times_vector(b.transposed(), a.data, k == 1 ? 1 : a.column_stride, c, beta))
        return true;
    const int64_t a_step = k == 1 ? 1 : a.column_stride, b_step = k == 1 ? 1 : b.row_stride;
    if (vectors && m == 1 && n == 1 && a_step > 0 && b_step > 0 && fits(a_step) && fits(b_step)) {
        // Neither gemm nor gemv splits a sum: they would add one product at a time.
        const auto dot = static_cast<T>(
            call_dot(static_cast<int>(k), a.data, static_cast<int>(a_step), b.data, static_cast<int>(b_step)));
        *c = beta == T(0) ? dot : dot + beta * *c;
        return true;
    }
    Layout la = layout_of(a), lb = layout_of(b);
    if (!fits(la.leading) || !fits(lb.leading)) return false;
    // A product of several seconds is cut into blocks, so that Ctrl-C does not wait for its end. A block packs its part
    // of b, which pays with so many rows, and goes over its part of c, which pays with so many columns of a.
    constexpr double kBlockOfThread = 34359738368.0 / sizeof(T), kShared = 1e7;
    constexpr double kRows = 1024, kDeep = 512, kLeastRows = 64;
    const double block = kBlockOfThread * (omp_in_parallel() ? 1 : num_threads());
    const double work = 2.0 * static_cast<double>(n);
    std::optional<PoolUse> all_threads;
    if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > kShared) all_threads.emplace();
    const bool own = outdoes_blas() && (beta == T(0) || beta == T(1));
    int64_t rows_together = m, deep = k;
    if (work * static_cast<double>(m) * static_cast<double>(k) > block) {
        deep = std::min(k, static_cast<int64_t>(std::max(kDeep, block / (work * kRows))));
        rows_together = static_cast<int64_t>(std::max(kLeastRows, block / (work * static_cast<double>(deep))));
    }
    for (int64_t row = 0; row < m; row += rows_together) {
        const int64_t rows = std::min(rows_together, m - row);
        int64_t from = 0;
        do {
            if (row > 0 || from > 0) safe_point();
            const int64_t depth = std::min(deep, k - from);
            const MatrixRef<T> left{a.data + row * a.row_stride + from * a.column_stride, rows, depth, a.row_stride,
                                    a.column_stride};
            const MatrixRef<T> right{b.data + from * b.row_stride, depth, n, b.row_stride, b.column_stride};
            const bool adds = from > 0 || beta == T(1);
            if (!own || !tile_product(left, right, c + row * n, adds, {}, std::numeric_limits<double>::infinity()))
                call_gemm(la.transpose, lb.transpose, static_cast<int>(rows), static_cast<int>(n),
                          static_cast<int>(depth), left.data, static_cast<int>(la.leading), right.data,
                          static_cast<int>(lb.leading), from > 0 ? T(1) : beta, c + row * n, static_cast<int>(n));
            from += depth;
        } while (from < k);
    }
    return true;
}

template bool gemm<float>(const MatrixRef<float>&, const MatrixRef<float>&, float*, float);
template bool gemm<double>(const MatrixRef<double>&, const MatrixRef<double>&, double*, double);

}  // namespace lunaria::cpu
