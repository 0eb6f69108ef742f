// Fast elementwise kernels of each instruction set against the plain ones, on special values, odd sizes and layouts.
#include "backends/cpu/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/device.h"
#include "core/op.h"
#include "core/threads.h"

namespace lunaria {
namespace {

using cpu::Isa;

// The instruction sets of this processor.
std::vector<Isa> isas() {
    std::vector<Isa> list;
    for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512})
        if (cpu::isa_available(isa)) list.push_back(isa);
    return list;
}

Value run_plain(const Op& op, std::span<const Value> args) {
    set_current_device(&cpu::plain_device());
    Value v = run(op, args);
    set_current_device(&cpu::device());
    return v;
}

class Elementwise : public testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&cpu::device());
        before_ = cpu::current_isa();
    }
    void TearDown() override { cpu::set_isa(before_); }

  private:
    Isa before_ = Isa::v2;
};

// Numbers at which functions change their behaviour, and random ones of many magnitudes.
std::vector<double> interesting(DType t, size_t count, unsigned seed) {
    double tiny = t == DType::f64 ? 4.9e-324 : 1e-45, normal = t == DType::f64 ? 2.3e-308 : 1.2e-38;
    double inf = HUGE_VAL, nan = std::nan("");
    std::vector<double> v = {0.0,   -0.0,   inf,    -inf,    nan,        1,          -1,      0.5,   -0.5,   2,
                             -2,    3,      -3,     1.5,     2.5,        -2.5,       tiny,    -tiny, normal, -normal,
                             1e-20, -1e-20, 1e-8,   0.99999, -0.99999,   1.00001,    10,      -10,   16.5,   20.5,
                             -20.5, 30,     -30,    88.5,    -87.5,      88.9,       -95,     100,   -104,   -110,
                             700,   720,    -745,   -760,    1e4,        12345.678,  1e5,     -1e5,  1e10,   3e20,
                             -3e20, 1e30,   3.4e38, -3.4e38, 3.14159265, 1.57079633, 0.785398};
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> exponent(-6, 3), plain(-4, 4);
    while (v.size() < count) {
        v.push_back(plain(random));
        v.push_back((random() % 2 ? 1 : -1) * std::pow(10.0, exponent(random)));
    }
    v.resize(count);
    return v;
}

Tensor filled(DType t, const Shape& shape, const std::vector<double>& values) {
    Tensor x = Tensor::empty(t, shape);
    for (int64_t i = 0; i < x.size(); ++i) x.set_at(i, values[static_cast<size_t>(i) % values.size()]);
    return x;
}

// Error in units in the last place of `want`.
double ulps(double want, double got, DType t) {
    if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : HUGE_VAL;
    if (want == got) return want == 0 && std::signbit(want) != std::signbit(got) ? HUGE_VAL : 0;
    if (std::isinf(want) || std::isinf(got)) return HUGE_VAL;
    int digits = t == DType::f64 ? 53 : 24, lowest = t == DType::f64 ? -1074 : -149;
    double unit = std::ldexp(1.0, std::max(std::ilogb(want) - digits + 1, lowest));
    return std::fabs(want - got) / unit;
}

struct Accuracy {
    const char* op;
    double f32, f64;  // largest error
};
// The reference is libm in double precision; f64 itself is only as good as it.
constexpr Accuracy kUnary[] = {
    {"abs", 0, 0},       {"neg", 0, 0},       {"square", 0.5, 0.5},     {"sign", 0, 0},
    {"sqrt", 0.5, 0.5},  {"rsqrt", 1.5, 1.5}, {"reciprocal", 0.5, 0.5}, {"floor", 0, 0},
    {"ceil", 0, 0},      {"trunc", 0, 0},     {"round_to_even", 0, 0},  {"frac", 0, 0},
    {"exp", 1.5, 2},     {"exp2", 1.5, 2},    {"expm1", 2, 2.5},        {"log", 1.5, 2},
    {"log2", 2.5, 3},    {"log10", 2.5, 3},   {"log1p", 2, 3},          {"sin", 2, 2.5},
    {"cos", 2, 2.5},     {"tan", 3, 4},       {"asin", 2.5, 1},         {"acos", 2.5, 1},
    {"atan", 2, 1},      {"sinh", 3, 4},      {"cosh", 2.5, 3},         {"tanh", 3, 4},
    {"asinh", 4, 5},     {"acosh", 4, 5},     {"atanh", 4, 5},          {"erf", 2, 1},
    {"erfc", 4, 1},      {"relu", 0, 0},      {"sigmoid", 3, 4},        {"deg2rad", 1, 0.5},
    {"rad2deg", 1, 0.5},
};

TEST_F(Elementwise, FunctionsAreWithinTheirAccuracyOfThePlainKernelOnEveryInstructionSet) {
    for (DType t : {DType::f32, DType::f64}) {
        Tensor x = filled(t, {4097}, interesting(t, 4097, 1));
        for (const Accuracy& a : kUnary) {
            const Op& op = registry().get(a.op);
            Value args[] = {x};
            Tensor want = run_plain(op, args).tensor();
            for (Isa isa : isas()) {
                cpu::set_isa(isa);
                Tensor got = run(op, args).tensor();
                double limit = t == DType::f32 ? a.f32 : a.f64, worst = 0, at = 0;
                for (int64_t i = 0; i < x.size(); ++i) {
                    double e = ulps(want.at(i), got.at(i), t);
                    if (e > worst) worst = e, at = x.at(i);
                }
                // The plain result has been rounded to the type as well: half a unit more.
                EXPECT_LE(worst, limit + 0.5)
                    << a.op << " on " << cpu::name_of(isa) << " " << name_of(t) << " at " << at;
            }
        }
    }
}

}  // namespace
}  // namespace lunaria
