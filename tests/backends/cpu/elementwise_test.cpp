// Fast elementwise kernels of each instruction set against the plain ones, on special values, odd sizes and layouts.
#include "backends/cpu/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backends/cpu/around_cache.h"
#include "backends/cpu/device.h"
#include "core/operator/op.h"
#include "core/threads/threads.h"

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
    {"asinh", 4, 5},     {"acosh", 4, 5},     {"atanh", 4, 5},          {"erfinv", 12, 4},
    {"erf", 2, 1},       {"erfc", 4, 1},      {"relu", 0, 0},           {"sigmoid", 3, 4},
    {"deg2rad", 1, 0.5}, {"rad2deg", 1, 0.5},
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

TEST_F(Elementwise, GeluKeepsItsRelativeAccuracyInTheLeftTail) {
    std::vector<double> values{0.0, -0.0, HUGE_VAL, std::nan(""), 1e30, 100, 6};
    for (double x = -8; x < 6; x += 0.00390625) values.push_back(x);
    Tensor x = filled(DType::f32, {static_cast<int64_t>(values.size())}, values);
    Value args[] = {x};
    for (Isa isa : isas()) {
        cpu::set_isa(isa);
        Tensor got = run(registry().get("gelu_erf"), args).tensor();
        for (int64_t i = 0; i < x.size(); ++i) {
            double at = x.at(i), want = at * 0.5 * std::erfc(at * -0.70710678118654752440);
            // What one rounding of x / sqrt(2) costs grows with x^2.
            double limit = 5 + (at < 0 ? at * at : 0);
            EXPECT_LE(ulps(want, got.at(i), DType::f32), limit) << cpu::name_of(isa) << " at " << at;
        }
    }
}

// All elementwise operators with operands of one dtype, by number of operands.
struct Case {
    const char* op;
    int operands;
};
constexpr Case kNumbers[] = {{"add", 2},          {"sub", 2},       {"mul", 2},     {"maximum", 2}, {"minimum", 2},
                             {"clamp", 3},        {"abs", 1},       {"neg", 1},     {"square", 1},  {"sign", 1},
                             {"equal", 2},        {"less", 2},      {"greater", 2}, {"relu", 1},    {"fmax", 2},
                             {"floor_divide", 2}, {"remainder", 2}, {"fmod", 2}};
constexpr DType kDTypes[] = {DType::u8,  DType::i8,   DType::i16, DType::i32, DType::i64,
                             DType::f16, DType::bf16, DType::f32, DType::f64};

Tensor numbers(DType t, const Shape& shape, unsigned seed) {
    std::mt19937 random(seed);
    Tensor x = Tensor::empty(t, shape);
    // Small whole numbers without 0: exact in every type, and fit to divide by.
    for (int64_t i = 0; i < x.size(); ++i) {
        int n = static_cast<int>(random() % 100) + 1;
        x.set_at(i, t == DType::u8 || random() % 2 ? n : -n);
    }
    return x;
}

void expect_same(const Tensor& want, const Tensor& got, const std::string& what) {
    ASSERT_EQ(want.dtype(), got.dtype()) << what;
    ASSERT_EQ(want.shape(), got.shape()) << what;
    for (int64_t i = 0; i < want.size(); ++i) {
        double a = want.at(i), b = got.at(i);
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << what << " at " << i << ": " << a << " and " << b;
    }
}

// A view with gaps: every second row and column of a larger tensor.
Tensor strided(DType t, unsigned seed) {
    Tensor x = numbers(t, {14, 66}, seed);
    return x.view({7, 33}, {132, 2}, 67);
}

TEST_F(Elementwise, EveryDtypeLayoutAndBroadcastAgreesWithThePlainKernelOnEveryInstructionSet) {
    for (DType t : kDTypes) {
        Tensor column = numbers(t, {7, 1}, 2), row = numbers(t, {33}, 3), one = numbers(t, {1, 1}, 4);
        Tensor turned = numbers(t, {33, 7}, 5).view({7, 33}, {1, 7});
        Tensor upward = numbers(t, {7, 33}, 6);
        Value first[] = {numbers(t, {7, 33}, 1), strided(t, 8), turned, column};
        Value second[] = {upward, row, column, one, turned, Value(3)};
        for (const Case& c : kNumbers) {
            const Op& op = registry().get(c.op);
            for (const Value& a : first)
                for (const Value& b : second) {
                    std::vector<Value> args{a, b, row};
                    args.resize(static_cast<size_t>(c.operands));
                    Tensor want = run_plain(op, args).tensor();
                    for (Isa isa : isas()) {
                        cpu::set_isa(isa);
                        expect_same(want, run(op, args).tensor(),
                                    str(c.op, " ", name_of(t), " on ", cpu::name_of(isa)));
                    }
                    if (c.operands == 1) break;
                }
        }
    }
}

TEST_F(Elementwise, WholePowersAndQuotientsAgreeWithThePlainKernelOnEveryInstructionSet) {
    for (DType t : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
        std::mt19937_64 random(3);
        // All of the type's range, its ends included.
        Tensor x = Tensor::empty(DType::i64, {1003}), y = Tensor::empty(DType::i64, {1003});
        Tensor exponents = Tensor::empty(DType::i64, {1003});
        for (int64_t i = 0; i < x.size(); ++i) {
            x.data<int64_t>()[i] = static_cast<int64_t>(random() >> (random() % 64));
            y.data<int64_t>()[i] = static_cast<int64_t>(random() >> (random() % 64)) * (random() % 2 ? 1 : -1);
            exponents.data<int64_t>()[i] = static_cast<int64_t>(i % 7 ? random() % 9 : random() % 100);
        }
        x = x.cast(t);
        y = y.cast(t);
        const auto lowest = static_cast<int64_t>(-(uint64_t{1} << (8 * size_of(t) - 1)));
        for (int64_t i = 0; i < x.size(); ++i) {
            if (i % 5 == 0) x.set_at(i, t == DType::u8 ? 0 : static_cast<double>(lowest));
            if (y.integer_at(i) == 0 || i % 3 == 0) y.set_at(i, t == DType::u8 ? 255 : -1);
        }
        const auto check = [&](const char* name, const Value& a, const Value& b) {
            const Op& op = registry().get(name);
            Value args[] = {a, b};
            const Tensor want = run_plain(op, args).tensor();
            for (Isa isa : isas()) {
                cpu::set_isa(isa);
                const Tensor got = run(op, args).tensor();
                for (int64_t i = 0; i < want.size(); ++i)
                    ASSERT_EQ(got.integer_at(i), want.integer_at(i))
                        << name << ' ' << name_of(t) << " on " << cpu::name_of(isa) << " at " << i;
            }
        };
        for (int64_t n : {0, 1, 2, 3, 4, 5, 10, 63, 64, 100}) check("pow", x, Value(n));
        check("pow", x, exponents.cast(t));
        for (const char* name : {"floor_divide", "truncate_div", "remainder", "fmod"}) {
            check(name, x, y);
            for (int64_t n : {1, 7, 100}) check(name, x, Value(n));
            if (t != DType::u8) check(name, x, Value(int64_t{-1}));
        }
    }
}

TEST_F(Elementwise, WhatIntegersNeverAreIsKnownWithoutLooking) {
    for (DType t : {DType::boolean, DType::u8, DType::i16, DType::i64})
        for (const char* name : {"isnan", "isinf", "isposinf", "isneginf", "isfinite"}) {
            const Op& op = registry().get(name);
            Value args[] = {Tensor::full(t, {3, 70}, 1).view({70, 2}, {1, 70})};
            expect_same(run_plain(op, args).tensor(), run(op, args).tensor(), str(name, " of ", name_of(t)));
            EXPECT_EQ(run(op, args).tensor().at(5), std::string(name) == "isfinite");
        }
}

TEST_F(Elementwise, NeighboursAgreeWithThePlainKernelOnEveryInstructionSet) {
    const Op& op = registry().get("nextafter");
    for (DType t : {DType::f16, DType::f32, DType::f64}) {
        const double tiny = t == DType::f32 ? 0x1p-149 : 0x1p-1074;
        const double large = t == DType::f32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
        const std::vector<double> ends = {0.0,    -0.0, 1,        -1,        tiny,         -tiny, large,
                                          -large, 1.5,  HUGE_VAL, -HUGE_VAL, std::nan(""), 2,     0x1p-126};
        std::vector<double> from, to;
        for (double a : ends)
            for (double b : ends) from.push_back(a), to.push_back(b);
        const auto n = static_cast<int64_t>(from.size());
        Value args[] = {filled(t, {n}, from), filled(t, {n}, to)};
        const Tensor want = run_plain(op, args).tensor();
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            const Tensor got = run(op, args).tensor();
            for (int64_t i = 0; i < n; ++i) {
                const double a = want.at(i), b = got.at(i);
                ASSERT_TRUE((a == b && std::signbit(a) == std::signbit(b)) || (a != a && b != b))
                    << from[static_cast<size_t>(i)] << " to " << to[static_cast<size_t>(i)] << " on "
                    << cpu::name_of(isa) << ": " << a << " and " << b;
            }
        }
    }
}

TEST_F(Elementwise, SignsOfFloatsOf16BitsChangeAsThoseOfTheirConversionsDo) {
    for (DType t : {DType::bf16, DType::f16}) {
        const Tensor all = Tensor::empty(t, {1 << 16}), wide = Tensor::empty(DType::f32, {1 << 16});
        auto* patterns = static_cast<uint16_t*>(all.raw());
        for (int i = 0; i < 1 << 16; ++i) patterns[i] = static_cast<uint16_t>(i);
        copy_elements(all, wide);
        for (const char* name : {"neg", "abs"})
            for (Isa isa : isas()) {
                cpu::set_isa(isa);
                Value args[] = {all}, wider[] = {wide};
                const Tensor got = run(registry().get(name), args).tensor(), want = Tensor::empty(t, {1 << 16});
                copy_elements(run(registry().get(name), wider).tensor(), want);
                EXPECT_EQ(std::memcmp(got.raw(), want.raw(), want.nbytes()), 0)
                    << name << " of " << name_of(t) << " on " << cpu::name_of(isa);
            }
    }
}

TEST_F(Elementwise, LongRowsAreBroadcastWithoutCopies) {
    Tensor x = numbers(DType::f32, {5, 1000}, 1), row = numbers(DType::f32, {1000}, 2),
           column = numbers(DType::f32, {5, 1}, 3);
    Tensor every_second = numbers(DType::f32, {5, 2000}, 4).view({5, 1000}, {2000, 2});
    for (const Value& other : {Value(row), Value(column), Value(every_second)}) {
        Value args[] = {x, other};
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            expect_same(run_plain(registry().get("sub"), args).tensor(), run(registry().get("sub"), args).tensor(),
                        "sub");
        }
    }
}

// Rows that all blocks share, operands in the middle of rows, and neighbours that are spread over short rows.
TEST_F(Elementwise, OperandsThatRepeatAreSpreadOverRowsOfAnyLength) {
    const std::pair<Shape, Shape> shapes[] = {{{3000, 5}, {5}},
                                              {{700, 130}, {130}},
                                              {{9, 2500}, {1, 2500}},
                                              {{9, 7, 11, 3}, {7, 1, 3}},
                                              {{5, 4, 300, 6}, {4, 1, 6}},
                                              {{301, 1, 77, 4}, {1, 4, 1, 4}},
                                              {{40, 3, 5, 3}, {1, 3, 1, 1}},
                                              {{6, 1000, 2}, {1000, 1}},
                                              {{3000, 5}, {3000, 1}}};
    const int before = num_threads();
    for (DType t : {DType::i8, DType::bf16, DType::i32, DType::f32, DType::f64, DType::i64})
        for (const auto& [a, b] : shapes)
            for (const DType other : {t, DType::f32}) {
                Value args[] = {numbers(t, a, 1), numbers(other, b, 2)};
                const Tensor want = run_plain(registry().get("sub"), args).tensor();
                for (Isa isa : isas()) {
                    cpu::set_isa(isa);
                    for (int threads : {1, 3}) {
                        set_num_threads(threads);
                        expect_same(want, run(registry().get("sub"), args).tensor(),
                                    str("sub of ", name_of(t), a, " and ", name_of(other), b));
                    }
                }
            }
    set_num_threads(before);
}

TEST_F(Elementwise, EverySizeUpToThreePacksIsRight) {
    for (DType t : kDTypes)
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            for (int64_t n = 0; n <= 200; n += n < 70 ? 1 : 13) {
                Value args[] = {numbers(t, {n}, 1), numbers(t, {n}, 2)};
                expect_same(run_plain(registry().get("add"), args).tensor(), run(registry().get("add"), args).tensor(),
                            str("add of ", n, " ", name_of(t)));
                expect_same(run_plain(registry().get("less"), args).tensor(),
                            run(registry().get("less"), args).tensor(), str("less of ", n, " ", name_of(t)));
            }
        }
}

TEST_F(Elementwise, SelectionTakesMasksOfAnyLayout) {
    Tensor mask = Tensor::empty(DType::boolean, {33});
    for (int64_t i = 0; i < 33; ++i) mask.set_at(i, i % 3 == 0);
    for (DType t : kDTypes)
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            Value where[] = {mask, numbers(t, {7, 33}, 1), strided(t, 2)};
            Value fill[] = {numbers(t, {7, 33}, 1), mask, 5};
            for (auto [name, args] : {std::pair{"where", where}, std::pair{"masked_fill", fill}}) {
                std::span<const Value> list(args, 3);
                expect_same(run_plain(registry().get(name), list).tensor(), run(registry().get(name), list).tensor(),
                            name);
            }
        }
}

TEST_F(Elementwise, ThreadsDoNotChangeResults) {
    Tensor x = filled(DType::f32, {300'001}, interesting(DType::f32, 4097, 3));
    Value args[] = {x};
    int before = num_threads();
    for (const char* name : {"exp", "tanh", "relu", "lgamma"}) {
        set_num_threads(1);
        Tensor one = run(registry().get(name), args).tensor();
        set_num_threads(3);
        expect_same(one, run(registry().get(name), args).tensor(), name);
    }
    set_num_threads(before);
}

// Takes every result for a large one.
class AllAround {
  public:
    AllAround() : before_(cpu::around_cache()) { cpu::set_around_cache({0, 0}); }
    ~AllAround() { cpu::set_around_cache(before_); }

  private:
    cpu::AroundCache before_;
};

TEST_F(Elementwise, WhatTheLastCacheHoldsIsWrittenAroundItByOneThreadOnly) {
    const AllAround restores;
    const int before = num_threads();
    cpu::set_around_cache({1000, 4000});
    set_num_threads(1);
    EXPECT_FALSE(cpu::goes_around_cache(999, 8000));
    EXPECT_TRUE(cpu::goes_around_cache(1000, 2000));
    set_num_threads(2);
    EXPECT_FALSE(cpu::goes_around_cache(1000, 4000));
    EXPECT_TRUE(cpu::goes_around_cache(1000, 4001));
    set_num_threads(before);
}

TEST_F(Elementwise, ResultsThatAreWrittenAroundTheCachesAreTheSame) {
    const Tensor dense = numbers(DType::f32, {301, 333}, 1), row = numbers(DType::f32, {333}, 2);
    const Tensor turned = numbers(DType::f32, {333, 301}, 3).view({301, 333}, {1, 301});
    const Tensor half = numbers(DType::f16, {301, 333}, 4), wide = numbers(DType::f64, {301, 333}, 5);
    const Tensor odd = numbers(DType::f32, {301 * 333 + 3}, 6).view({301, 333}, {333, 1}, 3);
    const std::pair<const char*, std::vector<Value>> calls[] = {
        {"add", {dense, odd}},    {"add", {dense, row}}, {"add", {odd, Value(2.5)}},
        {"mul", {turned, dense}}, {"add", {half, half}}, {"add", {wide, wide}},
        {"relu", {odd}},          {"exp", {row}},        {"less", {dense, turned}},
        {"tanh", {turned}},       {"sigmoid", {dense}},  {"maximum", {dense, half}},
    };
    for (const auto& [name, args] : calls) {
        const Op& op = registry().get(name);
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            const Tensor want = run(op, args).tensor();
            const AllAround all;
            expect_same(want, run(op, args).tensor(), str(name, " on ", cpu::name_of(isa)));
        }
    }
}

// A plan may give a kernel memory at any multiple of an element's size.
TEST_F(Elementwise, ALoopAroundTheCachesWritesWhatItShouldAndNothingElse) {
    const Tensor x = numbers(DType::f32, {200}, 7);
    alignas(64) float to[300];
    for (Isa isa : isas()) {
        cpu::set_isa(isa);
        const cpu::OpLoops::Entry& entry =
            cpu::loops_of(registry().get("neg")).by_dtype[static_cast<size_t>(DType::f32)];
        ASSERT_NE(entry.around, nullptr);
        for (int64_t begin = 0; begin < 20; ++begin)
            for (const int64_t count : {1, 5, 16, 40, 129}) {
                std::fill(std::begin(to), std::end(to), 0.0f);
                const void* in[] = {x.data<float>() + 1};
                const int64_t step[] = {1};
                entry.around(in, step, to + begin, count);
                cpu::finish_around_cache();
                for (int64_t i = 0; i < 300; ++i)
                    ASSERT_EQ(to[i], i >= begin && i < begin + count ? -x.data<float>()[i - begin + 1] : 0.0f)
                        << cpu::name_of(isa) << " from " << begin << ", " << count << ", at " << i;
            }
    }
}

TEST_F(Elementwise, TwoOperandFunctionsHandleSpecialValues) {
    auto x = interesting(DType::f32, 120, 5);
    auto n = static_cast<int64_t>(x.size());
    Tensor a = filled(DType::f32, {n, 1}, x), b = filled(DType::f32, {1, n}, x);
    for (auto [name, limit] : {std::pair{"pow", 1.5}, std::pair{"atan2", 3.0}, std::pair{"hypot", 2.0},
                               std::pair{"fmod", 0.0}, std::pair{"remainder", 0.5}, std::pair{"copysign", 0.0},
                               std::pair{"maximum", 0.0}, std::pair{"fmin", 0.0}, std::pair{"div", 0.5}}) {
        std::vector<Value> args{a, b};
        args.resize(registry().get(name).signature.params.size());
        Tensor want = run_plain(registry().get(name), args).tensor();
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            Tensor got = run(registry().get(name), args).tensor();
            for (int64_t i = 0; i < want.size(); ++i)
                ASSERT_LE(ulps(want.at(i), got.at(i), DType::f32), limit + 0.5)
                    << name << "(" << a.at(i / n) << ", " << b.at(i % n) << ") on " << cpu::name_of(isa) << ": "
                    << want.at(i) << " and " << got.at(i);
        }
    }
}

// What people write most is computed by multiplications. An exponent beside others gives the same bits as one alone.
TEST_F(Elementwise, PowersWithShortExponentsAreTheSameInAnyCompany) {
    const std::vector<double> exponents = {-2, -1, -0.5, 0.5, 1, 2, 3, 4, 2.5};
    auto count = static_cast<int64_t>(exponents.size());
    const Op& pow = registry().get("pow");
    for (DType t : {DType::f32, DType::f64}) {
        auto values = interesting(t, 200, 11);
        auto n = static_cast<int64_t>(values.size());
        Tensor x = filled(t, {n, 1}, values), y = filled(t, {1, count}, exponents);
        Value table[] = {x, y};
        Tensor want = run_plain(pow, table).tensor();
        for (Isa isa : isas()) {
            cpu::set_isa(isa);
            Tensor together = run(pow, table).tensor();
            for (int64_t k = 0; k < count; ++k) {
                Value column[] = {x, Tensor::scalar(t, exponents[static_cast<size_t>(k)])};
                Tensor alone = run(pow, column).tensor();
                for (int64_t i = 0; i < n; ++i) {
                    const double got = alone.at(i), mixed = together.at(i * count + k);
                    ASSERT_LE(ulps(want.at(i * count + k), got, t), 2)
                        << values[static_cast<size_t>(i)] << " to the power " << exponents[static_cast<size_t>(k)]
                        << " on " << cpu::name_of(isa) << ": " << got;
                    ASSERT_TRUE(got == mixed || (std::isnan(got) && std::isnan(mixed))) << got << " and " << mixed;
                }
            }
        }
    }
}

TEST_F(Elementwise, ConversionsAgreeWithThePlainOnes) {
    for (DType from : kDTypes)
        for (DType to :
             {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f16, DType::bf16, DType::f32, DType::f64}) {
            if (from == to) continue;
            auto values = interesting(DType::f32, 333, 9);
            if (!is_float(to) || !is_float(from))
                for (double& v : values) v = std::isfinite(v) ? std::trunc(std::fmod(std::fabs(v), 100.0)) : 7;
            Value args[] = {filled(from, {333}, values), to};
            for (Isa isa : isas()) {
                cpu::set_isa(isa);
                expect_same(run_plain(registry().get("cast"), args).tensor(),
                            run(registry().get("cast"), args).tensor(), str(name_of(from), " to ", name_of(to)));
            }
        }
}

}  // namespace
}  // namespace lunaria
