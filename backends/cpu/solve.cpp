// CPU kernels: decompositions of matrices, by the LAPACK inside OpenBLAS. All is computed in f64 and rounded once, also
// for f32: these operators are rarely what takes the time, and an f32 decomposition loses half of its digits. The
// exception is svd, which does take the time, and where nobody expects more digits than LAPACK gives in f32.
//
// LAPACK counts by columns. A row-major matrix read that way is its transpose, which inverses and determinants do not
// mind; elsewhere a matrix is transposed on the way in or out.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/lapack.h"
#include "backends/cpu/matrices.h"
#include "core/interrupt.h"
#include "core/op.h"

namespace lunaria::cpu {

namespace {

struct Lu {
    Columns m;
    std::vector<int> pivots;
    bool singular = false;

    explicit Lu(Columns matrix) : m(std::move(matrix)), pivots(m.data.size() ? index(m.rows) : 0) {
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
        // Rounding hides most singular matrices: what is left of a zero pivot is tiny. The condition number tells.
        double rcond = 0;
        int info = 0;
        Doubles work(4 * index(n));
        std::vector<int> integers(index(n));
        dgecon_("1", &n, m.data.data(), &n, &norm, &rcond, work.data(), integers.data(), &info);
        singular = rcond < std::numeric_limits<double>::epsilon() / 4;
    }
};

void expect_regular(const KernelCall& c, const Lu& lu, int64_t n, int64_t batches) {
    if (!lu.singular) return;
    throw value_error(c.op.name(),
                      batches > 1 ? str("matrix ", n, " of the batch is singular") : "the matrix is singular")
        .hint("pinv gives the pseudo-inverse, which always exists");
}

bool inverse(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    int64_t batches = batches_in(x);
    for (int64_t b = 0; b < batches; ++b) {
        poll_interrupt();
        Lu lu(read(x, b));
        expect_regular(c, lu, b, batches);
        Columns result(lu.m.rows, lu.m.rows);
        for (int i = 0; i < result.rows; ++i) result.at(i, i) = 1;
        lu_solve(lu.m.rows, lu.m.data.data(), lu.pivots.data(), false, result.columns, result.data.data());
        write(c.out[0], b, result);
    }
    return true;
}

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
    int64_t batches = batches_in(a);
    const bool transpose = c.args[2].boolean();
    for (int64_t b = 0; b < batches; ++b) {
        poll_interrupt();
        Lu lu(read(a, b));
        expect_regular(c, lu, b, batches);
        Columns x = read(rhs, b);
        if (lu.m.rows > 0) lu_solve(lu.m.rows, lu.m.data.data(), lu.pivots.data(), transpose, x.columns, x.data.data());
        write(out, b, x);
    }
    return true;
}

// Sign and logarithm of |det|, which cannot overflow.
std::pair<double, double> log_determinant(Lu& lu) {
    double sign = 1, log = 0;
    for (int i = 0; i < lu.m.rows; ++i) {
        double pivot = lu.m.at(i, i);
        if ((pivot < 0) != (lu.pivots[index(i)] != i + 1)) sign = -sign;
        if (pivot == 0) sign = 0;
        log += std::log(std::abs(pivot));
    }
    return {sign, log};
}

bool det(const KernelCall& c) {
    check_size(c, c.tensor(0));
    for (int64_t b = 0; b < batches_in(c.tensor(0)); ++b) {
        poll_interrupt();
        Lu lu(read(c.tensor(0), b));
        double product = 1;
        for (int i = 0; i < lu.m.rows; ++i) product *= lu.pivots[index(i)] != i + 1 ? -lu.m.at(i, i) : lu.m.at(i, i);
        store(c.out[0], b, product);
    }
    return true;
}

bool slogdet(const KernelCall& c) {
    check_size(c, c.tensor(0));
    for (int64_t b = 0; b < batches_in(c.tensor(0)); ++b) {
        poll_interrupt();
        Lu lu(read(c.tensor(0), b));
        auto [sign, log] = log_determinant(lu);
        store(c.out[0], b, sign);
        store(c.out[1], b, log);
    }
    return true;
}

template <class T>
struct SvdOf {
    std::vector<T> s;
    ColumnsOf<T> u, vt;
    int info = 0;  // LAPACK's code: not 0 where it did not converge

    // `job`: A all vectors, S those that belong to a singular value.
    SvdOf(const KernelCall& c, ColumnsOf<T> m, char job)
        : s(index(std::min(m.rows, m.columns))),
          u(m.rows, job == 'A' ? m.rows : std::min(m.rows, m.columns)),
          vt(job == 'A' ? m.columns : std::min(m.rows, m.columns), m.columns) {
        expect_finite(c, m);
        if (s.empty()) {
            for (int i = 0; i < std::min(u.rows, u.columns); ++i) u.at(i, i) = 1;
            for (int i = 0; i < std::min(vt.rows, vt.columns); ++i) vt.at(i, i) = 1;
            return;
        }
        int lda = m.leading(), ldu = u.leading(), ldvt = vt.leading();
        std::vector<int> integers(8 * s.size());
        with_work<T>([&](T* work, int size) {
            call_gesdd(&job, &m.rows, &m.columns, m.data.data(), &lda, s.data(), u.data.data(), &ldu, vt.data.data(),
                       &ldvt, work, &size, integers.data(), &info);
        });
    }
};
// The one that has to converge.
struct Svd : SvdOf<double> {
    Svd(const KernelCall& c, Columns m, char job) : SvdOf(c, std::move(m), job) { expect_converged(c, info); }
};

template <class T>
ColumnsOf<T> transposed(ColumnsOf<T>& m) {
    ColumnsOf<T> t(m.columns, m.rows);
    for_tiles(m.rows, m.columns, [&](int i, int j) { t.at(j, i) = m.at(i, j); });
    return t;
}

// False where LAPACK does not converge in the precision T.
template <class T>
bool write_svd(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    char job = c.args[1].boolean() ? 'A' : 'S';
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        SvdOf<T> f(c, read<T>(x, b), job);
        if (f.info != 0) return false;
        ColumnsOf<T> v = transposed(f.vt);
        write(c.out[0], b, f.s);
        write(c.out[1], b, f.u);
        write(c.out[2], b, v);
    }
    return true;
}

bool svd(const KernelCall& c) {
    if (!write_svd<double>(c)) expect_converged(c, 1);
    return true;
}
// The one decomposition that people use on large matrices of f32, for which doubles take twice as long.
bool svd_single(const KernelCall& c) { return c.tensor(0).dtype() == DType::f32 && write_svd<float>(c); }

Columns product(const Columns& a, const Columns& b) {
    Columns m(a.rows, b.columns);
    // Read by rows, matrices are their transposes, and so is the product.
    const MatrixRef<double> left{b.data.data(), b.columns, b.rows, b.rows, 1};
    const MatrixRef<double> right{a.data.data(), a.columns, a.rows, a.rows, 1};
    if (!m.data.empty() && a.columns > 0) gemm(left, right, m.data.data(), 0.0);
    return m;
}

// u f(s) v^T or its transpose.
Columns recombine(Svd& f, const Doubles& weights, bool transpose) {
    Columns scaled(f.u.rows, static_cast<int>(weights.size()));
    for (int j = 0; j < scaled.columns; ++j)
        for (int i = 0; i < scaled.rows; ++i) scaled.at(i, j) = weights[index(j)] * f.u.at(i, j);
    Columns m = product(scaled, f.vt);
    return transpose ? transposed(m) : m;
}

double determinant(Columns m) {
    Lu lu(std::move(m));
    auto [sign, log] = log_determinant(lu);
    return sign * std::exp(log);
}

// The cofactors of u diag(s) v^T are det(u) det(v) u diag(products of the other s) v^T: no division by s.
bool cofactor(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Svd f(c, read(x, b), 'S');
        double orientation = determinant(f.u) * determinant(f.vt) < 0 ? -1 : 1;
        Doubles others(f.s.size(), orientation);
        for (size_t i = 0; i < others.size(); ++i)
            for (size_t j = 0; j < others.size(); ++j)
                if (i != j) others[i] *= f.s[j];
        Columns m = recombine(f, others, false);
        write(c.out[0], b, m);
    }
    return true;
}

bool pinv(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    double digits =
        c.dtype == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    double atol = c.has(1) ? c.args[1].number() : 0;
    double rtol = c.has(2)   ? c.args[2].number()
                  : c.has(1) ? 0
                             : digits * static_cast<double>(std::max(rows_in(x), columns_in(x)));
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Svd f(c, read(x, b), 'S');
        Doubles inverses;
        double least = std::max(atol, rtol * (f.s.empty() ? 0 : f.s[0]));
        for (double s : f.s) inverses.push_back(s > least ? 1 / s : 0);
        Columns m = recombine(f, inverses, true);
        write(c.out[0], b, m);
    }
    return true;
}

// The decompositions of symmetric matrices look at the mean of both triangles, so that their gradients, which are
// symmetric, are those of what was computed.
void symmetrise(Columns& m) {
    for_tiles(m.rows, m.columns, [&](int i, int j) {
        if (j < i) m.at(i, j) = m.at(j, i) = 0.5 * (m.at(i, j) + m.at(j, i));
    });
}

bool cholesky(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    bool upper = c.args[1].boolean();
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Columns m = read(x, b);
        symmetrise(m);
        const int info = cholesky_factor(m.rows, m.data.data());
        if (info > 0 || std::any_of(m.data.begin(), m.data.end(), [](double v) { return std::isnan(v); }))
            throw value_error(c.op.name(),
                              str("the matrix is not positive definite: its leading part of size ", info, " is not"));
        for_tiles(m.rows, m.columns, [&](int i, int j) {
            if (i < j) m.at(i, j) = 0;
        });
        if (upper) m = transposed(m);
        write(c.out[0], b, m);
    }
    return true;
}

bool qr(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Columns m = read(x, b);
        int least = std::min(m.rows, m.columns), lda = m.leading(), info = 0;
        Columns q(m.rows, columns_in(c.out[0])), r(rows_in(c.out[1]), m.columns);
        Doubles tau(index(least));
        if (least)
            with_work([&](double* work, int size) {
                dgeqrf_(&m.rows, &m.columns, m.data.data(), &lda, tau.data(), work, &size, &info);
            });
        for (int j = 0; j < r.columns; ++j)
            for (int i = 0; i <= std::min(j, r.rows - 1); ++i) r.at(i, j) = i < least ? m.at(i, j) : 0;
        for (int j = 0; j < std::min(q.columns, m.columns); ++j)
            for (int i = 0; i < q.rows; ++i) q.at(i, j) = m.at(i, j);
        if (q.rows && q.columns)
            with_work([&](double* work, int size) {
                dorgqr_(&q.rows, &q.columns, &least, q.data.data(), &lda, tau.data(), work, &size, &info);
            });
        write(c.out[0], b, q);
        write(c.out[1], b, r);
    }
    return true;
}

bool eigh(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Columns m = read(x, b);
        expect_finite(c, m);
        symmetrise(m);
        Doubles w(index(m.rows));
        int lda = m.leading(), info = 0, integer_size = 3 + 5 * m.rows;
        std::vector<int> integers(index(integer_size));
        if (m.rows)
            with_work([&](double* work, int size) {
                dsyevd_("V", "L", &m.rows, m.data.data(), &lda, w.data(), work, &size, integers.data(), &integer_size,
                        &info);
            });
        expect_converged(c, info);
        write(c.out[0], b, w);
        write(c.out[1], b, m);
    }
    return true;
}

void store_complex(const Tensor& t, int64_t at, Complex128 z) {
    if (t.dtype() == DType::c64)
        t.data<Complex64>()[at] = Complex64(z);
    else
        t.data<Complex128>()[at] = z;
}

bool eig(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Columns m = read(x, b), v(m.rows, m.rows);
        expect_finite(c, m);
        int n = m.rows, lda = m.leading(), one = 1, info = 0;
        Doubles re(index(n)), im(index(n));
        if (n)
            with_work([&](double* work, int size) {
                dgeev_("N", "V", &n, m.data.data(), &lda, re.data(), im.data(), nullptr, &one, v.data.data(), &lda,
                       work, &size, &info);
            });
        expect_converged(c, info);
        for (int j = 0; j < n; ++j) {
            store_complex(c.out[0], b * n + j, {re[index(j)], im[index(j)]});
            // A pair of conjugate eigenvalues shares two columns: real and imaginary part.
            bool second = im[index(j)] < 0, pair = im[index(j)] != 0;
            for (int i = 0; i < n; ++i) {
                double real = pair ? v.at(i, second ? j - 1 : j) : v.at(i, j);
                double imaginary = !pair ? 0 : second ? -v.at(i, j) : v.at(i, j + 1);
                store_complex(c.out[1], (b * n + i) * n + j, {real, imaginary});
            }
        }
    }
    return true;
}

// Scaling and squaring around a Taylor polynomial: with the norm below 1/2, its terms up to the 19th power are exact to
// the last digit. Four terms at a time are a polynomial in the fourth power (M. Paterson and L. Stockmeyer, 1973).
bool matrix_exp(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        Columns m = read(x, b);
        expect_finite(c, m);
        double norm = 0;
        for (int j = 0; j < m.columns; ++j) {
            double sum = 0;
            for (int i = 0; i < m.rows; ++i) sum += std::abs(m.at(i, j));
            norm = std::max(norm, sum);
        }
        int halvings = norm > 0.5 ? static_cast<int>(std::ceil(std::log2(norm / 0.5))) : 0;
        for (double& v : m.data) v = std::ldexp(v, -halvings);
        const Columns square = product(m, m), cube = product(square, m), fourth = product(square, square);
        Columns sum(m.rows, m.columns);
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

}  // namespace

void add_solve_kernels(KernelTable& table) {
    auto add = [&table]<Kernel k>(const char* op, std::integral_constant<Kernel, k>) {
        // Inference lets f64 and f32 through (halves are widened), and complex numbers, for which there is no kernel.
        table.plain(op, [](const KernelCall& c) { return !is_complex(c.dtype) && k(c); });
    };
    add_factor_kernels(table);
    add_sparse_kernels(table);
    add("inverse", std::integral_constant<Kernel, inverse>());
    add("matrix_solve", std::integral_constant<Kernel, matrix_solve>());
    add("det", std::integral_constant<Kernel, det>());
    add("slogdet", std::integral_constant<Kernel, slogdet>());
    add("cofactor", std::integral_constant<Kernel, cofactor>());
    table.fast("svd_factors", svd_single);
    add("svd_factors", std::integral_constant<Kernel, svd>());
    add("pinv", std::integral_constant<Kernel, pinv>());
    add("cholesky", std::integral_constant<Kernel, cholesky>());
    add("qr", std::integral_constant<Kernel, qr>());
    add("eigh", std::integral_constant<Kernel, eigh>());
    add("eig", std::integral_constant<Kernel, eig>());
    add("matrix_exp", std::integral_constant<Kernel, matrix_exp>());
}

}  // namespace lunaria::cpu
