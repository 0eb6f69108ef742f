// The LAPACK inside OpenBLAS, for matrices by columns, made to stop for an interrupt: some thousand rows keep it busy
// for minutes. Most of its routines leave the work to routines of BLAS. The program defines some of those itself
// (lapack.cpp): they check for an interrupt and call OpenBLAS's. Other routines of LAPACK are cut into blocks here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/blas.h"
#include "core/tensor/dtype.h"

extern "C" {
void dgecon_(const char* norm, const int* n, const double* a, const int* lda, const double* anorm, double* rcond,
             double* work, int* iwork, int* info);
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info);
void dtrsm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,
            const double* alpha, const double* a, const int* lda, double* b, const int* ldb, size_t, size_t, size_t,
            size_t);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* lwork,
             int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work,
             const int* lwork, int* info);
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u,
             const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* iwork, int* info);
void sgesdd_(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u, const int* ldu,
             float* vt, const int* ldvt, float* work, const int* lwork, int* iwork, int* info);
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work, const int* lwork,
             int* info);
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau, float* work,
             const int* lwork, int* info);
void strsm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,
            const float* alpha, const float* a, const int* lda, float* b, const int* ldb, size_t, size_t, size_t,
            size_t);
void sgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c, const int* ldc,
            size_t, size_t);
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work,
             const int* lwork, int* iwork, const int* liwork, int* info);
void dgeev_(const char* jobvl, const char* jobvr, const int* n, double* a, const int* lda, double* wr, double* wi,
            double* vl, const int* ldvl, double* vr, const int* ldvr, double* work, const int* lwork, int* info);
void zgecon_(const char* norm, const int* n, const lunaria::Complex128* a, const int* lda, const double* anorm,
             double* rcond, lunaria::Complex128* work, double* rwork, int* info);
void zgetrf_(const int* m, const int* n, lunaria::Complex128* a, const int* lda, int* pivots, int* info);
void ztrsm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n,
            const lunaria::Complex128* alpha, const lunaria::Complex128* a, const int* lda, lunaria::Complex128* b,
            const int* ldb, size_t, size_t, size_t, size_t);
void zgeqrf_(const int* m, const int* n, lunaria::Complex128* a, const int* lda, lunaria::Complex128* tau,
             lunaria::Complex128* work, const int* lwork, int* info);
void zungqr_(const int* m, const int* n, const int* k, lunaria::Complex128* a, const int* lda,
             const lunaria::Complex128* tau, lunaria::Complex128* work, const int* lwork, int* info);
void zgesdd_(const char* job, const int* m, const int* n, lunaria::Complex128* a, const int* lda, double* s,
             lunaria::Complex128* u, const int* ldu, lunaria::Complex128* vt, const int* ldvt,
             lunaria::Complex128* work, const int* lwork, double* rwork, int* iwork, int* info);
void zheevd_(const char* job, const char* uplo, const int* n, lunaria::Complex128* a, const int* lda, double* w,
             lunaria::Complex128* work, const int* lwork, double* rwork, const int* lrwork, int* iwork,
             const int* liwork, int* info);
void zgeev_(const char* jobvl, const char* jobvr, const int* n, lunaria::Complex128* a, const int* lda,
            lunaria::Complex128* w, lunaria::Complex128* vl, const int* ldvl, lunaria::Complex128* vr, const int* ldvr,
            lunaria::Complex128* work, const int* lwork, double* rwork, int* info);
void dgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc, size_t, size_t);
void zgemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k, const lunaria::Complex128* alpha,
            const lunaria::Complex128* a, const int* lda, const lunaria::Complex128* b, const int* ldb,
            const lunaria::Complex128* beta, lunaria::Complex128* c, const int* ldc, size_t, size_t);
}

namespace lunaria::cpu {

// While it lives, LAPACK's routines in this thread throw when an interrupt has been asked for. The routines own
// nothing, so that leaving them half-way loses nothing. Throws memory_error where OpenBLAS has no room for its buffers.
class StoppableLapack {
  public:
    StoppableLapack();
    ~StoppableLapack();
    StoppableLapack(const StoppableLapack&) = delete;
    StoppableLapack& operator=(const StoppableLapack&) = delete;

  private:
    BlasCall call_;
};

// The routines under one name for both kinds of numbers; those for complex ones take one more array of real numbers.
namespace lapack {

inline void gecon(int n, const double* a, double norm, double* rcond) {
    const StoppableLapack stops;
    int info = 0;
    std::vector<double> work(4 * static_cast<size_t>(n));
    std::vector<int> integers(static_cast<size_t>(n));
    dgecon_("1", &n, a, &n, &norm, rcond, work.data(), integers.data(), &info);
}
inline void gecon(int n, const Complex128* a, double norm, double* rcond) {
    const StoppableLapack stops;
    int info = 0;
    std::vector<Complex128> work(2 * static_cast<size_t>(n));
    std::vector<double> reals(2 * static_cast<size_t>(n));
    zgecon_("1", &n, a, &n, &norm, rcond, work.data(), reals.data(), &info);
}

inline void getrf(int m, int n, double* a, int lda, int* pivots, int* info) { dgetrf_(&m, &n, a, &lda, pivots, info); }
inline void getrf(int m, int n, Complex128* a, int lda, int* pivots, int* info) {
    zgetrf_(&m, &n, a, &lda, pivots, info);
}

// b = the solution of op(a) x = b (side L) or of x op(a) = b (side R), a a triangle.
inline void trsm(const char* side, const char* uplo, const char* trans, const char* diag, int m, int n, const double* a,
                 int lda, double* b, int ldb) {
    const double one = 1;
    dtrsm_(side, uplo, trans, diag, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}
inline void trsm(const char* side, const char* uplo, const char* trans, const char* diag, int m, int n, const float* a,
                 int lda, float* b, int ldb) {
    const float one = 1;
    strsm_(side, uplo, trans, diag, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}
inline void trsm(const char* side, const char* uplo, const char* trans, const char* diag, int m, int n,
                 const Complex128* a, int lda, Complex128* b, int ldb) {
    const Complex128 one = 1;
    ztrsm_(side, uplo, trans, diag, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}

// c = alpha op(a) op(b) + beta c.
inline void gemm(const char* ta, const char* tb, int m, int n, int k, double alpha, const double* a, int lda,
                 const double* b, int ldb, double beta, double* c, int ldc) {
    dgemm_(ta, tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}
inline void gemm(const char* ta, const char* tb, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc) {
    sgemm_(ta, tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}
inline void gemm(const char* ta, const char* tb, int m, int n, int k, Complex128 alpha, const Complex128* a, int lda,
                 const Complex128* b, int ldb, Complex128 beta, Complex128* c, int ldc) {
    zgemm_(ta, tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}

inline void geqrf(int m, int n, double* a, int lda, double* tau, double* work, int size, int* info) {
    dgeqrf_(&m, &n, a, &lda, tau, work, &size, info);
}
inline void geqrf(int m, int n, float* a, int lda, float* tau, float* work, int size, int* info) {
    sgeqrf_(&m, &n, a, &lda, tau, work, &size, info);
}
inline void geqrf(int m, int n, Complex128* a, int lda, Complex128* tau, Complex128* work, int size, int* info) {
    zgeqrf_(&m, &n, a, &lda, tau, work, &size, info);
}

inline void orgqr(int m, int n, int k, double* a, int lda, const double* tau, double* work, int size, int* info) {
    dorgqr_(&m, &n, &k, a, &lda, tau, work, &size, info);
}
inline void orgqr(int m, int n, int k, float* a, int lda, const float* tau, float* work, int size, int* info) {
    sorgqr_(&m, &n, &k, a, &lda, tau, work, &size, info);
}
inline void orgqr(int m, int n, int k, Complex128* a, int lda, const Complex128* tau, Complex128* work, int size,
                  int* info) {
    zungqr_(&m, &n, &k, a, &lda, tau, work, &size, info);
}

// Singular values and vectors; the right vectors conjugated and as rows.
inline void gesdd(char job, int m, int n, double* a, int lda, double* s, double* u, int ldu, double* vt, int ldvt,
                  double* work, int size, int* info) {
    std::vector<int> integers(8 * static_cast<size_t>(std::min(m, n)));
    dgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &size, integers.data(), info);
}
inline void gesdd(char job, int m, int n, float* a, int lda, float* s, float* u, int ldu, float* vt, int ldvt,
                  float* work, int size, int* info) {
    std::vector<int> integers(8 * static_cast<size_t>(std::min(m, n)));
    sgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &size, integers.data(), info);
}
inline void gesdd(char job, int m, int n, Complex128* a, int lda, double* s, Complex128* u, int ldu, Complex128* vt,
                  int ldvt, Complex128* work, int size, int* info) {
    const auto least = static_cast<size_t>(std::min(m, n)), most = static_cast<size_t>(std::max(m, n));
    std::vector<int> integers(8 * least);
    std::vector<double> reals(least * std::max(5 * least + 7, 2 * most + 2 * least + 1));
    zgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &size, reals.data(), integers.data(), info);
}

// Eigenvalues w of the matrix given by the lower triangle of a; the vectors replace a.
inline void heevd(int n, double* a, int lda, double* w, double* work, int size, int* info) {
    const int integer_size = 3 + 5 * n;
    std::vector<int> integers(static_cast<size_t>(integer_size));
    dsyevd_("V", "L", &n, a, &lda, w, work, &size, integers.data(), &integer_size, info);
}
inline void heevd(int n, Complex128* a, int lda, double* w, Complex128* work, int size, int* info) {
    const auto rows = static_cast<size_t>(n);
    std::vector<int> integers(3 + 5 * rows);
    std::vector<double> reals(1 + 5 * rows + 2 * rows * rows);
    const int integer_size = static_cast<int>(integers.size()), real_size = static_cast<int>(reals.size());
    zheevd_("V", "L", &n, a, &lda, w, work, &size, reals.data(), &real_size, integers.data(), &integer_size, info);
}

}  // namespace lapack

// a (n x n) = p l u in place, with LAPACK's pivots, which count from 1. Returns the number of the first pivot that is
// 0, or 0. For double and Complex128, like the functions below.
template <class T>
int lu_factors(int n, T* a, int* pivots);
// b (n x columns) = the solution of a x = b, or of a's conjugate transpose, with a's factors.
template <class T>
void lu_solve(int n, const T* factors, const int* pivots, bool adjoint, int columns, T* b);
// Replaces the lower triangle of a by its Cholesky factor. Returns the size of the first leading part that is not
// positive definite, or 0. For float as well.
template <class T>
int cholesky_factor(int n, T* a);

}  // namespace lunaria::cpu
