// CPU kernels: decompositions of matrices, by the LAPACK inside OpenBLAS. Everything is computed in f64 (complex128 for
// complex numbers) and rounded once, also for f32: an f32 decomposition loses half of its digits. The exceptions are
// decompositions of large matrices of f32 by orthogonal transformations and Cholesky's, which are stable and take time,
// and whose users expect no more digits than LAPACK gives in f32.
//
// LAPACK counts by columns. A row-major matrix read that way is its transpose, which makes no difference to inverses
// and determinants; elsewhere a matrix is transposed on the way in or out.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/lapack.h"
#include "backends/cpu/matrices.h"
#include "backends/cpu/small_matrices.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"

namespace lunaria::cpu {

namespace {

template <class T>
struct Lu {
    ColumnsOf<T> m;
    std::vector<int> pivots;
    bool singular = false;

    explicit Lu(ColumnsOf<T> matrix) : m(std::move(matrix)), pivots(m.data.size() ? index(m.rows) : 0) {
        const int n = m.rows;
        if (n == 0) return;
        double norm = 0;  // largest sum of a column
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int i = 0; i < n; ++i) sum += std::abs(m.at(i, j));
            norm = std::max(norm, sum);
        }
        singular = lu_factors(n, m.data.data(), pivots.data()) > 0;
        if (singular || !std::isfinite(norm)) return;
        // Rounding hides most singular matrices: a zero pivot becomes a tiny one. The condition number reveals it.
        double rcond = 0;
        lapack::gecon(n, m.data.data(), norm, &rcond);
        singular = rcond < std::numeric_limits<double>::epsilon() / 4;
    }
};

void expect_regular(const KernelCall& c, bool singular, int64_t n, int64_t batches) {
    if (!singular) return;
    throw value_error(c.op.name(),
                      batches > 1 ? str("matrix ", n, " of the batch is singular") : "the matrix is singular")
        .hint("pinv gives the pseudo-inverse, which always exists");
}

template <class T>
bool inverse(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    int64_t batches = batches_in(x), n = rows_in(x);
    const auto left = left_by_small_loops(x, n, batches, [&](const auto& loops, auto zero, int64_t b) {
        using E = decltype(zero);
        const auto size = static_cast<int>(n);
        return loops.solve(size, size, x.data<E>() + b * n * n, false, nullptr, c.out[0].data<E>() + b * n * n);
    });
    for (int64_t b : left) {
        poll_interrupt();
        Lu<T> lu(read<T>(x, b));
        expect_regular(c, lu.singular, b, batches);
        ColumnsOf<T> result(lu.m.rows, lu.m.rows);
        for (int i = 0; i < result.rows; ++i) result.at(i, i) = 1;
        lu_solve(lu.m.rows, lu.m.data.data(), lu.pivots.data(), false, result.columns, result.data.data());
        write(c.out[0], b, result);
    }
    return true;
}

template <class T>
bool matrix_solve(const KernelCall& c) {
    const Tensor& a = c.tensor(0);
    // A vector for each matrix is a matrix of one column.
    auto columns = [&](const Tensor& t) {
        Shape shape = t.shape();
        if (t.rank() < a.rank()) shape.push_back(1);
        return t.reshaped(shape);
    };
    const Tensor rhs = columns(c.tensor(1)), out = columns(c.out[0]);
    check_size(c, a);
    check_size(c, rhs);
    int64_t batches = batches_in(a), n = rows_in(a), m = columns_in(rhs);
    const bool adjoint = c.args[2].boolean();
    const bool same = a.dtype() == rhs.dtype() && a.dtype() == out.dtype();
    const auto left = left_by_small_loops(a, n, batches, [&](const auto& loops, auto zero, int64_t b) {
        using E = decltype(zero);
        return same && m <= kLargestSmallMatrix &&
               loops.solve(static_cast<int>(n), static_cast<int>(m), a.data<E>() + b * n * n, adjoint,
                           rhs.data<E>() + b * n * m, out.data<E>() + b * n * m);
    });
    for (int64_t b : left) {
        poll_interrupt();
        Lu<T> lu(read<T>(a, b));
        expect_regular(c, lu.singular, b, batches);
        ColumnsOf<T> x = read<T>(rhs, b);
        if (lu.m.rows > 0) lu_solve(lu.m.rows, lu.m.data.data(), lu.pivots.data(), adjoint, x.columns, x.data.data());
        write(out, b, x);
    }
    return true;
}

double phase_of(double x) { return x < 0 ? -1 : x == 0 ? 0 : 1; }
Complex128 phase_of(Complex128 z) { return z == 0.0 ? 0 : z / std::abs(z); }

// Sign (for complex numbers: phase) and logarithm of |det|, which cannot overflow.
template <class T>
std::pair<T, double> log_determinant(Lu<T>& lu) {
    T sign = 1;
    double log = 0;
    for (int i = 0; i < lu.m.rows; ++i) {
        const T pivot = lu.m.at(i, i);
        if (lu.pivots[index(i)] != i + 1) sign = -sign;
        sign *= phase_of(pivot);
        log += std::log(std::abs(pivot));
    }
    return {sign, log};
}

// Calls use(number of the matrix, diagonal of its upper factor, sign of the permutation) for small matrices, and
// returns the numbers of the others.
template <class F>
std::vector<int64_t> left_by_pivots(const KernelCall& c, F use) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    const int64_t n = rows_in(x);
    return left_by_small_loops(x, n, batches_in(x), [&](const auto& loops, auto zero, int64_t b) {
        using E = decltype(zero);
        double diagonal[kLargestSmallMatrix], sign = 1;
        if (!loops.pivots(static_cast<int>(n), x.data<E>() + b * n * n, diagonal, &sign)) return false;
        use(b, std::span<const double>(diagonal, static_cast<size_t>(n)), sign);
        return true;
    });
}

template <class T>
bool det(const KernelCall& c) {
    const auto left = left_by_pivots(c, [&](int64_t b, std::span<const double> diagonal, double sign) {
        for (const double pivot : diagonal) sign *= pivot;
        store(c.out[0], b, sign);
    });
    for (const int64_t b : left) {
        poll_interrupt();
        Lu<T> lu(read<T>(c.tensor(0), b));
        T product = 1;
        for (int i = 0; i < lu.m.rows; ++i) product *= lu.pivots[index(i)] != i + 1 ? -lu.m.at(i, i) : lu.m.at(i, i);
        store(c.out[0], b, product);
    }
    return true;
}

template <class T>
bool slogdet(const KernelCall& c) {
    const auto left = left_by_pivots(c, [&](int64_t b, std::span<const double> diagonal, double sign) {
        double log = 0;
        for (const double pivot : diagonal) {
            sign *= phase_of(pivot);
            log += std::log(std::abs(pivot));
        }
        store(c.out[0], b, sign);
        store(c.out[1], b, log);
    });
    for (const int64_t b : left) {
        poll_interrupt();
        Lu<T> lu(read<T>(c.tensor(0), b));
        auto [sign, log] = log_determinant(lu);
        store(c.out[0], b, sign);
        store(c.out[1], b, log);
    }
    return true;
}

template <class T>
struct Svd {
    std::vector<RealOf<T>> s;
    ColumnsOf<T> u, vt;
    int info = 0;  // LAPACK's code: not 0 if it did not converge

    // `job`: A all vectors, S those that belong to a singular value.
    Svd(const KernelCall& c, ColumnsOf<T> m, char job)
        : s(index(std::min(m.rows, m.columns))),
          u(m.rows, job == 'A' ? m.rows : std::min(m.rows, m.columns)),
          vt(job == 'A' ? m.columns : std::min(m.rows, m.columns), m.columns) {
        expect_finite(c, m);
        if (s.empty()) {
            for (int i = 0; i < std::min(u.rows, u.columns); ++i) u.at(i, i) = 1;
            for (int i = 0; i < std::min(vt.rows, vt.columns); ++i) vt.at(i, i) = 1;
            return;
        }
        with_work<T>([&](T* work, int size) {
            lapack::gesdd(job, m.rows, m.columns, m.data.data(), m.leading(), s.data(), u.data.data(), u.leading(),
                          vt.data.data(), vt.leading(), work, size, &info);
        });
    }
};

// The conjugate transpose.
template <class T>
ColumnsOf<T> adjoint_of(ColumnsOf<T>& m) {
    ColumnsOf<T> t(m.columns, m.rows);
    for_tiles(m.rows, m.columns, [&](int i, int j) { t.at(j, i) = conjugate(m.at(i, j)); });
    return t;
}

// False where LAPACK does not converge in the precision T.
template <class T>
bool write_svd(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    char job = c.args[1].boolean() ? 'A' : 'S';
    for (const int64_t b : matrices_of(c)) {
        Svd<T> f(c, read<T>(x, b), job);
        if (f.info != 0) return false;
        ColumnsOf<T> v = adjoint_of(f.vt);
        write(c.out[0], b, f.s);
        write(c.out[1], b, f.u);
        write(c.out[2], b, v);
    }
    return true;
}

template <class T>
bool svd(const KernelCall& c) {
    if (!write_svd<T>(c)) expect_converged(c, 1);
    return true;
}
bool svd_single(const KernelCall& c) { return c.tensor(0).dtype() == DType::f32 && write_svd<float>(c); }

template <class T>
ColumnsOf<T> product(const ColumnsOf<T>& a, const ColumnsOf<T>& b) {
    ColumnsOf<T> m(a.rows, b.columns);
    if (m.data.empty() || a.columns == 0) return m;
    if constexpr (!kIsComplex<T>) {
        // Read by columns, the row-major matrices are their transposes, and so is the product.
        const MatrixRef<T> left{b.data.data(), b.columns, b.rows, b.rows, 1};
        const MatrixRef<T> right{a.data.data(), a.columns, a.rows, a.rows, 1};
        if (gemm(left, right, m.data.data(), 0.0)) return m;
    }
    const StoppableLapack stops;
    lapack::gemm("N", "N", m.rows, m.columns, a.columns, 1, a.data.data(), a.leading(), b.data.data(), b.leading(), 0,
                 m.data.data(), m.leading());
    return m;
}

// u diag(weights) v^H.
template <class T>
ColumnsOf<T> recombine(Svd<T>& f, const Doubles& weights) {
    ColumnsOf<T> scaled(f.u.rows, static_cast<int>(weights.size()));
    for (int j = 0; j < scaled.columns; ++j)
        for (int i = 0; i < scaled.rows; ++i) scaled.at(i, j) = weights[index(j)] * f.u.at(i, j);
    return product(scaled, f.vt);
}

// The factors of the n-th matrix, without the vectors that belong to no singular value.
template <class T>
Svd<T> thin_svd(const KernelCall& c, int64_t n) {
    Svd<T> f(c, read<T>(c.tensor(0), n), 'S');
    expect_converged(c, f.info);
    return f;
}

template <class T>
T phase_of_determinant(ColumnsOf<T> m) {
    Lu<T> lu(std::move(m));
    return log_determinant(lu).first;
}

// The cofactors of u diag(s) v^H are det(u) det(v^H) times the conjugate of u diag(products of the other s) v^H: no
// division by s.
template <class T>
bool cofactor(const KernelCall& c) {
    for (const int64_t b : matrices_of(c)) {
        Svd<T> f = thin_svd<T>(c, b);
        const T phase = phase_of_determinant(f.u) * phase_of_determinant(f.vt);
        Doubles others(f.s.size(), 1);
        for (size_t i = 0; i < others.size(); ++i)
            for (size_t j = 0; j < others.size(); ++j)
                if (i != j) others[i] *= f.s[j];
        ColumnsOf<T> m = recombine(f, others);
        for (T& value : m.data) value = phase * conjugate(value);
        write(c.out[0], b, m);
    }
    return true;
}

// The products of all s but two.
ColumnsOf<double> products_but_two(const Doubles& s) {
    const auto n = static_cast<int>(s.size());
    Doubles before(s.size() + 1, 1), behind(s.size() + 1, 1);
    for (size_t i = 0; i < s.size(); ++i) before[i + 1] = before[i] * s[i];
    for (size_t i = s.size(); i-- > 0;) behind[i] = behind[i + 1] * s[i];
    ColumnsOf<double> products(n, n);
    for (int i = 0; i < n; ++i) {
        double between = 1;
        for (int j = i + 1; j < n; ++j) {
            products.at(i, j) = products.at(j, i) = before[index(i)] * between * behind[index(j + 1)];
            between *= s[index(j)];
        }
    }
    return products;
}

// As the cofactors of u diag(s) v^H. With e = u^H d v, the cofactors of diag(s) + e change by -e[l, k] times the
// product of all s but two off the diagonal, and by the sum over i of e[i, i] times such a product on it.
template <class T>
bool cofactor_slope(const KernelCall& c) {
    for (const int64_t b : matrices_of(c)) {
        Svd<T> f = thin_svd<T>(c, b);
        const T phase = phase_of_determinant(f.u) * phase_of_determinant(f.vt);
        ColumnsOf<T> e = product(product(adjoint_of(f.u), read<T>(c.tensor(1), b)), adjoint_of(f.vt));
        ColumnsOf<double> products = products_but_two(f.s);
        ColumnsOf<T> change(e.rows, e.columns);
        for (int k = 0; k < e.rows; ++k) {
            T sum = 0;
            for (int l = 0; l < e.columns; ++l) {
                if (l == k) continue;
                change.at(k, l) = -conjugate(e.at(l, k)) * products.at(k, l);
                sum += e.at(l, l) * products.at(k, l);
            }
            change.at(k, k) = conjugate(sum);
        }
        ColumnsOf<T> m = product(product(f.u, change), f.vt);
        for (T& value : m.data) value = phase * conjugate(value);
        write(c.out[0], b, m);
    }
    return true;
}

template <class T>
bool pinv(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    double digits =
        part_of(c.dtype) == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    double atol = c.has(1) ? c.args[1].number() : 0;
    double rtol = c.has(2)   ? c.args[2].number()
                  : c.has(1) ? 0
                             : digits * static_cast<double>(std::max(rows_in(x), columns_in(x)));
    for (const int64_t b : matrices_of(c)) {
        Svd<T> f = thin_svd<T>(c, b);
        Doubles inverses;
        double least = std::max(atol, rtol * (f.s.empty() ? 0 : f.s[0]));
        for (double s : f.s) inverses.push_back(s > least ? 1 / s : 0);
        ColumnsOf<T> m = recombine(f, inverses), pseudo_inverse = adjoint_of(m);
        write(c.out[0], b, pseudo_inverse);
    }
    return true;
}

// The decompositions of symmetric (Hermitian) matrices use the mean of both triangles, so that their gradients, which
// are symmetric, are those of the computed function.
template <class T>
void symmetrise(ColumnsOf<T>& m) {
    for_tiles(m.rows, m.columns, [&](int i, int j) {
        if (j > i) return;
        m.at(i, j) = RealOf<T>(0.5) * (m.at(i, j) + conjugate(m.at(j, i)));
        m.at(j, i) = conjugate(m.at(i, j));
    });
}

// In floats a decomposition that fails is left to doubles.
template <class T>
constexpr bool kSingle = std::is_same_v<T, float>;

template <class T>
bool cholesky(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    bool upper = c.args[1].boolean();
    check_size(c, x);
    const int64_t n = rows_in(x);
    const auto left = left_by_small_loops(x, n, batches_in(x), [&](const auto& loops, auto zero, int64_t b) {
        using E = decltype(zero);
        return loops.cholesky(static_cast<int>(n), x.data<E>() + b * n * n, upper, c.out[0].data<E>() + b * n * n);
    });
    for (const int64_t b : left) {
        poll_interrupt();
        ColumnsOf<T> m = read<T>(x, b);
        symmetrise(m);
        const int info = cholesky_factor(m.rows, m.data.data());
        const bool failed =
            info > 0 || std::any_of(m.data.begin(), m.data.end(), [](T v) { return std::isnan(std::abs(v)); });
        if (failed && kSingle<T>) return false;
        if (failed)
            throw value_error(c.op.name(),
                              str("the matrix is not positive definite: its leading part of size ", info, " is not"));
        for_tiles(m.rows, m.columns, [&](int i, int j) {
            if (i < j) m.at(i, j) = 0;
        });
        if (upper) m = adjoint_of(m);
        write(c.out[0], b, m);
    }
    return true;
}

template <class T>
bool qr(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    for (const int64_t b : matrices_of(c)) {
        ColumnsOf<T> m = read<T>(x, b);
        int least = std::min(m.rows, m.columns), info = 0;
        ColumnsOf<T> q(m.rows, columns_in(c.out[0])), r(rows_in(c.out[1]), m.columns);
        std::vector<T> tau(index(least));
        if (least)
            with_work<T>([&](T* work, int size) {
                lapack::geqrf(m.rows, m.columns, m.data.data(), m.leading(), tau.data(), work, size, &info);
            });
        for (int j = 0; j < r.columns; ++j)
            for (int i = 0; i <= std::min(j, r.rows - 1); ++i) r.at(i, j) = i < least ? m.at(i, j) : 0;
        for (int j = 0; j < std::min(q.columns, m.columns); ++j)
            for (int i = 0; i < q.rows; ++i) q.at(i, j) = m.at(i, j);
        if (q.rows && q.columns)
            with_work<T>([&](T* work, int size) {
                lapack::orgqr(q.rows, q.columns, least, q.data.data(), q.leading(), tau.data(), work, size, &info);
            });
        write(c.out[0], b, q);
        write(c.out[1], b, r);
    }
    return true;
}

template <class T>
bool eigh(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    for (const int64_t b : matrices_of(c)) {
        ColumnsOf<T> m = read<T>(x, b);
        expect_finite(c, m);
        symmetrise(m);
        std::vector<RealOf<T>> w(index(m.rows));
        int info = 0;
        if (m.rows)
            with_work<T>([&](T* work, int size) {
                lapack::heevd(m.rows, m.data.data(), m.leading(), w.data(), work, size, &info);
            });
        expect_converged(c, info);
        write(c.out[0], b, w);
        write(c.out[1], b, m);
    }
    return true;
}

// Eigenvalues w and vectors v (columns) of a matrix of complex numbers.
void eigen(const KernelCall& c, ColumnsOf<Complex128>& m, std::vector<Complex128>& w, ColumnsOf<Complex128>& v) {
    const int n = m.rows, lda = m.leading(), one = 1;
    int info = 0;
    Doubles reals(2 * index(n));
    with_work<Complex128>([&](Complex128* work, int size) {
        zgeev_("N", "V", &n, m.data.data(), &lda, w.data(), nullptr, &one, v.data.data(), &lda, work, &size,
               reals.data(), &info);
    });
    expect_converged(c, info);
}

// The same for real matrices. LAPACK's columns for a pair of conjugate eigenvalues are the real and the imaginary part.
void eigen(const KernelCall& c, ColumnsOf<double>& m, std::vector<Complex128>& w, ColumnsOf<Complex128>& v) {
    const int n = m.rows, lda = m.leading(), one = 1;
    int info = 0;
    Doubles re(index(n)), im(index(n));
    ColumnsOf<double> parts(n, n);
    with_work<double>([&](double* work, int size) {
        dgeev_("N", "V", &n, m.data.data(), &lda, re.data(), im.data(), nullptr, &one, parts.data.data(), &lda, work,
               &size, &info);
    });
    expect_converged(c, info);
    for (int j = 0; j < n; ++j) {
        w[index(j)] = {re[index(j)], im[index(j)]};
        const bool second = im[index(j)] < 0, pair = im[index(j)] != 0;
        for (int i = 0; i < n; ++i) {
            const double real = pair ? parts.at(i, second ? j - 1 : j) : parts.at(i, j);
            v.at(i, j) = {real, !pair ? 0 : second ? -parts.at(i, j) : parts.at(i, j + 1)};
        }
    }
}

template <class T>
bool eig(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    for (const int64_t b : matrices_of(c)) {
        ColumnsOf<T> m = read<T>(x, b);
        expect_finite(c, m);
        std::vector<Complex128> w(index(m.rows));
        ColumnsOf<Complex128> v(m.rows, m.rows);
        if (m.rows > 0) eigen(c, m, w, v);
        write(c.out[0], b, w);
        write(c.out[1], b, v);
    }
    return true;
}

// 1 / (x_j - x_i). Values count as equal if they differ only by the rounding error of the largest.
template <class T>
bool reciprocal_gaps(const KernelCall& c) {
    const Tensor &x = c.tensor(0), &used = c.tensor(1);
    const int64_t n = x.shape().back();
    if (x.size() == 0) return true;
    const std::string& where = c.args[2].string();
    const double digits =
        part_of(c.dtype) == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    const Tensor rows = x.reshaped({x.size() / n, 1, n});
    for (int64_t b = 0; b < x.size() / n; ++b) {
        poll_interrupt();
        ColumnsOf<T> values = read<T>(rows, b), gaps(n, n);
        double largest = 0;
        for (const T& v : values.data) largest = std::max(largest, std::abs(v));
        const double equal = digits * static_cast<double>(n) * largest;
        for (int i = 0; i < gaps.rows; ++i)
            for (int j = 0; j < gaps.columns; ++j) {
                const T gap = values.at(0, j) - values.at(0, i);
                if (i == j || !(std::abs(gap) > equal)) {
                    if (i == j || (used.at(b * n + i) == 0 && used.at(b * n + j) == 0)) continue;
                    throw value_error(where, str("the values ", std::min(i, j), " and ", std::max(i, j),
                                                 " are equal: their vectors have no gradient"))
                        .hint("use the values alone, or add different small numbers to the diagonal of the matrix");
                }
                gaps.at(i, j) = 1.0 / gap;
            }
        write(c.out[0], b, gaps);
    }
    return true;
}

// Scaling and squaring around a Taylor polynomial: with the norm below 1/2, its terms up to the 19th power are exact to
// the last digit. Groups of four terms form a polynomial in the fourth power (M. Paterson and L. Stockmeyer, 1973).
template <class T>
bool matrix_exp(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    for (const int64_t b : matrices_of(c)) {
        ColumnsOf<T> m = read<T>(x, b);
        expect_finite(c, m);
        double norm = 0;
        for (int j = 0; j < m.columns; ++j) {
            double sum = 0;
            for (int i = 0; i < m.rows; ++i) sum += std::abs(m.at(i, j));
            norm = std::max(norm, sum);
        }
        int halvings = norm > 0.5 ? static_cast<int>(std::ceil(std::log2(norm / 0.5))) : 0;
        for (T& v : m.data) v *= std::ldexp(1.0, -halvings);
        const ColumnsOf<T> square = product(m, m), cube = product(square, m), fourth = product(square, square);
        ColumnsOf<T> sum(m.rows, m.columns);
        for (int first = 16; first >= 0; first -= 4) {
            poll_interrupt();
            if (first < 16) sum = product(sum, fourth);
            double weights[4];
            for (int j = 0; j < 4; ++j) weights[j] = 1 / std::tgamma(first + j + 1.0);
            for (size_t i = 0; i < sum.data.size(); ++i)
                sum.data[i] += weights[1] * m.data[i] + weights[2] * square.data[i] + weights[3] * cube.data[i];
            for (int i = 0; i < m.rows; ++i) sum.at(i, i) += weights[0];
        }
        for (int k = 0; k < halvings; ++k) {
            poll_interrupt();
            sum = product(sum, sum);
        }
        write(c.out[0], b, sum);
    }
    return true;
}

// Large matrices of f32 are decomposed in f32 where the method adds only roundings of that size: doubles take twice as
// long.
template <bool (*kDecompose)(const KernelCall&)>
bool large_single(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    return x.dtype() == DType::f32 && std::min(rows_in(x), columns_in(x)) > kLargestSmallMatrix && kDecompose(c);
}

}  // namespace

void add_solve_kernels(KernelTable& table) {
    table.fast("cholesky", large_single<cholesky<float>>);
    table.fast("qr", large_single<qr<float>>);
    auto add = [&table](const char* op, auto kernel) { add_for_real_and_complex(table, op, kernel); };
    add_factor_kernels(table);
    add_sparse_kernels(table);
    add("inverse", [](const KernelCall& c, auto zero) { return inverse<decltype(zero)>(c); });
    add("matrix_solve", [](const KernelCall& c, auto zero) { return matrix_solve<decltype(zero)>(c); });
    add("det", [](const KernelCall& c, auto zero) { return det<decltype(zero)>(c); });
    add("slogdet", [](const KernelCall& c, auto zero) { return slogdet<decltype(zero)>(c); });
    add("cofactor", [](const KernelCall& c, auto zero) { return cofactor<decltype(zero)>(c); });
    add("cofactor_slope", [](const KernelCall& c, auto zero) { return cofactor_slope<decltype(zero)>(c); });
    table.fast("svd_factors", svd_single);
    add("svd_factors", [](const KernelCall& c, auto zero) { return svd<decltype(zero)>(c); });
    add("pinv", [](const KernelCall& c, auto zero) { return pinv<decltype(zero)>(c); });
    add("cholesky", [](const KernelCall& c, auto zero) { return cholesky<decltype(zero)>(c); });
    add("qr", [](const KernelCall& c, auto zero) { return qr<decltype(zero)>(c); });
    add("eigh", [](const KernelCall& c, auto zero) { return eigh<decltype(zero)>(c); });
    add("eig", [](const KernelCall& c, auto zero) { return eig<decltype(zero)>(c); });
    add("reciprocal_gaps", [](const KernelCall& c, auto zero) { return reciprocal_gaps<decltype(zero)>(c); });
    add("matrix_exp", [](const KernelCall& c, auto zero) { return matrix_exp<decltype(zero)>(c); });
}

}  // namespace lunaria::cpu
