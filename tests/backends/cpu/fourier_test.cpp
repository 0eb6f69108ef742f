// Transforms of many lengths against the definition, for signals alone and side by side.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/op.h"

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

}  // namespace
}  // namespace lunaria
