// Batches of small matrices and products of complex ones against what their equations say; about 1 s.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <random>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {
namespace {

class SmallMatrices : public testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&device());
        before_ = current_isa();
    }
    void TearDown() override { set_isa(before_); }

    static Tensor call(const char* op, std::initializer_list<Arg> args, size_t result = 0) {
        const Value v = eager_builder().call(op, args).value();
        return v.is_list() ? v.items()[result].tensor() : v.tensor();
    }
    Tensor normal(DType dtype, const Shape& shape) {
        Tensor t = Tensor::empty(dtype, shape);
        std::normal_distribution<double> number;
        for (int64_t i = 0; i < t.size(); ++i) t.set_at(i, number(random_));
        return t;
    }
    static void expect_close(const Tensor& a, const Tensor& b, double close, const std::string& what) {
        ASSERT_EQ(a.shape(), b.shape());
        for (int64_t i = 0; i < a.size(); ++i)
            ASSERT_NEAR(a.at(i), b.at(i), close * (1 + std::abs(b.at(i)))) << what << " element " << i;
    }
    std::mt19937 random_{7};

  private:
    Isa before_ = Isa::v2;
};

TEST_F(SmallMatrices, fulfil_their_equations_on_every_instruction_set) {
    for (const Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
        if (!isa_available(isa)) continue;
        set_isa(isa);
        for (const DType dtype : {DType::f32, DType::f64})
            for (const int64_t n : {1, 2, 3, 4, 5, 8, 9, 15, 16, 17}) {
                const double close = dtype == DType::f32 ? 2e-3 : 1e-9;
                const std::string what =
                    std::string(name_of(isa)) + " " + std::string(name_of(dtype)) + " " + std::to_string(n);
                const Tensor a = normal(dtype, {5, n, n});
                for (const int64_t m : {int64_t{1}, int64_t{4}, int64_t{5}, n, int64_t{20}}) {
                    const Tensor b = normal(dtype, {5, n, m});
                    for (const bool turned : {false, true}) {
                        const Tensor x = call("matrix_solve", {a, b, turned});
                        const Tensor left = turned ? call("swapaxes", {a, 1, 2}) : a;
                        expect_close(call("matmul", {left, x}), b, close * 10, what + " solve");
                        for (const bool lower : {false, true}) {
                            const Tensor half = call(lower ? "tril" : "triu", {a});
                            const Tensor y = call("solve_triangular", {half, call("matmul", {half, b}), lower});
                            expect_close(call("matmul", {half, y}), call("matmul", {half, b}), close * 10,
                                         what + " triangle");
                        }
                    }
                }
                const Tensor wide = call("cast", {a, DType::f64}), inverse = call("inverse", {wide});
                expect_close(call("matmul", {wide, inverse}).contiguous(),
                             call("broadcast_to", {call("eye", {n, n, DType::f64}), Shape{5, n, n}}).contiguous(), 1e-9,
                             what + " inverse");
                const Tensor square = call("matmul", {a, call("swapaxes", {a, 1, 2})});
                const Tensor positive = call("add", {square, call("eye", {n, n, dtype})});
                for (const bool upper : {false, true}) {
                    const Tensor f = call("cholesky", {positive, upper}), turned = call("swapaxes", {f, 1, 2});
                    expect_close(upper ? call("matmul", {turned, f}) : call("matmul", {f, turned}), positive, close,
                                 what + " cholesky");
                }
                const Tensor det = call("det", {wide}), sign = call("slogdet", {wide}),
                             log = call("slogdet", {wide}, 1);
                for (int64_t i = 0; i < 5; ++i)
                    ASSERT_NEAR(sign.at(i) * std::exp(log.at(i)), det.at(i), 1e-9 * (1 + std::abs(det.at(i)))) << what;
            }
    }
}

TEST_F(SmallMatrices, that_are_singular_are_named_by_their_number) {
    for (const DType dtype : {DType::f32, DType::f64}) {
        Tensor a = normal(dtype, {4, 3, 3});
        // Its elimination ends with a pivot that rounding makes a tiny number.
        for (int64_t i = 0; i < 9; ++i) a.set_at(18 + i, static_cast<double>(i + 1));
        try {
            (void)call("inverse", {a});
            FAIL() << "a singular matrix has an inverse";
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find("matrix 2 of the batch is singular"), std::string::npos) << e.what();
        }
    }
}

TEST_F(SmallMatrices, are_the_same_bits_for_any_number_of_threads) {
    const int before = num_threads();
    const Tensor a = normal(DType::f32, {3000, 6, 6}), b = normal(DType::f32, {3000, 6, 3});
    Tensor want;
    for (const int threads : {1, 2}) {
        set_num_threads(threads);
        const Tensor got = call("matrix_solve", {a, b});
        if (!want) want = got;
        EXPECT_EQ(std::memcmp(got.raw(), want.raw(), got.nbytes()), 0);
    }
    set_num_threads(before);
}

TEST_F(SmallMatrices, products_of_complex_numbers_are_those_of_the_plain_kernel) {
    for (const DType dtype : {DType::f32, DType::f64})
        for (const int64_t m : {1, 3, 40})
            for (const int64_t k : {1, 5, 70})
                for (const int64_t n : {1, 2, 33})
                    for (const bool turned : {false, true}) {
                        auto matrix = [&](int64_t rows, int64_t columns) {
                            const Tensor parts =
                                normal(dtype, turned ? Shape{2, columns, rows, 2} : Shape{2, rows, columns, 2});
                            const Tensor pairs = call("view_as_complex", {parts});
                            return turned ? call("swapaxes", {pairs, 1, 2}) : pairs;
                        };
                        const Tensor a = matrix(m, k), b = matrix(k, n);
                        const Tensor fast = call("view_as_real", {call("matmul", {a, b})});
                        set_current_device(&plain_device());
                        const Tensor plain = call("view_as_real", {call("matmul", {a, b})});
                        set_current_device(&device());
                        for (int64_t i = 0; i < fast.size(); ++i)
                            ASSERT_NEAR(fast.at(i), plain.at(i), dtype == DType::f32 ? 1e-4 : 1e-12)
                                << m << ' ' << k << ' ' << n << ' ' << turned;
                    }
}

}  // namespace
}  // namespace lunaria::cpu
