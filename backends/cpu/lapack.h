// The LAPACK inside OpenBLAS, for matrices by columns, made to stop for an interrupt: some thousand rows
// keep it busy for minutes. Most of its routines leave the work to those of BLAS, and the program has some of these
// itself (lapack.cpp): they look for an interrupt and call OpenBLAS's. The others are cut into blocks here.
#pragma once

#include <cstddef>
#include <cstdint>

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
void dsyevd_(const char* job, const char* uplo, const int* n, double* a, const int* lda, double* w, double* work,
             const int* lwork, int* iwork, const int* liwork, int* info);
void dgeev_(const char* jobvl, const char* jobvr, const int* n, double* a, const int* lda, double* wr, double* wi,
            double* vl, const int* ldvl, double* vr, const int* ldvr, double* work, const int* lwork, int* info);
}

namespace lunaria::cpu {

// While it lives, what this thread calls of LAPACK throws when an interrupt has been asked for. The routines own
// nothing, so that leaving them half-way loses nothing.
class StoppableLapack {
  public:
    StoppableLapack();
    ~StoppableLapack();
    StoppableLapack(const StoppableLapack&) = delete;
    StoppableLapack& operator=(const StoppableLapack&) = delete;
};

// Singular values and vectors in either precision.
inline void call_gesdd(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u,
                       const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* iwork,
                       int* info) {
    dgesdd_(job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info);
}
inline void call_gesdd(const char* job, const int* m, const int* n, float* a, const int* lda, float* s, float* u,
                       const int* ldu, float* vt, const int* ldvt, float* work, const int* lwork, int* iwork,
                       int* info) {
    sgesdd_(job, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info);
}

// a (n x n) = p l u in place, with LAPACK's pivots, which count from 1. The number of the first pivot that is 0, or 0.
int lu_factors(int n, double* a, int* pivots);
// b (n x columns) = the solution of a x = b, or of a's transpose, with a's factors.
void lu_solve(int n, const double* factors, const int* pivots, bool transpose, int columns, double* b);
// The lower triangle of a becomes its Cholesky factor. The size of the first leading part that is not positive
// definite, or 0.
int cholesky_factor(int n, double* a);

}  // namespace lunaria::cpu
