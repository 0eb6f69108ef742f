// CPU kernels: factors of matrices that are kept to solve systems with: LU, triangles, Householder reflections.
#include "backends/cpu/matrices.h"
#include "core/interrupt.h"
#include "core/op.h"

namespace lunaria::cpu {

namespace {

bool lu_factor(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Columns m = read(x, b);
        const int least = std::min(m.rows, m.columns), lda = m.leading();
        std::vector<int> pivots(index(least));
        int info = 0;
        if (m.rows == m.columns && least > 0) {
            const StoppableLapack stops;
            lu_factors(m.rows, m.data.data(), pivots.data());
        } else if (least > 0) {
            const StoppableLapack stops;
            dgetrf_(&m.rows, &m.columns, m.data.data(), &lda, pivots.data(), &info);
        }
        write(c.out[0], b, m);
        for (int i = 0; i < least; ++i) c.out[1].data<int32_t>()[b * least + i] = pivots[index(i)] - 1;
    }
    return true;
}

bool permutation_of_pivots(const KernelCall& c) {
    const Tensor& pivots = c.tensor(0);
    const int64_t n = c.args[1].integer(), count = pivots.dim(pivots.rank() - 1);
    const int64_t batches = count > 0 ? pivots.size() / count : c.out[0].size() / std::max<int64_t>(n * n, 1);
    std::vector<int64_t> rows(static_cast<size_t>(n));
    for (int64_t b = 0; b < batches; ++b) {
        for (int64_t i = 0; i < n; ++i) rows[static_cast<size_t>(i)] = i;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t other = pivots.dtype() == DType::i32 ? pivots.data<int32_t>()[b * count + i]
                                                               : static_cast<int64_t>(pivots.at(b * count + i));
            if (other < 0 || other >= n || i >= n)
                throw index_error(c.op.name(),
                                  str("pivot ", i, " is ", other, ": it must be a row, from 0 to ", n - 1));
            std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(other)]);
        }
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < n; ++j)
                store(c.out[0], (b * n + i) * n + j, rows[static_cast<size_t>(j)] == i ? 1 : 0);
    }
    return true;
}

bool solve_triangular(const KernelCall& c) {
    const Tensor &a = c.tensor(0), &rhs = c.tensor(1);
    check_size(c, a);
    check_size(c, rhs);
    const bool lower = c.args[2].boolean(), transpose = c.args[3].boolean(), unit = c.args[4].boolean();
    for (int64_t b = 0; b < batches_in(a); ++b) {
        poll_interrupt();
        Columns m = read(a, b), x = read(rhs, b);
        for (int i = 0; i < m.rows && !unit; ++i)
            if (m.at(i, i) == 0)
                throw value_error(c.op.name(), str("the matrix is singular: element ", i, " of its diagonal is 0"))
                    .hint("lstsq solves such systems in the sense of least squares");
        const int lda = m.leading(), ldb = x.leading();
        const double one = 1;
        if (m.rows > 0 && x.columns > 0) {
            const StoppableLapack stops;
            dtrsm_("L", lower ? "L" : "U", transpose ? "T" : "N", unit ? "U" : "N", &x.rows, &x.columns, &one,
                   m.data.data(), &lda, x.data.data(), &ldb, 1, 1, 1, 1);
        }
        write(c.out[0], b, x);
    }
    return true;
}

bool geqrf(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        Columns m = read(x, b);
        const int least = std::min(m.rows, m.columns), lda = m.leading();
        int info = 0;
        Doubles tau(index(least));
        if (least > 0)
            with_work([&](double* work, int size) {
                dgeqrf_(&m.rows, &m.columns, m.data.data(), &lda, tau.data(), work, &size, &info);
            });
        write(c.out[0], b, m);
        write(c.out[1], b, tau);
    }
    return true;
}

}  // namespace

void add_factor_kernels(KernelTable& table) {
    auto add = [&table]<Kernel k>(const char* op, std::integral_constant<Kernel, k>) {
        table.plain(op, [](const KernelCall& c) { return !is_complex(c.dtype) && k(c); });
    };
    add("lu_factor", std::integral_constant<Kernel, lu_factor>());
    add("permutation_of_pivots", std::integral_constant<Kernel, permutation_of_pivots>());
    add("solve_triangular", std::integral_constant<Kernel, solve_triangular>());
    add("geqrf", std::integral_constant<Kernel, geqrf>());
}

}  // namespace lunaria::cpu
