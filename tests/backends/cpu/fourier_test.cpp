// Transforms of many lengths against the definition, for signals alone and side by side.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/operator/op.h"

namespace lunaria {
namespace {

using cpu::Isa;
using Complex = std::complex<double>;

class Fourier : public testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&cpu::device());
        before_ = cpu::current_isa();
    }
    void TearDown() override { cpu::set_isa(before_); }

  private:
    Isa before_ = Isa::v2;
};

Tensor apply(const char* op, std::initializer_list<Arg> args) {
    return eager_builder().call(op, args).value().tensor();
}

// Every length has its own mixture of radices; those with large prime factors become convolutions.
constexpr int64_t kLengths[] = {1,  2,  3,  4,  5,  6,  7,  8,   11,  12,  13,  16,  17,  20,  23,
                                30, 32, 49, 60, 64, 77, 97, 125, 128, 169, 210, 256, 257, 509, 1001};

// Row `row` of x, as the definition has it: sum over i of x[i] e^(-2 pi i k / n).
std::vector<Complex> by_definition(const Tensor& x, int64_t row, int64_t n) {
    std::vector<Complex> roots, sums;
    for (int64_t i = 0; i < n; ++i)
        roots.push_back(std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n)));
    for (int64_t k = 0; k < n; ++k) {
        Complex sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += x.at(row * n + i) * roots[static_cast<size_t>(i * k % n)];
        sums.push_back(sum);
    }
    return sums;
}

TEST_F(Fourier, EveryLengthIsWhatTheDefinitionSays) {
    for (int64_t n : kLengths)
        for (int64_t rows : {1, 3, 9}) {
            Tensor x = apply("randn", {Value::ints({rows, n})});
            std::vector<std::vector<Complex>> want;
            for (int64_t row = 0; row < rows; ++row) want.push_back(by_definition(x, row, n));
            const double close = 4e-7 * std::sqrt(static_cast<double>(n)) * std::log2(static_cast<double>(n) + 2);
            for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
                if (!cpu::isa_available(isa)) continue;
                cpu::set_isa(isa);
                Tensor spectrum = apply("fft", {x}), half = apply("rfft", {x});
                Tensor pairs = apply("view_as_real", {spectrum}), half_pairs = apply("view_as_real", {half});
                Tensor across =
                    apply("view_as_real", {apply("fft", {apply("transpose", {x, Value::ints({1, 0})}), n, 0})});
                Tensor back = apply("view_as_real", {apply("ifft", {spectrum})}), real = apply("irfft", {half, n});
                const int64_t bins = n / 2 + 1;
                for (int64_t row = 0; row < rows; ++row)
                    for (int64_t k = 0; k < n; ++k) {
                        const Complex& sum = want[static_cast<size_t>(row)][static_cast<size_t>(k)];
                        auto is = [&](const Tensor& got, int64_t at) {
                            EXPECT_NEAR(got.at(2 * at), sum.real(), close) << n << ", " << rows << " rows, bin " << k;
                            EXPECT_NEAR(got.at(2 * at + 1), sum.imag(), close)
                                << n << ", " << rows << " rows, bin " << k;
                        };
                        is(pairs, row * n + k);
                        is(across, k * rows + row);
                        if (k < bins) is(half_pairs, row * bins + k);
                        EXPECT_NEAR(back.at(2 * (row * n + k)), x.at(row * n + k), close);
                        EXPECT_NEAR(back.at(2 * (row * n + k) + 1), 0, close);
                        EXPECT_NEAR(real.at(row * n + k), x.at(row * n + k), close);
                    }
                if (HasFailure()) return;
            }
        }
}

// Lengths that are done in two steps, of rows and columns that fill bundles and that do not, and convolutions by way
// of such lengths, and of the length before a prime.
// Where fused multiply-adds are: alone, in part of a register and in whole ones.
TEST_F(Fourier, EveryInstructionSetWithFusedProductsGivesTheSameBits) {
    if (!cpu::isa_available(Isa::avx512)) GTEST_SKIP() << "the processor has only one of them";
    for (int64_t n : {2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 23, 60, 64, 121, 143, 257, 1000, 4096, 1 << 17, 30030})
        for (int64_t rows : {1, 2, 3, 8, 13}) {
            if (n > 5000 && rows > 2) continue;
            for (DType t : {DType::f32, DType::f64}) {
                const Tensor x = apply("randn", {Value::ints({rows, n}), t}),
                             y = apply("randn", {Value::ints({rows, n}), t});
                const Tensor z = apply("complex", {x, y});
                const auto all = [&] {
                    return std::vector<Tensor>{apply("fft", {z}),      apply("ifft", {z}),
                                               apply("fft", {x}),      apply("rfft", {x}),
                                               apply("irfft", {z, n}), apply("fft", {z, Value(), 0}),
                                               apply("abs", {z})};
                };
                cpu::set_isa(Isa::avx2);
                const auto want = all();
                cpu::set_isa(Isa::avx512);
                const auto got = all();
                for (size_t i = 0; i < want.size(); ++i)
                    EXPECT_EQ(std::memcmp(want[i].raw(), got[i].raw(), want[i].nbytes()), 0)
                        << "case " << i << " of " << rows << " x " << n << ' ' << name_of(t);
            }
        }
}

TEST_F(Fourier, LongSignalsAreWhatTheDefinitionSays) {
    for (int64_t n : {32768, 36015, 45000, 65536, 98280, 100000, 20011, 32771, 10753, 65537, 1 << 18})
        for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
            if (!cpu::isa_available(isa)) continue;
            cpu::set_isa(isa);
            Tensor x = apply("randn", {Value::ints({n, 2}), DType::f32, 5});
            Tensor signal = apply("view_as_complex", {x}), real = apply("randn", {Value::ints({n}), DType::f32, 6});
            const Tensor got = apply("view_as_real", {apply("fft", {signal})});
            const Tensor half = apply("rfft", {real}), pairs = apply("view_as_real", {half});
            const double close = 1e-6 * std::sqrt(static_cast<double>(n)) * std::log2(static_cast<double>(n));
            std::vector<Complex> roots;
            for (int64_t i = 0; i < n; ++i)
                roots.push_back(
                    std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n)));
            for (int64_t k : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{180}, n / 3, n / 2, n / 2 + 1, n - 1}) {
                Complex sum = 0, of_real = 0;
                for (int64_t i = 0; i < n; ++i) {
                    const Complex& root = roots[static_cast<size_t>(i * k % n)];
                    sum += Complex(x.at(2 * i), x.at(2 * i + 1)) * root;
                    of_real += real.at(i) * root;
                }
                EXPECT_NEAR(got.at(2 * k), sum.real(), close) << n << " bin " << k;
                EXPECT_NEAR(got.at(2 * k + 1), sum.imag(), close) << n << " bin " << k;
                if (k > n / 2) continue;
                EXPECT_NEAR(pairs.at(2 * k), of_real.real(), close) << n << " bin " << k;
                EXPECT_NEAR(pairs.at(2 * k + 1), of_real.imag(), close) << n << " bin " << k;
            }
            const Tensor back = apply("view_as_real", {apply("ifft", {apply("fft", {signal})})});
            const Tensor again = apply("irfft", {half, n});
            double apart = 0;
            for (int64_t i = 0; i < 2 * n; ++i) apart = std::max(apart, std::abs(back.at(i) - x.at(i)));
            for (int64_t i = 0; i < n; ++i) apart = std::max(apart, std::abs(again.at(i) - real.at(i)));
            EXPECT_LT(apart, 2e-6) << n;
        }
}

}  // namespace
}  // namespace lunaria
