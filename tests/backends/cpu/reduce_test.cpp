// Reductions, scans, softmax, norms and sorts: every instruction set against the plain kernels, and what their entries
// cannot say about accuracy, special values and ties.
#include "backends/cpu/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backends/cpu/device.h"
#include "backends/cpu/elementwise.h"
#include "core/ops/sample.h"
#include "core/random/random.h"
#include "core/threads/threads.h"

namespace lunaria {
namespace {

using cpu::Isa;

constexpr double kInf = HUGE_VAL;
const double kNan = std::nan("");

Tensor row(std::initializer_list<double> values, DType dtype = DType::f32) {
    Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
    int64_t i = 0;
    for (double v : values) t.set_at(i++, v);
    return t;
}

std::vector<double> numbers(const Value& v) {
    std::vector<double> list;
    for (int64_t i = 0; i < v.tensor().size(); ++i) list.push_back(v.tensor().at(i));
    return list;
}

Value apply(std::string_view op, std::initializer_list<Arg> args) { return eager_builder().call(op, args).value(); }

class Reduce : public testing::Test {
  protected:
    void SetUp() override {
        set_current_device(&cpu::device());
        isa_ = cpu::current_isa();
        threads_ = num_threads();
    }
    void TearDown() override {
        cpu::set_isa(isa_);
        set_num_threads(threads_);
        set_current_device(&cpu::device());
    }

    // The sample's call by the plain kernels and by the fast ones of every instruction set; special: some elements are
    // infinite or NaN.
    void compare(const std::string& op_name, const std::string& sample, bool special) {
        const Op& op = registry().get(op_name);
        for (DType dtype : {DType::f32, DType::f64}) {
            auto args = sample_args(op, sample, 7);
            for (Value& v : args) {
                if (!v.is_tensor() || v.tensor().dtype() != DType::f32) continue;
                Tensor t = v.tensor().copy();
                for (int64_t i = 0; special && i < t.size(); ++i) {
                    uint32_t draw = philox(3, static_cast<uint64_t>(i), 1)[0] % 120;
                    if (draw < 3) t.set_at(i, draw == 0 ? kNan : draw == 1 ? kInf : -kInf);
                }
                v = Value(t.cast(dtype));
            }
            set_current_device(&cpu::plain_device());
            auto plain = results(run(op, args));
            set_current_device(&cpu::device());
            for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
                if (!cpu::isa_available(isa)) continue;
                cpu::set_isa(isa);
                auto fast = results(run(op, args));
                // Sums of hundreds of numbers that cancel: the error is relative to their size, not to the result.
                double tolerance = dtype == DType::f32 ? 2e-4 : 1e-10;
                for (size_t k = 0; k < plain.size(); ++k)
                    expect_near(fast[k], plain[k], tolerance, op_name + " " + sample);
            }
        }
    }

    // The same bit by bit for whole numbers of the dtype, which wrap; nan: some elements are NaN where there are any.
    void compare_exactly(const std::string& op_name, const Shape& shape, DType dtype, const Value& axis) {
        const Op& op = registry().get(op_name);
        Tensor x = Tensor::empty(dtype, shape);
        for (int64_t i = 0; i < x.size(); ++i) {
            const uint32_t draw = philox(9, static_cast<uint64_t>(i), 1)[0];
            if (dtype == DType::i64)
                x.data<int64_t>()[i] = static_cast<int64_t>(draw) << (draw % 32);
            else
                x.set_at(i, dtype == DType::boolean ? draw % 50 > 0
                                                    : static_cast<double>(draw % 250) - (dtype == DType::u8 ? 0 : 125));
        }
        std::vector<Value> args(op.signature.params.size());
        for (size_t i = 0; i < args.size(); ++i) args[i] = op.signature.params[i].default_value;
        args[0] = Value(x);
        args[1] = axis;
        set_current_device(&cpu::plain_device());
        auto plain = results(run(op, args));
        set_current_device(&cpu::device());
        for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
            if (!cpu::isa_available(isa)) continue;
            cpu::set_isa(isa);
            auto fast = results(run(op, args));
            for (size_t k = 0; k < plain.size(); ++k)
                ASSERT_TRUE(same_value(Value(fast[k]), Value(plain[k])))
                    << op_name << " of " << name_of(dtype) << str(shape, " axis ", to_string(axis));
        }
    }

  private:
    static std::vector<Tensor> results(const Value& v) {
        std::vector<Tensor> list;
        if (v.is_tensor()) return {v.tensor()};
        for (const Value& item : v.items()) list.push_back(item.tensor());
        return list;
    }
    static void expect_near(const Tensor& got, const Tensor& want, double tolerance, const std::string& where) {
        ASSERT_EQ(got.shape(), want.shape()) << where;
        for (int64_t i = 0; i < got.size(); ++i) {
            double a = got.at(i), b = want.at(i);
            if (a == b || (std::isnan(a) && std::isnan(b))) continue;
            ASSERT_LE(std::abs(a - b), tolerance * (1 + std::abs(b))) << where << " element " << i << ": " << a;
        }
    }
    Isa isa_ = Isa::v2;
    int threads_ = 1;
};

const std::vector<std::string> kShapes = {"5",       "3,70",  "70,3",  "1000,3",  "3000,5",   "4,129,65", "3,40,2",
                                          "2,3,4,5", "300,1", "1,300", "17,1025", "2,9000,3", "70000"};

int rank_of(const std::string& shape) { return 1 + static_cast<int>(std::count(shape.begin(), shape.end(), ',')); }

TEST_F(Reduce, every_instruction_set_reduces_as_the_plain_kernels_do) {
    for (const std::string& shape : kShapes)
        for (bool special : {false, true})
            for (const char* op : {"sum", "mean", "amax", "amin", "var", "std", "logsumexp"}) {
                std::string x = "f32[" + shape + "]";
                compare(op, x, special);
                for (int axis = 0; axis < rank_of(shape); ++axis) compare(op, x + ", " + std::to_string(axis), special);
                if (rank_of(shape) > 2) compare(op, x + ", {0,2}", special);
            }
}

TEST_F(Reduce, complex_numbers_are_summed_part_by_part) {
    for (const Shape& shape : {Shape{70}, Shape{300, 8}, Shape{9, 40, 2}, Shape{3, 2, 300}, Shape{4, 1, 5, 7}})
        for (int axis = 0; axis < shape.rank(); ++axis) {
            const Tensor re = apply("randn", {shape}).tensor(), im = apply("randn", {shape}).tensor();
            const Value x = apply("complex", {re, im});
            for (const char* op : {"sum", "mean"}) {
                set_current_device(&cpu::plain_device());
                const Value plain = apply(op, {x, axis}), parts = apply("view_as_real", {plain});
                const std::vector<double> got = numbers(parts), first = numbers(apply(op, {re, axis})),
                                          second = numbers(apply(op, {im, axis}));
                for (size_t i = 0; i < first.size(); ++i) {
                    EXPECT_NEAR(got[2 * i], first[i], 1e-5) << op << str(shape, " axis ", axis);
                    EXPECT_NEAR(got[2 * i + 1], second[i], 1e-5) << op << str(shape, " axis ", axis);
                }
                set_current_device(&cpu::device());
                for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
                    if (!cpu::isa_available(isa)) continue;
                    cpu::set_isa(isa);
                    EXPECT_TRUE(same_value(apply(op, {x, axis}), plain)) << op << str(shape, " axis ", axis);
                }
            }
        }
}

TEST_F(Reduce, every_instruction_set_has_the_norms_of_the_plain_kernels) {
    for (const std::string& shape : kShapes)
        for (bool special : {false, true})
            for (const char* order : {"0", "1", "2", "3", "4", "0.5", "2.5", "7", "-1", "-2.5", "0.1", "100"}) {
                const std::string x = "f32[" + shape + "], " + order;
                compare("vector_norm", x, special);
                for (int axis = 0; axis < rank_of(shape); ++axis)
                    compare("vector_norm", x + ", " + std::to_string(axis), special);
            }
}

TEST_F(Reduce, every_instruction_set_reduces_integers_as_the_plain_kernels_do) {
    const std::vector<Shape> shapes = {{1},        {5},        {3, 70},    {70, 3},  {1000, 3}, {40, 129},
                                       {3, 40, 2}, {17, 1025}, {33000, 2}, {200003}, {300, 1}};
    for (const Shape& shape : shapes)
        for (DType dtype : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::i32, DType::i64}) {
            std::vector<Value> axes{Value()};
            for (int axis = 0; axis < shape.rank(); ++axis) axes.emplace_back(int64_t{axis});
            for (const Value& axis : axes) {
                for (const char* op : {"sum", "prod", "amax", "amin", "all", "any"})
                    compare_exactly(op, shape, dtype, axis);
                for (const char* op : {"argmax", "argmin", "max", "min"}) compare_exactly(op, shape, dtype, axis);
                if (!axis.is_nil())
                    for (const char* op : {"cumsum", "cumprod", "cummax", "cummin"})
                        compare_exactly(op, shape, dtype, axis);
            }
        }
}

TEST_F(Reduce, every_instruction_set_works_along_an_axis_as_the_plain_kernels_do) {
    for (const std::string& shape : kShapes)
        for (int axis = 0; axis < rank_of(shape); ++axis) {
            std::string x = "f32[" + shape + "]", along = ", " + std::to_string(axis);
            for (bool special : {false, true})
                for (const char* op : {"softmax", "log_softmax", "max", "min", "argmax", "argmin", "cumsum", "cummax",
                                       "cummin", "nansum", "all", "any"})
                    compare(op, x + along, special);
            compare("softmax_grad", x + ", " + x + ":(0,1)" + along, false);
            compare("log_softmax_grad", x + ", " + x + along, false);
            compare("vector_norm", x + ", 2" + along, false);
            compare("prod", x + ":(0.99,1.01)" + along, false);
        }
}

TEST_F(Reduce, every_instruction_set_normalises_as_the_plain_kernels_do) {
    for (const std::string shape : {"7,4,33", "300,8,5", "2,6,70,3", "40,16,1"}) {
        std::string x = "f32[" + shape + "]", last = shape.substr(shape.rfind(',') + 1);
        std::string after = shape.substr(shape.find(',') + 1), channels = after.substr(0, after.find(','));
        std::string w = "f32[" + last + "]", c = "f32[" + channels + "]";
        compare("layer_norm", x + ", {" + last + "}, " + w + ", " + w, false);
        compare("layer_norm", x + ", {" + last + "}", false);
        compare("layer_norm_grad", x + ", " + x + ", " + w + ", 1, 0.01", false);
        compare("rms_norm", x + ", " + w, false);
        compare("group_norm", x + ", 2, " + c + ", " + c, false);
        compare("batch_norm_train", x + ", " + c + ", " + c, false);
        compare("batch_norm_grad", x + ", " + x + ", " + c, false);
    }
    compare("batch_norm_train", "f32[500,3], f32[3], f32[3]", false);
    compare("batch_norm_train", "f32[90,700], f32[700], f32[700]", false);
}

TEST_F(Reduce, every_instruction_set_computes_losses_as_the_plain_kernels_do) {
    for (const std::string shape : {"5", "37", "3,70", "1000"}) {
        std::string x = "f32[" + shape + "]", p = x + ":(0,1)";
        compare("bernoulli_cross_entropy", p + ", " + p, false);
        compare("sigmoid_cross_entropy", x + ", " + p, true);
        compare("sigmoid_cross_entropy", x + ", " + p + ", " + x + ":(0.5,2)", false);
    }
}

TEST_F(Reduce, sums_of_four_million_floats_are_accurate) {
    Tensor x = Tensor::empty(DType::f32, {4096, 1024});
    double exact = 0;
    for (int64_t i = 0; i < x.size(); ++i) {
        float v = 0.1f + static_cast<float>(philox(1, static_cast<uint64_t>(i), 0)[0]) * 0x1p-32f;
        x.data<float>()[i] = v;
        exact += static_cast<double>(v);
    }
    double all = apply("sum", {x}).tensor().at(0);
    EXPECT_NEAR(all / exact, 1.0, 1e-7);
    double by_column = 0;
    for (double v : numbers(apply("sum", {x, 0}))) by_column += v;
    EXPECT_NEAR(by_column / exact, 1.0, 1e-6);
}

TEST_F(Reduce, results_do_not_depend_on_the_number_of_threads) {
    Tensor x = Tensor::empty(DType::f32, {300000, 4});
    for (int64_t i = 0; i < x.size(); ++i)
        x.data<float>()[i] = static_cast<float>(philox(2, static_cast<uint64_t>(i), 0)[0]) * 0x1p-31f - 1;
    for (auto axis : {Value(), Value(0), Value(1)}) {
        set_num_threads(1);
        Value one = apply("sum", {x, axis});
        set_num_threads(3);
        EXPECT_TRUE(same_value(one, apply("sum", {x, axis})));
    }
    Tensor grads = x.reshaped({1200, 1000});
    set_num_threads(1);
    Value one = apply("layer_norm_grad", {grads, grads, Value(), 1});
    set_num_threads(3);
    EXPECT_TRUE(same_value(one, apply("layer_norm_grad", {grads, grads, Value(), 1})));
}

TEST_F(Reduce, halves_are_summed_in_single_precision) {
    // In f16 the sum would stop at 2048, where 1 is less than half a unit in the last place.
    EXPECT_EQ(apply("sum", {Tensor::full(DType::f16, {4096}, 1)}).tensor().at(0), 4096);
    EXPECT_EQ(apply("mean", {Tensor::full(DType::bf16, {100000}, 3)}).tensor().at(0), 3);
}

TEST_F(Reduce, small_integers_are_summed_without_wrapping) {
    Value sum = apply("sum", {Tensor::full(DType::i8, {1000}, 100)});
    EXPECT_EQ(sum.tensor().dtype(), DType::i64);
    EXPECT_EQ(sum.tensor().at(0), 100000);
    EXPECT_EQ(apply("sum", {Tensor::full(DType::boolean, {70}, 1)}).tensor().at(0), 70);
}

TEST_F(Reduce, nothing_sums_to_zero_multiplies_to_one_and_has_no_maximum) {
    Tensor none = Tensor::empty(DType::f32, {3, 0});
    EXPECT_EQ(numbers(apply("sum", {none, 1})), (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(numbers(apply("prod", {none, 1})), (std::vector<double>{1, 1, 1}));
    EXPECT_TRUE(std::isnan(apply("mean", {none}).tensor().at(0)));
    EXPECT_EQ(apply("amax", {none, 0}).tensor().size(), 0);
    EXPECT_THROW(apply("amax", {none, 1}), Error);
    EXPECT_THROW(apply("argmax", {none}), Error);
    EXPECT_EQ(numbers(apply("all", {none, 1})), (std::vector<double>{1, 1, 1}));
}

TEST_F(Reduce, nan_is_the_largest_and_the_smallest) {
    Tensor x = row({1, kNan, 5, kNan});
    EXPECT_TRUE(std::isnan(apply("amax", {x}).tensor().at(0)));
    EXPECT_TRUE(std::isnan(apply("amin", {x}).tensor().at(0)));
    EXPECT_EQ(apply("argmax", {x}).tensor().at(0), 1);
    EXPECT_EQ(apply("argmin", {x}).tensor().at(0), 1);
}

TEST_F(Reduce, variance_survives_a_large_mean) {
    // Mean square less squared mean would give nonsense: both are 1e8.
    EXPECT_NEAR(apply("var", {row({10000, 10001, 10002})}).tensor().at(0), 2.0 / 3, 1e-6);
}

TEST_F(Reduce, norms_of_large_and_small_numbers_neither_overflow_nor_vanish) {
    EXPECT_NEAR(apply("norm", {row({3e30, 4e30})}).tensor().at(0) / 5e30, 1, 1e-6);
    EXPECT_NEAR(apply("norm", {row({3e-30, 4e-30})}).tensor().at(0) / 5e-30, 1, 1e-6);
    EXPECT_NEAR(apply("norm", {row({3e200, 4e200}, DType::f64)}).tensor().at(0) / 5e200, 1, 1e-12);
}

TEST_F(Reduce, norms_of_any_order_neither_overflow_nor_vanish) {
    for (const double order : {0.5, 1.0, 3.0, 4.0, 6.5})
        for (const double scale : {1e-44, 1e-30, 1e-12, 1e-7, 1e7, 1e12, 1e30}) {
            const double want = std::pow(std::pow(3.0, order) + std::pow(4.0, order), 1 / order);
            // The smallest floats have few digits.
            const Tensor x = row({3 * scale, 4 * scale});
            const double least = x.at(0) / (3 * scale);
            if (want * scale > 3e38) continue;
            EXPECT_NEAR(apply("vector_norm", {x, order}).tensor().at(0) / (want * scale), least,
                        scale < 1e-40 ? 0.2 : 1e-5)
                << order << " of " << scale;
        }
    for (const double order : {-2.0, 0.5, 3.0}) {
        EXPECT_EQ(apply("vector_norm", {row({0, 0, 0}), order}).tensor().at(0), 0) << order;
        EXPECT_TRUE(std::isnan(apply("vector_norm", {row({1, kNan}), order}).tensor().at(0))) << order;
    }
    EXPECT_EQ(apply("vector_norm", {row({1, -kInf, 2}), 3.0}).tensor().at(0), kInf);
    EXPECT_EQ(apply("vector_norm", {row({1, 0, kNan, -0.0}), 0}).tensor().at(0), 2);
}

TEST_F(Reduce, softmax_and_logsumexp_take_extreme_rows) {
    EXPECT_EQ(numbers(apply("softmax", {row({1000, -kInf, -1000})})), (std::vector<double>{1, 0, 0}));
    EXPECT_EQ(apply("logsumexp", {row({-kInf, -kInf})}).tensor().at(0), -kInf);
    EXPECT_EQ(apply("logsumexp", {row({kInf, 1})}).tensor().at(0), kInf);
    EXPECT_NEAR(apply("logsumexp", {row({1000, 1000})}).tensor().at(0), 1000.6931, 1e-3);
    EXPECT_NEAR(apply("log_softmax", {row({0, 200})}).tensor().at(0), -200, 1e-3);
}

TEST_F(Reduce, sorts_are_stable_and_put_nan_last) {
    Tensor x = row({2, kNan, 1, 2, -0.0, 0.0, -kInf, kInf});
    Value up = apply("sort", {x}), down = apply("sort", {x, -1, true});
    EXPECT_EQ(numbers(up.items()[1]), (std::vector<double>{6, 4, 5, 2, 0, 3, 7, 1}));
    EXPECT_EQ(numbers(down.items()[1]), (std::vector<double>{1, 7, 0, 3, 2, 4, 5, 6}));
}

TEST_F(Reduce, long_lines_of_every_type_are_sorted) {
    for (DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32, DType::i8, DType::u8, DType::f16}) {
        Tensor x = Tensor::empty(dtype, {5000});
        for (int64_t i = 0; i < x.size(); ++i) {
            double u = philox(4, static_cast<uint64_t>(i), 0)[0] * 0x1p-32;
            x.set_at(i, dtype == DType::u8 ? std::floor(200 * u) : std::floor(200 * u - 100));
        }
        Value sorted = apply("sort", {x});
        const Tensor &values = sorted.items()[0].tensor(), &places = sorted.items()[1].tensor();
        for (int64_t i = 0; i < x.size(); ++i) {
            ASSERT_EQ(values.at(i), x.at(places.integer_at(i))) << name_of(dtype);
            if (i == 0) continue;
            bool ordered = values.at(i - 1) < values.at(i) ||
                           (values.at(i - 1) == values.at(i) && places.at(i - 1) < places.at(i));
            ASSERT_TRUE(ordered) << name_of(dtype) << " at " << i;
        }
        Value top = apply("topk", {x, 7}), few = apply("topk", {x, 7, Value(), false});
        Value down = apply("sort", {x, -1, true});
        for (int64_t i = 0; i < 7; ++i) {
            EXPECT_EQ(top.items()[1].tensor().at(i), down.items()[1].tensor().at(i)) << name_of(dtype);
            EXPECT_EQ(few.items()[1].tensor().at(i), places.at(i)) << name_of(dtype);
        }
    }
}

TEST_F(Reduce, long_lines_of_wide_keys_are_sorted) {
    constexpr int64_t kRange[] = {0, 1, 1000, int64_t{1} << 33, int64_t{1} << 50, std::numeric_limits<int64_t>::max()};
    for (const DType dtype : {DType::i64, DType::f64})
        for (const int64_t range : kRange)
            for (const int64_t outlier : {int64_t{0}, int64_t{1} << 62, std::numeric_limits<int64_t>::min()})
                for (const bool down : {false, true}) {
                    const int64_t n = 3000;
                    Tensor x = Tensor::empty(dtype, {n, 2});
                    for (int64_t i = 0; i < x.size(); ++i) {
                        const auto draw = philox(4, static_cast<uint64_t>(i), 0);
                        uint64_t v = static_cast<uint64_t>(draw[0]) << 32 | draw[1];
                        v = v % (static_cast<uint64_t>(range) + 1) - static_cast<uint64_t>(range) / 2;
                        if (i == 77) v = static_cast<uint64_t>(outlier);
                        if (dtype == DType::i64)
                            x.data<int64_t>()[i] = static_cast<int64_t>(v);
                        else
                            x.data<double>()[i] =
                                i % 500 == 3 ? kNan : static_cast<double>(static_cast<int64_t>(v)) / 3;
                    }
                    const Value sorted = apply("sort", {x, 0, down});
                    const Tensor &values = sorted.items()[0].tensor(), &places = sorted.items()[1].tensor();
                    auto visit = [&](auto zero) {
                        using T = decltype(zero);
                        for (int64_t column : {0, 1}) {
                            std::vector<int64_t> want(n);
                            std::iota(want.begin(), want.end(), 0);
                            auto at = [&](int64_t k) { return x.data<T>()[2 * k + column]; };
                            // NaN is the largest.
                            auto less = [&](T a, T b) { return a < b || (b != b && a == a); };
                            std::stable_sort(want.begin(), want.end(), [&](int64_t a, int64_t b) {
                                return down ? less(at(b), at(a)) : less(at(a), at(b));
                            });
                            for (int64_t k = 0; k < n; ++k) {
                                const int64_t place = places.integer_at(2 * k + column);
                                ASSERT_EQ(place, want[static_cast<size_t>(k)]) << range << ' ' << outlier << ' ' << k;
                                const T got = values.data<T>()[2 * k + column];
                                ASSERT_TRUE(got == at(place) || got != got);
                            }
                        }
                    };
                    dtype == DType::i64 ? visit(int64_t{}) : visit(double{});
                }
}

TEST_F(Reduce, runs_have_their_first_elements_on_every_instruction_set) {
    const double kinds[] = {1, 1, 1, -0.0, 0.0, kNan, kNan, 2};
    for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::u8})
        for (const int64_t length : {0, 1, 2, 5, 17, 33, 1000, 70001})
            for (const int64_t run : {1, 3, 40, 1000}) {
                Tensor x = Tensor::empty(dtype, {length});
                std::vector<double> want;
                for (int64_t i = 0; i < length; ++i) {
                    double v = run == 1 ? static_cast<double>(i % 200)
                                        : kinds[philox(4, static_cast<uint64_t>(i / (i % 2 + run)), 0)[0] % 8];
                    if (std::isnan(v) && is_integer(dtype)) v = 7;
                    x.set_at(i, v);
                    const double before = i > 0 ? x.at(i - 1) : 0;
                    if (i == 0 || !(v == before || (v != v && before != before))) want.push_back(x.at(i));
                }
                for (Isa isa : {Isa::v2, Isa::avx2, Isa::avx512}) {
                    if (!cpu::isa_available(isa)) continue;
                    cpu::set_isa(isa);
                    const Tensor got = apply("unique_consecutive", {x}).tensor();
                    ASSERT_EQ(got.size(), static_cast<int64_t>(want.size())) << length << " by " << run;
                    for (int64_t i = 0; i < got.size(); ++i) {
                        const double a = got.at(i), b = want[static_cast<size_t>(i)];
                        ASSERT_TRUE((a == b && (is_integer(dtype) || std::signbit(a) == std::signbit(b))) ||
                                    (a != a && b != b))
                            << i;
                    }
                }
            }
}

TEST_F(Reduce, integers_beyond_two_to_the_53_keep_their_order) {
    Tensor x = Tensor::empty(DType::i64, {3});
    int64_t big = int64_t{1} << 60;
    for (int i = 0; i < 3; ++i) x.data<int64_t>()[i] = big + 2 - i;
    EXPECT_EQ(apply("sort", {x}).items()[0].tensor().integer_at(0), big);
    EXPECT_EQ(apply("amax", {x}).tensor().integer_at(0), big + 2);
    EXPECT_EQ(apply("argmax", {x}).tensor().at(0), 0);
}

TEST_F(Reduce, medians_and_quantiles_of_lines_with_nan) {
    Tensor x = row({4, kNan, 1, 2});
    EXPECT_TRUE(std::isnan(apply("median", {x}).items()[0].tensor().at(0)));
    EXPECT_EQ(apply("nanmedian", {x}).items()[0].tensor().at(0), 2);
    EXPECT_TRUE(std::isnan(apply("quantile", {x, 0.5}).tensor().at(0)));
    EXPECT_EQ(apply("nanquantile", {x, 0.5}).tensor().at(0), 2);
    EXPECT_NEAR(apply("quantile", {row({1, 2, 4, 8}), 0.25}).tensor().at(0), 1.75, 1e-6);
}

TEST_F(Reduce, labels_out_of_range_are_told_with_the_range) {
    Tensor logits = Tensor::zeros(DType::f32, {2, 3});
    for (double label : {50.0, -50.0, 3.0}) {
        try {
            apply("cross_entropy", {logits, row({0, label}, DType::i32)});
            ADD_FAILURE() << "accepted label " << label;
        } catch (const Error& e) {
            std::string text = e.what();
            EXPECT_NE(text.find(str("label ", label)), std::string::npos) << text;
            EXPECT_NE(text.find("0 .. 2"), std::string::npos) << text;
        }
    }
    EXPECT_NEAR(apply("cross_entropy", {logits, row({0, -100}, DType::i32)}).tensor().at(0), std::log(3), 1e-6);
}

TEST_F(Reduce, what_a_loss_leaves_out_does_not_become_nan) {
    Tensor masked = Tensor::zeros(DType::f32, {2, 2});
    masked.set_at(1, -kInf);
    Tensor target = Tensor::zeros(DType::f32, {2, 2});
    target.set_at(0, 1);
    target.set_at(2, 1);
    EXPECT_NEAR(apply("cross_entropy", {masked, target}).tensor().at(0), std::log(2) / 2, 1e-6);
    // The infinite loss of the first sample is ignored, not multiplied by 0.
    Value ignored = apply("cross_entropy", {masked, row({1, 0}, DType::i64), {"ignore_index", 1}});
    EXPECT_NEAR(ignored.tensor().at(0), std::log(2), 1e-6);
    EXPECT_EQ(apply("binary_cross_entropy_with_logits", {row({kInf, -kInf}), row({1, 0})}).tensor().at(0), 0);
    EXPECT_EQ(apply("kl_div", {row({0, -kInf}), row({1, 0})}).tensor().at(0), 0);
    EXPECT_EQ(apply("binary_cross_entropy", {row({0, 1}), row({1, 1})}).tensor().at(0), 50);
    EXPECT_THROW(apply("binary_cross_entropy", {row({1.5}), row({1})}), Error);
}

}  // namespace
}  // namespace lunaria
