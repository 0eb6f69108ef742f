// Matrices that are cut into blocks have the factors that LAPACK gives for small ones.
#include "backends/cpu/lapack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"

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

// In f32, in the same signs as the plain kernel's in f64, to the digits of f32.
TEST(LapackTest, the_singular_values_of_single_precision_are_those_of_double_precision) {
    const Op& op = registry().get("svd_factors");
    for (const Shape& shape : {Shape{5, 5}, Shape{40, 17}, Shape{3, 30, 70}})
        for (const bool full : {false, true}) {
            Tensor x = Tensor::empty(DType::f32, shape);
            std::mt19937 random(9);
            std::uniform_real_distribution<float> number(-1, 1);
            for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = number(random);
            set_current_device(&plain_device());
            const Value want = run(op, {Value(x), Value(full)});
            set_current_device(&device());
            const Value got = run(op, {Value(x), Value(full)});
            const int columns[] = {1, static_cast<int>(shape[shape.rank() - 2]), static_cast<int>(shape.back())};
            const int64_t values = std::min(columns[1], columns[2]);
            for (size_t k = 0; k < 3; ++k) {
                const Tensor a = want.items()[k].tensor(), b = got.items()[k].tensor();
                ASSERT_TRUE(a.shape() == b.shape());
                ASSERT_EQ(b.dtype(), DType::f32);
                for (int64_t i = 0; i < a.size(); ++i) {
                    // The other vectors of a full matrix are any that stand upright on these.
                    if (k > 0 && i % a.shape().back() >= values) continue;
                    ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 2e-4)
                        << shape << " result " << k << " at " << i;
                }
            }
        }
    Tensor bad = Tensor::empty(DType::f32, {2, 2});
    std::fill_n(bad.data<float>(), 4, NAN);
    EXPECT_THROW(run(op, {Value(bad), Value(false)}), Error);
}

TEST(LapackTest, the_singular_values_of_single_precision_stop_for_an_interrupt) {
    Tensor x = Tensor::empty(DType::f32, {300, 300});
    std::mt19937 random(3);
    std::uniform_real_distribution<float> number(-1, 1);
    for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = number(random);
    const int n = 300;
    const int size = 10 * n * n;
    int info = 0;
    std::vector<float> a(x.data<float>(), x.data<float>() + x.size()), s(n), u(a.size()), vt(a.size());
    std::vector<float> work(static_cast<size_t>(size));
    request_interrupt();
    {
        const StoppableLapack stops;
        EXPECT_THROW(
            lapack::gesdd('S', n, n, a.data(), n, s.data(), u.data(), n, vt.data(), n, work.data(), size, &info),
            Error);
    }
    clear_interrupt();
}

}  // namespace
}  // namespace lunaria::cpu
