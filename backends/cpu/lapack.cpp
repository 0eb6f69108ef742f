#include "backends/cpu/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>

#include "core/base/interrupt.h"

extern "C" {
void dgetrs_(const char* trans, const int* n, const int* nrhs, const double* a, const int* lda, const int* pivots,
             double* b, const int* ldb, int* info, size_t);
void dlaswp_(const int* n, double* a, const int* lda, const int* k1, const int* k2, const int* pivots, const int* step);
void spotrf_(const char* uplo, const int* n, float* a, const int* lda, int* info, size_t);
void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info, size_t);
void zgetrs_(const char* trans, const int* n, const int* nrhs, const lunaria::Complex128* a, const int* lda,
             const int* pivots, lunaria::Complex128* b, const int* ldb, int* info, size_t);
void zlaswp_(const int* n, lunaria::Complex128* a, const int* lda, const int* k1, const int* k2, const int* pivots,
             const int* step);
void zpotrf_(const char* uplo, const int* n, lunaria::Complex128* a, const int* lda, int* info, size_t);
}

namespace lunaria::cpu {

namespace {

thread_local int stoppable = 0;

void look_for_interrupt() {
    if (stoppable > 0) poll_interrupt();
}

// The number of multiplications between two looks at an interrupt, some hundredths of a second.
constexpr double kWork = 1e9;

template <class F>
F next_symbol(const char* name, F) {
    return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// The number of columns processed together, of n numbers that take `work` multiplications each.
int columns_together(double work) { return static_cast<int>(std::clamp(kWork / work, 16.0, 4096.0)); }

// Calls BLAS's gemm, for any kind of numbers, some columns at a time: c = alpha op(a) op(b) + beta c.
template <class T, class Gemm>
void stoppable_gemm(Gemm next, const char* ta, const char* tb, const int* m, const int* n, const int* k, const T* alpha,
                    const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc,
                    size_t la, size_t lb) {
    const double column = static_cast<double>(*m) * static_cast<double>(*k);
    const int together = column > 0 ? columns_together(column) : *n;
    if (stoppable == 0 || *n <= together) {
        look_for_interrupt();
        return next(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
    }
    const ptrdiff_t step = *tb == 'N' || *tb == 'n' ? *ldb : 1;
    for (int j = 0; j < *n; j += together) {
        look_for_interrupt();
        const int columns = std::min(together, *n - j);
        next(ta, tb, m, &columns, k, alpha, a, lda, b + j * step, ldb, beta, c + static_cast<ptrdiff_t>(j) * *ldc, ldc,
             la, lb);
    }
}

}  // namespace

}  // namespace lunaria::cpu

// LAPACK's own calls of these routines end up here, since a program's symbols come before those of its libraries. The
// parameters after the arguments are the lengths of Fortran's strings.
extern "C" {

[[gnu::visibility("default")]] void dgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,
                                           const double* alpha, const double* a, const int* lda, const double* b,
                                           const int* ldb, const double* beta, double* c, const int* ldc, size_t la,
                                           size_t lb) {
    static const auto next = lunaria::cpu::next_symbol("dgemm_", &dgemm_);
    lunaria::cpu::stoppable_gemm(next, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
}

[[gnu::visibility("default")]] void sgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,
                                           const float* alpha, const float* a, const int* lda, const float* b,
                                           const int* ldb, const float* beta, float* c, const int* ldc, size_t la,
                                           size_t lb) {
    static const auto next = lunaria::cpu::next_symbol("sgemm_", &sgemm_);
    lunaria::cpu::stoppable_gemm(next, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
}

[[gnu::visibility("default")]] void zgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,
                                           const lunaria::Complex128* alpha, const lunaria::Complex128* a,
                                           const int* lda, const lunaria::Complex128* b, const int* ldb,
                                           const lunaria::Complex128* beta, lunaria::Complex128* c, const int* ldc,
                                           size_t la, size_t lb) {
    static const auto next = lunaria::cpu::next_symbol("zgemm_", &zgemm_);
    lunaria::cpu::stoppable_gemm(next, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, la, lb);
}

[[gnu::visibility("default")]] void zgemv_(const char* trans, const int* m, const int* n,
                                           const lunaria::Complex128* alpha, const lunaria::Complex128* a,
                                           const int* lda, const lunaria::Complex128* x, const int* incx,
                                           const lunaria::Complex128* beta, lunaria::Complex128* y, const int* incy,
                                           size_t length) {
    static const auto next = lunaria::cpu::next_symbol("zgemv_", &zgemv_);
    lunaria::cpu::look_for_interrupt();
    next(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, length);
}

[[gnu::visibility("default")]] void zhemv_(const char* uplo, const int* n, const lunaria::Complex128* alpha,
                                           const lunaria::Complex128* a, const int* lda, const lunaria::Complex128* x,
                                           const int* incx, const lunaria::Complex128* beta, lunaria::Complex128* y,
                                           const int* incy, size_t length) {
    static const auto next = lunaria::cpu::next_symbol("zhemv_", &zhemv_);
    lunaria::cpu::look_for_interrupt();
    next(uplo, n, alpha, a, lda, x, incx, beta, y, incy, length);
}

[[gnu::visibility("default")]] void sgemv_(const char* trans, const int* m, const int* n, const float* alpha,
                                           const float* a, const int* lda, const float* x, const int* incx,
                                           const float* beta, float* y, const int* incy, size_t length) {
    static const auto next = lunaria::cpu::next_symbol("sgemv_", &sgemv_);
    lunaria::cpu::look_for_interrupt();
    next(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, length);
}

[[gnu::visibility("default")]] void dgemv_(const char* trans, const int* m, const int* n, const double* alpha,
                                           const double* a, const int* lda, const double* x, const int* incx,
                                           const double* beta, double* y, const int* incy, size_t length) {
    static const auto next = lunaria::cpu::next_symbol("dgemv_", &dgemv_);
    lunaria::cpu::look_for_interrupt();
    next(trans, m, n, alpha, a, lda, x, incx, beta, y, incy, length);
}

[[gnu::visibility("default")]] void dsymv_(const char* uplo, const int* n, const double* alpha, const double* a,
                                           const int* lda, const double* x, const int* incx, const double* beta,
                                           double* y, const int* incy, size_t length) {
    static const auto next = lunaria::cpu::next_symbol("dsymv_", &dsymv_);
    lunaria::cpu::look_for_interrupt();
    next(uplo, n, alpha, a, lda, x, incx, beta, y, incy, length);
}

// A sweep of rotations, the main step of the iterations for eigenvalues and singular values.
[[gnu::visibility("default")]] void dlasr_(const char* side, const char* pivot, const char* direct, const int* m,
                                           const int* n, const double* c, const double* s, double* a, const int* lda,
                                           size_t l1, size_t l2, size_t l3) {
    static const auto next = lunaria::cpu::next_symbol("dlasr_", &dlasr_);
    lunaria::cpu::look_for_interrupt();
    next(side, pivot, direct, m, n, c, s, a, lda, l1, l2, l3);
}

[[gnu::visibility("default")]] void zlasr_(const char* side, const char* pivot, const char* direct, const int* m,
                                           const int* n, const double* c, const double* s, lunaria::Complex128* a,
                                           const int* lda, size_t l1, size_t l2, size_t l3) {
    static const auto next = lunaria::cpu::next_symbol("zlasr_", &zlasr_);
    lunaria::cpu::look_for_interrupt();
    next(side, pivot, direct, m, n, c, s, a, lda, l1, l2, l3);
}

[[gnu::visibility("default")]] void slasr_(const char* side, const char* pivot, const char* direct, const int* m,
                                           const int* n, const float* c, const float* s, float* a, const int* lda,
                                           size_t l1, size_t l2, size_t l3) {
    static const auto next = lunaria::cpu::next_symbol("slasr_", &slasr_);
    lunaria::cpu::look_for_interrupt();
    next(side, pivot, direct, m, n, c, s, a, lda, l1, l2, l3);
}
}

namespace lunaria::cpu {

namespace {

// The number of columns that are factored at once; smaller matrices are not cut.
constexpr int kPanel = 128, kUncut = 768;
constexpr int kStep = 1;

template <class T>
T* at(T* a, int n, int i, int j) {
    return a + static_cast<ptrdiff_t>(j) * n + i;
}

// Exchanges rows k1 to k2 (from 1) of n columns by the pivots.
void exchange(int n, double* a, int lda, int k1, int k2, const int* pivots) {
    dlaswp_(&n, a, &lda, &k1, &k2, pivots, &kStep);
}
void exchange(int n, Complex128* a, int lda, int k1, int k2, const int* pivots) {
    zlaswp_(&n, a, &lda, &k1, &k2, pivots, &kStep);
}

void getrs(bool adjoint, int n, int columns, const double* a, const int* pivots, double* b) {
    int info = 0;
    dgetrs_(adjoint ? "T" : "N", &n, &columns, a, &n, pivots, b, &n, &info, 1);
}
void getrs(bool adjoint, int n, int columns, const Complex128* a, const int* pivots, Complex128* b) {
    int info = 0;
    zgetrs_(adjoint ? "C" : "N", &n, &columns, a, &n, pivots, b, &n, &info, 1);
}

void potrf(int n, double* a, int lda, int* info) { dpotrf_("L", &n, a, &lda, info, 1); }
void potrf(int n, float* a, int lda, int* info) { spotrf_("L", &n, a, &lda, info, 1); }
void potrf(int n, Complex128* a, int lda, int* info) { zpotrf_("L", &n, a, &lda, info, 1); }

}  // namespace

StoppableLapack::StoppableLapack() {
    call_.need("linalg");
    ++stoppable;
}
StoppableLapack::~StoppableLapack() { --stoppable; }

template <class T>
int lu_factors(int n, T* a, int* pivots) {
    const StoppableLapack stops;
    const int panel = n <= kUncut ? n : kPanel;
    int first_zero = 0;
    for (int j = 0; j < n; j += panel) {
        look_for_interrupt();
        const int width = std::min(panel, n - j), below = n - j, rest = below - width;
        int info = 0;
        lapack::getrf(below, width, at(a, n, j, j), n, pivots + j, &info);
        if (info > 0 && first_zero == 0) first_zero = info + j;
        for (int i = j; i < j + width; ++i) pivots[i] += j;
        const int from = j + 1, to = j + width;
        if (j > 0) exchange(j, a, n, from, to, pivots);
        if (rest == 0) continue;
        T* right = at(a, n, 0, j + width);
        exchange(rest, right, n, from, to, pivots);
        lapack::trsm("L", "L", "N", "U", width, rest, at(a, n, j, j), n, right + j, n);
        lapack::gemm("N", "N", rest, rest, width, -1, at(a, n, j + width, j), n, right + j, n, 1, right + j + width, n);
    }
    return first_zero;
}

template <class T>
void lu_solve(int n, const T* factors, const int* pivots, bool adjoint, int columns, T* b) {
    const int together = columns_together(static_cast<double>(n) * static_cast<double>(n));
    for (int j = 0; j < columns; j += together) {
        poll_interrupt();
        getrs(adjoint, n, std::min(together, columns - j), factors, pivots, at(b, n, 0, j));
    }
}

template <class T>
int cholesky_factor(int n, T* a) {
    const StoppableLapack stops;
    const int panel = n <= kUncut ? n : kPanel;
    for (int j = 0; j < n; j += panel) {
        look_for_interrupt();
        const int width = std::min(panel, n - j), below = n - j, rest = below - width;
        T* corner = at(a, n, j, j);
        if (j > 0) lapack::gemm("N", "C", below, width, j, -1, a + j, n, a + j, n, 1, corner, n);
        int info = 0;
        potrf(width, corner, n, &info);
        if (info > 0) return info + j;
        if (rest > 0) lapack::trsm("R", "L", "C", "N", rest, width, corner, n, corner + width, n);
    }
    return 0;
}

template int lu_factors(int, double*, int*);
template int lu_factors(int, Complex128*, int*);
template void lu_solve(int, const double*, const int*, bool, int, double*);
template void lu_solve(int, const Complex128*, const int*, bool, int, Complex128*);
template int cholesky_factor(int, float*);
template int cholesky_factor(int, double*);
template int cholesky_factor(int, Complex128*);

}  // namespace lunaria::cpu
