// Edge cases of elementwise operators on which MindSpore's users rely.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/device.h"
#include "core/base/error.h"
#include "core/operator/op.h"

namespace lunaria {
namespace {

class ElementwiseSemantics : public testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
};

Tensor floats(std::vector<float> v) {
    auto n = static_cast<int64_t>(v.size());
    return Tensor::from(std::span<const float>(v), {n});
}
Tensor ints(std::vector<int32_t> v) {
    auto n = static_cast<int64_t>(v.size());
    return Tensor::from(std::span<const int32_t>(v), {n});
}
Tensor apply(const char* op, std::initializer_list<Arg> args) {
    return eager_builder().call(op, args).value().tensor();
}
std::vector<double> list(const Tensor& t) {
    std::vector<double> v;
    for (int64_t i = 0; i < t.size(); ++i) v.push_back(t.at(i));
    return v;
}
using Numbers = std::vector<double>;

std::string message_of(const std::function<void()>& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "nothing was thrown";
}

TEST_F(ElementwiseSemantics, IntegersDivideIntoFloatsAndFunctionsOfIntegersAreFloats) {
    EXPECT_EQ(apply("div", {ints({1, 3}), ints({2, 2})}).dtype(), DType::f32);
    EXPECT_EQ(list(apply("div", {ints({1, 3}), 2})), (Numbers{0.5, 1.5}));
    EXPECT_EQ(apply("exp", {ints({0})}).dtype(), DType::f32);
    EXPECT_EQ(list(apply("div", {floats({7, -7}), 2.0, {"rounding_mode", "floor"}})), (Numbers{3, -4}));
    EXPECT_EQ(list(apply("div", {floats({7, -7}), 2.0, {"rounding_mode", "trunc"}})), (Numbers{3, -3}));
}

TEST_F(ElementwiseSemantics, NumbersDecideTheKindButNotTheWidth) {
    Tensor half = floats({1, 2}).cast(DType::f16);
    EXPECT_EQ(apply("add", {half, 2.5}).dtype(), DType::f16);
    EXPECT_EQ(apply("add", {ints({1}), 2.5}).dtype(), DType::f32);
    EXPECT_EQ(apply("add", {ints({1}), 2}).dtype(), DType::i32);
    EXPECT_EQ(list(apply("mul", {2.5, half})), (Numbers{2.5, 5}));
}

TEST_F(ElementwiseSemantics, HalvesRoundToEvenAndSignOfNanIsZero) {
    EXPECT_EQ(list(apply("round", {floats({0.5, 1.5, 2.5, -0.5})})), (Numbers{0, 2, 2, 0}));
    EXPECT_EQ(list(apply("sign", {floats({-3, 0, std::nanf("")})})), (Numbers{-1, 0, 0}));
}

TEST_F(ElementwiseSemantics, NanIsHandedOn) {
    Tensor nan = floats({std::nanf("")});
    for (const char* op : {"relu", "relu6", "sigmoid", "gelu", "hardswish", "floor"})
        EXPECT_TRUE(std::isnan(apply(op, {nan}).at(0))) << op;
    for (const char* op : {"maximum", "minimum"}) {
        EXPECT_TRUE(std::isnan(apply(op, {nan, 1.0}).at(0))) << op;
        EXPECT_TRUE(std::isnan(apply(op, {1.0, nan}).at(0))) << op;
    }
    EXPECT_TRUE(std::isnan(apply("clamp", {nan, 0.0, 1.0}).at(0)));
    EXPECT_EQ(apply("fmax", {nan, 1.0}).at(0), 1);
    EXPECT_EQ(list(apply("isnan", {ints({1})})), (Numbers{0}));
}

TEST_F(ElementwiseSemantics, IntegerDivisionFollowsTheSignOfTheDivisorAndRefusesZero) {
    Tensor a = ints({7, -7, 7, -7}), b = ints({2, 2, -2, -2});
    EXPECT_EQ(list(apply("floor_divide", {a, b})), (Numbers{3, -4, -4, 3}));
    EXPECT_EQ(list(apply("remainder", {a, b})), (Numbers{1, 1, -1, -1}));
    EXPECT_EQ(list(apply("fmod", {a, b})), (Numbers{1, -1, 1, -1}));
    for (const char* op : {"floor_divide", "remainder", "fmod", "truncate_div"}) {
        EXPECT_NE(message_of([&] { apply(op, {a, 0}); }).find("division by zero"), std::string::npos) << op;
        EXPECT_NE(message_of([&] { apply(op, {a, ints({1, 2, 0, 3})}); }).find("division by zero"), std::string::npos);
    }
    Tensor lowest = ints({std::numeric_limits<int32_t>::min()});
    EXPECT_EQ(apply("floor_divide", {lowest, -1}).integer_at(0), std::numeric_limits<int32_t>::min());
    EXPECT_EQ(apply("remainder", {lowest, -1}).integer_at(0), 0);
}

// An integer operand that is a plain number means what a tensor of the other's dtype with that number wrapped into it
// means: the same result, or an error. In comparisons it is itself.
TEST_F(ElementwiseSemantics, NumbersBesideIntegersAreThoseOfTheDtype) {
    auto integers = [](std::vector<int64_t> v) {
        return Tensor::from(std::span<const int64_t>(v), {static_cast<int64_t>(v.size())});
    };
    constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kLargest = std::numeric_limits<int64_t>::max();
    for (const auto& op : registry().all()) {
        const auto& params = op->signature.params;
        if (!op->is_elementwise || params.size() < 2 || params[0].type != ArgType::same ||
            params[1].type != ArgType::same || (params.size() > 2 && !params[2].has_default))
            continue;
        // Limits may lie beyond what the dtype can hold; closeness is a matter of floats.
        if (op->name() == "clamp" || op->name() == "isclose") continue;
        for (DType dtype : {DType::u8, DType::i8, DType::i16, DType::i32, DType::i64})
            for (int64_t number :
                 {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{8}, int64_t{63}, int64_t{200}, int64_t{256},
                  int64_t{1} << 16, int64_t{1} << 32, int64_t{1} << 40, kLowest, kLargest})
                for (size_t at : {0u, 1u})
                    for (Device* device : {&cpu::device(), &cpu::plain_device()}) {
                        set_current_device(device);
                        std::vector<Value> args(params.size());
                        for (size_t i = 2; i < params.size(); ++i) args[i] = params[i].default_value;
                        args[1 - at] = Value(integers({1, -1, 7, -128, 127, kLowest, kLargest}).cast(dtype));
                        auto outcome = [&](Value v) {
                            args[at] = std::move(v);
                            Numbers found;
                            try {
                                found = list(run(*op, args).tensor());
                            } catch (const Error& e) {
                                if (e.kind() != ErrorKind::arithmetic && e.kind() != ErrorKind::dtype) throw;
                            }
                            return found;
                        };
                        const Numbers got = outcome(Value(number));
                        const bool negative_power = op->name() == "pow" && at == 1 && number < 0;
                        // What is only compared does not become an element: no number wraps around.
                        const DType judged = op->infer_fn == broadcast_to_bool ? DType::i64 : dtype;
                        args[1 - at] = Value(args[1 - at].tensor().cast(judged));
                        EXPECT_EQ(got, negative_power ? Numbers{} : outcome(Value(integers({number}).cast(judged))))
                            << op->name() << " of " << name_of(dtype) << " and " << number << " at " << at;
                    }
    }
    const Tensor bytes = ints({1, 2}).cast(DType::i8);
    EXPECT_NE(message_of([&] {
                  apply("floor_divide", {bytes, 256});
              }).find("division by zero (256 is 0 as int8)"),
              std::string::npos);
}

TEST_F(ElementwiseSemantics, FloatDivisionIsExactNearWholeQuotients) {
    EXPECT_EQ(list(apply("floor_divide", {floats({1, -7, 5, 0.3f}), floats({0.1f, 2, HUGE_VALF, 0.1f})})),
              (Numbers{9, -4, 0, 3}));
    EXPECT_TRUE(std::isinf(apply("floor_divide", {floats({1}), 0.0}).at(0)));
}

TEST_F(ElementwiseSemantics, IntegersArePoweredAsIntegers) {
    EXPECT_EQ(list(apply("pow", {ints({2, -3}), ints({10, 3})})), (Numbers{1024, -27}));
    EXPECT_NE(message_of([&] { apply("pow", {ints({2}), -1}); }).find("negative powers"), std::string::npos);
    Tensor x = floats({1, 2, 3});
    EXPECT_EQ(list(apply("pow", {x, 2.0})), (Numbers{1, 4, 9}));
}

TEST_F(ElementwiseSemantics, IntegersWrapAround) {
    Tensor x = ints({127}).cast(DType::i8);
    EXPECT_EQ(apply("add", {x, 1}).at(0), -128);
    EXPECT_EQ(apply("abs", {apply("add", {x, 1})}).at(0), -128);
    EXPECT_EQ(apply("mul", {ints({1 << 20}), ints({1 << 20})}).at(0), 0);
}

TEST_F(ElementwiseSemantics, BoolsAddAsOrAndMultiplyAsAndButDoNotSubtract) {
    Tensor t = ints({1, 1, 0}).cast(DType::boolean), u = ints({1, 0, 0}).cast(DType::boolean);
    EXPECT_EQ(list(apply("add", {t, u})), (Numbers{1, 1, 0}));
    EXPECT_EQ(list(apply("mul", {t, u})), (Numbers{1, 0, 0}));
    EXPECT_NE(message_of([&] { apply("sub", {t, u}); }).find("bool"), std::string::npos);
    EXPECT_EQ(list(apply("logical_and", {floats({2, 0, 3}), ints({1, 1, 0})})), (Numbers{1, 0, 0}));
}

TEST_F(ElementwiseSemantics, ClampTakesOneLimitOrTensorsAndKeepsIntegers) {
    EXPECT_EQ(list(apply("clamp", {ints({-9, 0, 9}), -3, 4})), (Numbers{-3, 0, 4}));
    EXPECT_EQ(apply("clamp", {ints({-9}), -3, 4}).dtype(), DType::i32);
    EXPECT_EQ(list(apply("clamp", {floats({-9, 9}), {"max", 4.0}})), (Numbers{-9, 4}));
    EXPECT_EQ(list(apply("clamp", {ints({-9, 9}), {"min", 0}})), (Numbers{0, 9}));
    EXPECT_EQ(list(apply("clamp", {floats({-9, 9}), floats({-1, -2}), floats({1, 2})})), (Numbers{-1, 2}));
}

TEST_F(ElementwiseSemantics, SaturationStaysExact) {
    EXPECT_EQ(list(apply("sigmoid", {floats({-200, 200})})), (Numbers{0, 1}));
    EXPECT_EQ(list(apply("logsigmoid", {floats({-200})})), (Numbers{-200}));
    EXPECT_EQ(list(apply("softplus", {floats({-200, 200})})), (Numbers{0, 200}));
    EXPECT_EQ(list(apply("mish", {floats({100})})), (Numbers{100}));
    EXPECT_EQ(list(apply("logaddexp", {floats({-HUGE_VALF, HUGE_VALF, 1000}), floats({-HUGE_VALF, HUGE_VALF, 0})})),
              (Numbers{-HUGE_VAL, HUGE_VAL, 1000}));
    EXPECT_EQ(list(apply("xlogy", {floats({0}), floats({0})})), (Numbers{0}));
}

TEST_F(ElementwiseSemantics, NanToNumUsesTheLargestNumbersOfTheDtype) {
    Tensor x = floats({HUGE_VALF, -HUGE_VALF, std::nanf("")});
    EXPECT_EQ(list(apply("nan_to_num", {x})),
              (Numbers{std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(), 0}));
    EXPECT_EQ(apply("nan_to_num", {x.cast(DType::f16)}).at(0), 65504);
}

TEST_F(ElementwiseSemantics, BitShiftsByTheWidthOrMoreLeaveNothing) {
    EXPECT_EQ(list(apply("bitwise_left_shift", {ints({1, 1}), ints({31, 32})})), (Numbers{-2147483648.0, 0}));
    EXPECT_EQ(list(apply("bitwise_right_shift", {ints({-8, -8}), ints({1, 40})})), (Numbers{-4, -1}));
    EXPECT_NE(message_of([] { apply("bitwise_and", {floats({1}), 1}); }).find("integers or bools"), std::string::npos);
}

TEST_F(ElementwiseSemantics, ShapesThatDoNotFitAreNamed) {
    std::string text = message_of([] { apply("add", {floats({1, 2}), floats({1, 2, 3})}); });
    EXPECT_NE(text.find("add"), std::string::npos);
    EXPECT_NE(text.find("(2)"), std::string::npos) << text;
}

}  // namespace
}  // namespace lunaria
