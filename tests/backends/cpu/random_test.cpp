// The same numbers for every instruction set and number of threads, and the distributions they come from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/base/error.h"
#include "core/operator/op.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {
namespace {

class Random : public ::testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&device());
        default_generator().set_seed(11);
    }
    static Tensor call(std::string_view op, std::initializer_list<Arg> args) {
        return eager_builder().call(op, args).value().tensor();
    }
    // Mean and variance.
    static std::pair<double, double> moments(const Tensor& t) {
        double mean = 0, square = 0, n = static_cast<double>(t.size());
        for (int64_t i = 0; i < t.size(); ++i) mean += t.at(i) / n;
        for (int64_t i = 0; i < t.size(); ++i) square += (t.at(i) - mean) * (t.at(i) - mean) / n;
        return {mean, square};
    }
    static void expect_moments(const Tensor& t, double mean, double variance, double fourth) {
        auto [m, v] = moments(t);
        double n = static_cast<double>(t.size());
        EXPECT_NEAR(m, mean, 5 * std::sqrt(variance / n));
        EXPECT_NEAR(v, variance, 5 * std::sqrt((fourth - variance * variance) / n));
    }
};

TEST_F(Random, numbers_are_the_same_bits_for_every_instruction_set) {
    Isa before = current_isa();
    for (const char* op : {"rand", "randn"}) {
        Tensor want;
        for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
            if (!isa_available(isa)) continue;
            set_isa(isa);
            Tensor got = call(op, {Shape{100003}, {"seed", 5}});
            if (!want) want = got;
            EXPECT_EQ(std::memcmp(got.raw(), want.raw(), got.nbytes()), 0) << op << " " << name_of(isa);
        }
    }
    set_isa(before);
}

// The plain kernels make each block by itself; about 1 s.
TEST_F(Random, wide_and_skewed_numbers_are_the_same_bits_as_those_of_the_plain_kernels) {
    const Isa before = current_isa();
    auto draw = [](Device& on, std::string_view op, const Value& dtype) {
        set_current_device(&on);
        return dtype.is_nil() ? call(op, {Shape{10007}, {"seed", 5}}) : call(op, {Shape{10007}, dtype, {"seed", 5}});
    };
    for (const auto& [op, dtype] :
         {std::pair{"rand", Value(DType::f64)}, {"randn", Value(DType::f64)}, {"standard_laplace", Value()}}) {
        const Tensor want = draw(plain_device(), op, dtype);
        for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
            if (!isa_available(isa)) continue;
            set_isa(isa);
            const Tensor got = draw(device(), op, dtype);
            EXPECT_EQ(std::memcmp(got.raw(), want.raw(), got.nbytes()), 0) << op << " " << name_of(isa);
        }
        set_isa(before);
    }
    set_current_device(&device());
}

TEST_F(Random, numbers_do_not_depend_on_the_number_of_threads) {
    int before = num_threads();
    Tensor want;
    for (int threads : {1, 2, 3}) {
        set_num_threads(threads);
        Tensor got = call("randn", {Shape{300001}, {"seed", 5}});
        if (!want) want = got;
        EXPECT_EQ(std::memcmp(got.raw(), want.raw(), got.nbytes()), 0) << threads;
    }
    set_num_threads(before);
}

TEST_F(Random, a_longer_draw_begins_with_the_shorter_one) {
    Tensor a = call("rand", {Shape{7}, {"seed", 3}}), b = call("rand", {Shape{1003}, {"seed", 3}});
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(a.at(i), b.at(i));
}

TEST_F(Random, calls_differ_unless_the_seed_is_set_again) {
    Tensor a = call("rand", {Shape{8}}), b = call("rand", {Shape{8}});
    EXPECT_NE(std::memcmp(a.raw(), b.raw(), a.nbytes()), 0);
    default_generator().set_seed(11);
    Tensor c = call("rand", {Shape{8}});
    EXPECT_EQ(std::memcmp(a.raw(), c.raw(), a.nbytes()), 0);
}

TEST_F(Random, distributions_have_their_moments) {
    Shape n{200000};
    expect_moments(call("rand", {n}), 0.5, 1.0 / 12, 1.0 / 80);
    expect_moments(call("randn", {n}), 0, 1, 3);
    expect_moments(call("normal", {n, 1.5, 2.0}), 1.5, 4, 48);
    expect_moments(call("laplace", {n, 0.0, 1.0}), 0, 2, 24);
    expect_moments(call("gamma", {n, 2.0, 3.0}), 2.0 / 3, 2.0 / 9, 24.0 / 81);
    expect_moments(call("gamma", {n, 0.5, 1.0}), 0.5, 0.5, 3.75);
    expect_moments(call("poisson", {n, 4.0}), 4, 4, 52);
    expect_moments(call("poisson", {n, 40.0}), 40, 40, 4840);
    expect_moments(call("randint", {0, 10, n}), 4.5, 8.25, 120.8625);
    expect_moments(call("bernoulli", {call("zeros", {n}), 0.3}), 0.3, 0.21, 0.0777);
}

TEST_F(Random, draws_by_one_parameter_are_those_by_as_many_equal_ones) {
    const Isa before = current_isa();
    const Shape n{1001};
    for (const char* op : {"gamma", "poisson"})
        for (double parameter : {0.4, 2.5, 40.0})
            for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
                if (!isa_available(isa)) continue;
                set_isa(isa);
                const Tensor one = call(op, {n, Tensor::full(DType::f32, {}, parameter), {"seed", 5}});
                set_isa(Isa::v2);
                const Tensor each = call(op, {Shape{}, Tensor::full(DType::f32, n, parameter), {"seed", 5}});
                ASSERT_EQ(one.shape(), each.shape());
                EXPECT_EQ(std::memcmp(one.raw(), each.raw(), one.nbytes()), 0) << op << ' ' << parameter;
            }
    set_isa(before);
    const Tensor gamma = call("gamma", {Shape{5}, 2.5, {"seed", 5}});
    const double want[] = {1.98474896, 6.34612656, 1.96406245, 4.27911425, 4.44013166};
    for (int64_t i = 0; i < gamma.size(); ++i) EXPECT_NEAR(gamma.at(i), want[i], 1e-6 * want[i]);
}

TEST_F(Random, uniform_numbers_stay_below_one_and_normal_ones_are_finite) {
    Tensor u = call("rand", {Shape{1 << 20}}), z = call("randn", {Shape{1 << 20}});
    for (int64_t i = 0; i < u.size(); ++i) {
        ASSERT_GE(u.data<float>()[i], 0.0f);
        ASSERT_LT(u.data<float>()[i], 1.0f);
        ASSERT_TRUE(std::isfinite(z.data<float>()[i]));
    }
}

TEST_F(Random, a_permutation_holds_every_number_once) {
    Tensor p = call("randperm", {2000});
    std::set<int64_t> seen;
    double moved = 0;
    for (int64_t i = 0; i < 2000; ++i) {
        seen.insert(p.integer_at(i));
        moved += std::abs(static_cast<double>(p.integer_at(i) - i)) / 2000;
    }
    EXPECT_EQ(seen.size(), 2000u);
    EXPECT_NEAR(moved, 2000.0 / 3, 60);
}

TEST_F(Random, multinomial_draws_in_proportion_and_without_replacement_only_once) {
    Tensor weights = Tensor::from<double>(std::vector<double>{1, 2, 7}, {3});
    Tensor draws = call("multinomial", {Value(weights), 20000});
    double count[3] = {};
    for (int64_t i = 0; i < draws.size(); ++i) ++count[draws.integer_at(i)];
    EXPECT_NEAR(count[0], 2000, 250);
    EXPECT_NEAR(count[1], 4000, 340);
    Tensor once = call("multinomial", {Value(weights), 3, false});
    std::set<int64_t> seen{once.integer_at(0), once.integer_at(1), once.integer_at(2)};
    EXPECT_EQ(seen.size(), 3u);
    EXPECT_THROW(call("multinomial", {Value(weights), 4, false}), Error);
    EXPECT_THROW(call("multinomial", {Value(Tensor::from<double>(std::vector<double>{-1, 2}, {2})), 1}), Error);
    EXPECT_THROW(call("multinomial", {Value(Tensor::zeros(DType::f32, {2})), 1}), Error);
}

TEST_F(Random, dropout_divides_exactly_what_it_keeps) {
    Tensor x = call("randn", {Shape{20001}});
    Tensor y = call("dropout", {Value(x), 0.4});
    int64_t kept = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
        float value = y.data<float>()[i];
        if (value == 0) continue;
        ++kept;
        ASSERT_EQ(value, x.data<float>()[i] / static_cast<float>(1 - 0.4));
    }
    EXPECT_NEAR(static_cast<double>(kept), 12000, 350);
    Tensor none = call("dropout", {Value(x), 1.0});
    for (int64_t i = 0; i < none.size(); ++i) ASSERT_EQ(none.at(i), 0);
}

// Rounding to few digits must not reach the end that is not in the interval.
TEST_F(Random, uniform_numbers_stay_below_their_end_in_every_dtype) {
    for (Device* where : {&device(), &plain_device()})
        for (DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
            set_current_device(where);
            const Shape many{200'000};
            const Tensor unit = call("rand", {many, dtype, 5}), single = call("rand", {many, DType::f32, 5});
            const Tensor like = call("rand_like", {Tensor::zeros(dtype, many), 6});
            const Tensor shifted = call("uniform", {many, 1000.0, 1001.0, 7, dtype});
            const Tensor between =
                call("uniform", {many, Tensor::full(dtype, {1}, -3.0), Tensor::full(dtype, {1}, 7.0), 8});
            for (int64_t i = 0; i < unit.size(); ++i) {
                ASSERT_LT(unit.at(i), 1) << name_of(dtype);
                ASSERT_LT(like.at(i), 1) << name_of(dtype);
                ASSERT_GE(shifted.at(i), 1000) << name_of(dtype);
                ASSERT_LT(shifted.at(i), 1001) << name_of(dtype);
                ASSERT_LT(between.at(i), 7) << name_of(dtype);
                ASSERT_GE(between.at(i), -3) << name_of(dtype);
            }
            // The numbers of float32, rounded.
            if (!is_half(dtype)) continue;
            const Tensor rounded = single.cast(dtype);
            const double last = 1 - (dtype == DType::f16 ? 0x1p-11 : 0x1p-8);
            for (int64_t i = 0; i < unit.size(); ++i) ASSERT_EQ(unit.at(i), std::min(rounded.at(i), last));
        }
}

TEST_F(Random, impossible_parameters_are_refused) {
    auto message_of = [](std::string_view op, std::initializer_list<Arg> args) -> std::string {
        try {
            call(op, args);
        } catch (const Error& e) {
            return e.what();
        }
        return "nothing was thrown";
    };
    auto expect = [](const std::string& message, std::string_view op, std::string_view what) {
        EXPECT_TRUE(message.starts_with(op) && message.find(what) != std::string::npos) << message;
    };
    const Shape shape{4};
    const Tensor bad = Tensor::from<float>(std::vector<float>{1, 2, -3, 4}, {4});
    const Tensor nan = Tensor::full(DType::f32, {4}, std::nan(""));
    for (const Tensor& t : {bad, nan}) {
        expect(message_of("normal", {shape, 0.0, t}), "normal", "stddev must not be negative, got");
        expect(message_of("laplace", {shape, 0.0, t}), "laplace", "lambda_param must not be negative, got");
        expect(message_of("gamma", {shape, 1.0, t}), "gamma", "beta must be positive, got");
        expect(message_of("gamma", {shape, t}), "gamma", "alpha must not be negative, got");
        expect(message_of("poisson", {shape, t}), "poisson", "must not be negative, got");
        expect(message_of("bernoulli", {bad, t}), "bernoulli", "p must be a probability, got");
        expect(message_of("uniform", {shape, 0.0, t}), "uniform", "maxval - minval must not be negative, got");
        expect(message_of("multinomial", {t, 2}), "multinomial", "negative");
    }
    expect(message_of("normal", {shape, 0.0, -1.0}), "normal", "stddev must not be negative, got -1");
    expect(message_of("normal", {shape, 0.0, bad}), "normal", "got -3 (element 2)");
    expect(message_of("laplace", {shape, 0.0, -1.0}), "laplace", "lambda_param must not be negative, got -1");
    expect(message_of("uniform", {shape, 3.0, 1.0}), "uniform", "maxval - minval must not be negative, got -2");
    expect(message_of("bernoulli", {bad, 1.5}), "bernoulli", "p must be a probability, got 1.5");
    expect(message_of("dropout", {bad, -0.5}), "dropout", "p must be a probability");
    expect(message_of("randint", {0, 300, shape, Value(), DType::i8}), "randint", "0 .. 299 do not all fit in int8");
    expect(message_of("randint", {0, 3000, shape, Value(), DType::f16}), "randint", "do not all fit in float16");
    expect(message_of("randperm", {300, Value(), 0, DType::u8}), "randperm", "0 .. 299 do not all fit in uint8");
    expect(message_of("randint", {5, 5, shape}), "randint", "low (5) must be less than high (5)");
    // At the edge of what is possible.
    EXPECT_EQ(call("normal", {shape, 2.0, 0.0}).at(1), 2);
    EXPECT_EQ(call("uniform", {shape, 2.0, 2.0}).at(1), 2);
    EXPECT_EQ(call("randint", {-128, 128, shape, Value(), DType::i8}).dtype(), DType::i8);
}

}  // namespace
}  // namespace lunaria::cpu
