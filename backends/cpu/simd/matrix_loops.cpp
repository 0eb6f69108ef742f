// The rows of a matrix are padded with zeros to a width known to the compiler, and every step of an elimination goes
// over whole rows: what it leaves in columns that are done is never read again.
#include "backends/cpu/simd/matrix_loops.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

inline double absolute(double x) { return __builtin_fabs(x); }

template <int W>
struct Rows {
    alignas(64) double at[kLargestSmallMatrix][W];

    template <class T>
    void read(int rows, int columns, const T* from, int row_step, int column_step) {
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < W; ++j)
                at[i][j] = j < columns ? static_cast<double>(from[i * row_step + j * column_step]) : 0.0;
    }
    template <class T>
    void write(int rows, int columns, T* to) const {
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j) to[i * columns + j] = static_cast<T>(at[i][j]);
    }
    void make_unit(int n) {
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < W; ++j) at[i][j] = i == j ? 1.0 : 0.0;
    }
    void exchange(int i, int j) {
        for (int k = 0; k < W; ++k) {
            const double x = at[i][k];
            at[i][k] = at[j][k];
            at[j][k] = x;
        }
    }
    // Row i -= factor * row k.
    void subtract(int i, double factor, int k) {
        for (int j = 0; j < W; ++j) at[i][j] -= factor * at[k][j];
    }
    void scale(int i, double factor) {
        for (int j = 0; j < W; ++j) at[i][j] *= factor;
    }
};

// Turns a into its upper factor with rows exchanged so that pivots are largest, and b along with it. False at a pivot
// of 0 or NaN.
template <int W, int M>
bool eliminate(int n, Rows<W>& a, Rows<M>* b, double* reciprocal, double& sign) {
    for (int k = 0; k < n; ++k) {
        int pivot = k;
        double largest = absolute(a.at[k][k]);
        for (int i = k + 1; i < n; ++i) {
            const double size = absolute(a.at[i][k]);
            pivot = size > largest ? i : pivot;
            largest = size > largest ? size : largest;
        }
        if (!(largest > 0)) return false;
        if (pivot != k) {
            a.exchange(k, pivot);
            if (b) b->exchange(k, pivot);
            sign = -sign;
        }
        reciprocal[k] = 1.0 / a.at[k][k];
        for (int i = k + 1; i < n; ++i) {
            const double factor = a.at[i][k] * reciprocal[k];
            a.subtract(i, factor, k);
            if (b) b->subtract(i, factor, k);
        }
    }
    return true;
}

template <int W>
double norm_of(int n, const Rows<W>& a) {
    double sums[W] = {}, norm = 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < W; ++j) sums[j] += absolute(a.at[i][j]);
    for (int j = 0; j < n; ++j) norm = sums[j] > norm || sums[j] != sums[j] ? sums[j] : norm;
    return norm;
}

// Whether a matrix with this norm and upper factor is surely regular: its inverse has at most the norm of the factor's
// inverse, which back substitution with all signs equal bounds, times 2^(n - 1), which bounds that of the lower factor
// (N. J. Higham, 1987).
template <int W>
bool is_surely_regular(int n, double norm, const Rows<W>& upper, const double* reciprocal) {
    constexpr double kMostCondition = 1e15;
    double sums[W] = {}, largest = 0;
    for (int i = 0; i < n; ++i) {
        const double z = (1.0 + sums[i]) * absolute(reciprocal[i]);
        largest = z > largest || z != z ? z : largest;
        for (int j = 0; j < W; ++j) sums[j] += z * absolute(upper.at[i][j]);
    }
    return norm * largest * static_cast<double>(1 << (n - 1)) < kMostCondition;
}

template <int W, int M, class T>
bool solve_rows(int n, int m, const T* given, bool transposed, const T* rhs, T* out) {
    Rows<W> a;
    Rows<M> b;
    double reciprocal[kLargestSmallMatrix], sign = 1;
    a.read(n, n, given, transposed ? 1 : n, transposed ? n : 1);
    rhs ? b.read(n, m, rhs, m, 1) : b.make_unit(n);
    const double norm = norm_of(n, a);
    if (!eliminate(n, a, &b, reciprocal, sign) || !is_surely_regular(n, norm, a, reciprocal)) return false;
    for (int k = n - 1; k >= 0; --k) {
        b.scale(k, reciprocal[k]);
        for (int i = 0; i < k; ++i) b.subtract(i, a.at[i][k], k);
    }
    b.write(n, m, out);
    return true;
}

template <int W>
struct Width {
    static constexpr int value = W;
};

// Calls f with the width that n needs.
template <class F>
bool with_width(int n, F f) {
    if (n < 1 || n > kLargestSmallMatrix) return false;
    return n <= 4 ? f(Width<4>()) : n <= 8 ? f(Width<8>()) : f(Width<16>());
}

template <class T>
bool solve(int n, int m, const T* a, bool transposed, const T* b, T* out) {
    return with_width(n, [&](auto width) {
        constexpr int W = decltype(width)::value;
        if (m <= 4) return solve_rows<W, 4>(n, m, a, transposed, b, out);
        return m <= W && solve_rows<W, W>(n, m, a, transposed, b, out);
    });
}

template <class T>
bool pivots(int n, const T* given, double* diagonal, double* sign) {
    return with_width(n, [&](auto width) {
        constexpr int W = decltype(width)::value;
        Rows<W> a;
        double reciprocal[kLargestSmallMatrix];
        a.read(n, n, given, n, 1);
        *sign = 1;
        if (!eliminate<W, 4>(n, a, nullptr, reciprocal, *sign)) return false;
        for (int i = 0; i < n; ++i) diagonal[i] = a.at[i][i];
        return true;
    });
}

template <class T>
bool cholesky(int n, const T* given, bool upper, T* out) {
    return with_width(n, [&](auto width) {
        constexpr int W = decltype(width)::value;
        Rows<W> a, turned;
        a.read(n, n, given, n, 1);
        turned.read(n, n, given, 1, n);
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < W; ++j) a.at[i][j] = 0.5 * (a.at[i][j] + turned.at[i][j]);
        for (int k = 0; k < n; ++k) {
            const double pivot = a.at[k][k];
            if (!(pivot > 0) || pivot > 1e300) return false;
            const double root = __builtin_sqrt(pivot);
            for (int j = 0; j < W; ++j) a.at[k][j] /= root;
            for (int i = k + 1; i < n; ++i) a.subtract(i, a.at[k][i], k);
        }
        bool numbers = true;
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) {
                const int row = upper ? i : j, column = upper ? j : i;
                const double x = column < row ? 0.0 : a.at[row][column];
                numbers &= x == x;
                out[i * n + j] = static_cast<T>(x);
            }
        return numbers;
    });
}

template <class T>
bool triangular(int n, int m, const T* given, bool lower, bool transposed, bool unit, const T* rhs, T* out) {
    return with_width(n, [&](auto width) {
        constexpr int W = decltype(width)::value, M = 8;
        Rows<W> a;
        a.read(n, n, given, transposed ? 1 : n, transposed ? n : 1);
        double reciprocal[kLargestSmallMatrix];
        for (int i = 0; i < n; ++i) {
            if (!unit && a.at[i][i] == 0) return false;
            reciprocal[i] = unit ? 1.0 : 1.0 / a.at[i][i];
        }
        const bool forward = lower != transposed;
        for (int from = 0; from < m; from += M) {
            const int count = m - from < M ? m - from : M;
            Rows<M> b;
            b.read(n, count, rhs + from, m, 1);
            for (int step = 0; step < n; ++step) {
                const int k = forward ? step : n - 1 - step;
                b.scale(k, reciprocal[k]);
                for (int i = forward ? k + 1 : 0, end = forward ? n : k; i < end; ++i) b.subtract(i, a.at[i][k], k);
            }
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < count; ++j) out[i * m + from + j] = static_cast<T>(b.at[i][j]);
        }
        return true;
    });
}

}  // namespace

const MatrixLoops<float> matrix_loops_f32 = {solve<float>, pivots<float>, cholesky<float>, triangular<float>};
const MatrixLoops<double> matrix_loops_f64 = {solve<double>, pivots<double>, cholesky<double>, triangular<double>};

}  // namespace lunaria::cpu::LUNARIA_ISA
