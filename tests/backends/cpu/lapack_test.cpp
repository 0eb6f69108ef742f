// Matrices that are cut into blocks have the factors that LAPACK gives for small ones.
#include "backends/cpu/lapack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "backends/cpu/blas.h"
#include "core/error.h"
#include "core/interrupt.h"

namespace lunaria::cpu {
namespace {

using Doubles = std::vector<double>;

Doubles random_matrix(int n) {
    std::mt19937 random(static_cast<unsigned>(n));
    std::uniform_real_distribution<double> number(-1, 1);
    Doubles m(static_cast<size_t>(n) * static_cast<size_t>(n));
    for (double& x : m) x = number(random);
    return m;
}

size_t at(int n, int i, int j) { return static_cast<size_t>(j) * static_cast<size_t>(n) + static_cast<size_t>(i); }

// Of matrices by columns.
Doubles product(int n, const Doubles& a, const Doubles& b) {
    Doubles m(a.size());
    gemm(MatrixRef<double>{b.data(), n, n, n, 1}, MatrixRef<double>{a.data(), n, n, n, 1}, m.data(), 0.0);
    return m;
}

double distance(const Doubles& a, const Doubles& b) {
    double most = 0;
    for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
    return most;
}

TEST(LapackTest, lu_factors_give_the_matrix_back_and_solve_it) {
    for (const int n : {1, 5, 768, 769, 1000}) {
        const Doubles a = random_matrix(n);
        Doubles factors = a, l(a.size()), u(a.size());
        std::vector<int> pivots(static_cast<size_t>(n));
        ASSERT_EQ(lu_factors(n, factors.data(), pivots.data()), 0);
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) {
                if (i > j) l[at(n, i, j)] = factors[at(n, i, j)];
                if (i == j) l[at(n, i, j)] = 1;
                if (i <= j) u[at(n, i, j)] = factors[at(n, i, j)];
                ASSERT_LE(std::abs(l[at(n, i, j)]), 1) << "pivots are the largest of their columns";
            }
        Doubles permuted = a;
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                std::swap(permuted[at(n, i, j)], permuted[at(n, pivots[static_cast<size_t>(i)] - 1, j)]);
        EXPECT_LT(distance(product(n, l, u), permuted), 1e-10) << n;

        for (const bool transpose : {false, true}) {
            Doubles b = random_matrix(n);
            Doubles right = b, left = a;
            lu_solve(n, factors.data(), pivots.data(), transpose, n, b.data());
            if (transpose)
                for (int i = 0; i < n; ++i)
                    for (int j = 0; j < i; ++j) std::swap(left[at(n, i, j)], left[at(n, j, i)]);
            EXPECT_LT(distance(product(n, left, b), right), 1e-7) << n;
        }
    }
}

TEST(LapackTest, a_pivot_of_zero_is_found_behind_the_first_block) {
    const int n = 900;
    Doubles a = random_matrix(n);
    for (int i = 0; i < n; ++i) a[at(n, i, 850)] = 0;
    std::vector<int> pivots(n);
    EXPECT_EQ(lu_factors(n, a.data(), pivots.data()), 851);
}

TEST(LapackTest, cholesky_factors_give_the_matrix_back) {
    for (const int n : {1, 6, 768, 900}) {
        const Doubles r = random_matrix(n);
        Doubles t(r.size());
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) t[at(n, i, j)] = r[at(n, j, i)];
        Doubles a = product(n, r, t);
        for (int i = 0; i < n; ++i) a[at(n, i, i)] += 1;
        Doubles factor = a, transposed(a.size());
        ASSERT_EQ(cholesky_factor(n, factor.data()), 0);
        for (int j = 0; j < n; ++j)
            for (int i = 0; i < n; ++i) {
                if (i < j) factor[at(n, i, j)] = 0;
                if (i >= j) transposed[at(n, j, i)] = factor[at(n, i, j)];
            }
        EXPECT_LT(distance(product(n, factor, transposed), a), 1e-9) << n;
        a[at(n, n - 1, n - 1)] = -1;
        EXPECT_EQ(cholesky_factor(n, a.data()), n);
    }
}

TEST(LapackTest, routines_stop_for_an_interrupt_and_only_where_that_is_wanted) {
    const int n = 200;
    int info = 0, size = 64 * n;
    Doubles a = random_matrix(n), tau(n), work(static_cast<size_t>(size));
    request_interrupt();
    dgeqrf_(&n, &n, a.data(), &n, tau.data(), work.data(), &size, &info);
    EXPECT_EQ(info, 0);
    {
        const StoppableLapack stops;
        EXPECT_THROW(dgeqrf_(&n, &n, a.data(), &n, tau.data(), work.data(), &size, &info), Error);
    }
    clear_interrupt();
}

}  // namespace
}  // namespace lunaria::cpu
