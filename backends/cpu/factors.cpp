// CPU kernels: factors of matrices for solving systems: LU, triangles, Householder reflections.
#include "backends/cpu/matrices.h"
#include "backends/cpu/small_matrices.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"

namespace lunaria::cpu {

namespace {

template <class T>
bool lu_factor(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        ColumnsOf<T> m = read<T>(x, b);
        const int least = std::min(m.rows, m.columns);
        std::vector<int> pivots(index(least));
        int info = 0;
        if (m.rows == m.columns && least > 0) {
            const StoppableLapack stops;
            lu_factors(m.rows, m.data.data(), pivots.data());
        } else if (least > 0) {
            const StoppableLapack stops;
            lapack::getrf(m.rows, m.columns, m.data.data(), m.leading(), pivots.data(), &info);
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
    Tensor out = c.out[0];
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
                out.set_at((b * n + i) * n + j, rows[static_cast<size_t>(j)] == i ? 1.0 : 0.0);
    }
    return true;
}

template <class T>
bool solve_triangular(const KernelCall& c) {
    const Tensor &a = c.tensor(0), &rhs = c.tensor(1);
    check_size(c, a);
    check_size(c, rhs);
    const bool lower = c.args[2].boolean(), transpose = c.args[3].boolean(), unit = c.args[4].boolean();
    const int64_t n = rows_in(a), columns = columns_in(rhs);
    const bool same = a.dtype() == rhs.dtype() && a.dtype() == c.out[0].dtype();
    const auto left = left_by_small_loops(a, n, batches_in(a), [&](const auto& loops, auto zero, int64_t b) {
        using E = decltype(zero);
        return same &&
               loops.triangular(static_cast<int>(n), static_cast<int>(columns), a.data<E>() + b * n * n, lower,
                                transpose, unit, rhs.data<E>() + b * n * columns, c.out[0].data<E>() + b * n * columns);
    });
    for (const int64_t b : left) {
        poll_interrupt();
        ColumnsOf<T> m = read<T>(a, b), x = read<T>(rhs, b);
        for (int i = 0; i < m.rows && !unit; ++i)
            if (m.at(i, i) == T(0))
                throw value_error(c.op.name(), str("the matrix is singular: element ", i, " of its diagonal is 0"))
                    .hint("lstsq solves such systems in the sense of least squares");
        if (m.rows > 0 && x.columns > 0) {
            const StoppableLapack stops;
            lapack::trsm("L", lower ? "L" : "U", transpose ? "T" : "N", unit ? "U" : "N", x.rows, x.columns,
                         m.data.data(), m.leading(), x.data.data(), x.leading());
        }
        write(c.out[0], b, x);
    }
    return true;
}

template <class T>
bool geqrf(const KernelCall& c) {
    const Tensor& x = c.tensor(0);
    check_size(c, x);
    for (int64_t b = 0; b < batches_in(x); ++b) {
        poll_interrupt();
        ColumnsOf<T> m = read<T>(x, b);
        const int least = std::min(m.rows, m.columns);
        int info = 0;
        std::vector<T> tau(index(least));
        if (least > 0)
            with_work<T>([&](T* work, int size) {
                lapack::geqrf(m.rows, m.columns, m.data.data(), m.leading(), tau.data(), work, size, &info);
            });
        write(c.out[0], b, m);
        write(c.out[1], b, tau);
    }
    return true;
}

}  // namespace

void add_factor_kernels(KernelTable& table) {
    auto add = [&table](const char* op, auto kernel) { add_for_real_and_complex(table, op, kernel); };
    add("lu_factor", [](const KernelCall& c, auto zero) { return lu_factor<decltype(zero)>(c); });
    table.plain("permutation_of_pivots", permutation_of_pivots);
    add("solve_triangular", [](const KernelCall& c, auto zero) { return solve_triangular<decltype(zero)>(c); });
    add("geqrf", [](const KernelCall& c, auto zero) { return geqrf<decltype(zero)>(c); });
}

}  // namespace lunaria::cpu
