// Small square matrices, row by row in registers and computed in f64 whatever their elements are: for batches of them,
// in which a call of LAPACK takes longer than its work. Every function returns false, and leaves its result undefined,
// where it does not serve: for larger sizes, and where a matrix is singular, not positive definite or holds NaN, or
// might be.
#pragma once

namespace lunaria::cpu {

inline constexpr int kLargestSmallMatrix = 16;

// Dense, row-major matrices of n x n and n x m elements.
template <class T>
struct MatrixLoops {
    // out = the solution of op(a) out = b, where op transposes or not; b null: the unit matrix, m = n.
    bool (*solve)(int n, int m, const T* a, bool transposed, const T* b, T* out);
    // The diagonal of the upper factor of a, and the sign of the permutation of its rows.
    bool (*pivots)(int n, const T* a, double* diagonal, double* sign);
    // The Cholesky factor of the mean of a and its transpose.
    bool (*cholesky)(int n, const T* a, bool upper, T* out);
    // out = the solution of op(a) out = b, of which only one triangle counts; unit: its diagonal is 1.
    bool (*triangular)(int n, int m, const T* a, bool lower, bool transposed, bool unit, const T* b, T* out);
};

namespace v2 {
extern const MatrixLoops<float> matrix_loops_f32;
extern const MatrixLoops<double> matrix_loops_f64;
}  // namespace v2
namespace avx2 {
extern const MatrixLoops<float> matrix_loops_f32;
extern const MatrixLoops<double> matrix_loops_f64;
}  // namespace avx2
namespace avx512 {
extern const MatrixLoops<float> matrix_loops_f32;
extern const MatrixLoops<double> matrix_loops_f64;
}  // namespace avx512

}  // namespace lunaria::cpu
