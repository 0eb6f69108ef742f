// The special cases of operators on shapes, indices and variables; everything regular is tested from their entries.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/device.h"
#include "core/operator/op.h"

namespace lunaria {
namespace {

Tensor floats(std::vector<float> values, const Shape& shape) { return Tensor::from<float>(values, shape); }
Tensor integers(std::vector<int64_t> values, const Shape& shape) { return Tensor::from<int64_t>(values, shape); }

std::vector<double> elements(const Tensor& t) {
    std::vector<double> list;
    for (int64_t i = 0; i < t.size(); ++i) list.push_back(t.at(i));
    return list;
}

class ArrayOps : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }
    static Tensor call(std::string_view op, std::initializer_list<Arg> args) {
        return eager_builder().call(op, args).value().tensor();
    }
    static std::string error_of(std::string_view op, std::initializer_list<Arg> args) {
        try {
            call(op, args);
        } catch (const Error& e) {
            return e.message();
        }
        return "no error";
    }
};

using Doubles = std::vector<double>;

TEST_F(ArrayOps, reshape_shares_storage_where_the_layout_allows_it) {
    Tensor x = call("arange", {24}).reshaped({2, 3, 4});
    Tensor turned = x.view({4, 2, 3}, {1, 12, 4});
    EXPECT_TRUE(turned.reshaped({4, 6}).shares_storage(x));
    EXPECT_FALSE(turned.reshaped({8, 3}).shares_storage(x) && turned.reshaped({24}).shares_storage(x));
    EXPECT_EQ(elements(turned.reshaped({4, 6})), elements(turned));
    EXPECT_EQ(elements(turned.reshaped({2, 2, 6})), elements(turned));
    EXPECT_EQ(elements(turned.reshaped({24})), elements(turned));
}

TEST_F(ArrayOps, shape_mistakes_show_the_shapes) {
    Tensor x = Tensor::zeros(DType::f32, {2, 3});
    EXPECT_EQ(error_of("reshape", {Value(x), Shape{4, 2}}),
              "a tensor of shape (2, 3) has 6 elements and does not fit shape (4, 2), which holds 8");
    EXPECT_NE(error_of("reshape", {Value(x), Shape{-1, -1}}).find("only one size can be -1"), std::string::npos);
    EXPECT_NE(error_of("reshape", {Value(Tensor::zeros(DType::f32, {0})), Shape{-1, 0}}).find("ambiguous"),
              std::string::npos);
    EXPECT_EQ(error_of("broadcast_to", {Value(x), Shape{2, 4}}),
              "cannot broadcast shape (2, 3) to (2, 4): axis 1 has size 3, not 1 or 4");
    EXPECT_EQ(error_of("transpose", {Value(x), Shape{1, 1}}), "dims names axis 1 twice (a duplicate axis)");
    EXPECT_EQ(error_of("squeeze", {Value(x), 0}), "cannot squeeze axis 0 of shape (2, 3): its size is 2, not 1");
    EXPECT_NE(error_of("tile", {Value(x), Shape{int64_t{1} << 62, 4}}).find("too large"), std::string::npos);
}

TEST_F(ArrayOps, tile_and_repeat_work_on_eight_axes) {
    Tensor x = call("arange", {4}).reshaped({1, 2, 1, 1, 2, 1, 1, 1});
    Tensor y = call("tile", {Value(x), Shape{2, 1, 1, 2, 2, 1, 1, 3}});
    EXPECT_EQ(y.shape(), (Shape{2, 2, 1, 2, 4, 1, 1, 3}));
    EXPECT_EQ(y.integer_at(0), 0);
    EXPECT_EQ(y.integer_at(3), 1);
    EXPECT_EQ(y.integer_at(y.size() - 1), 3);
    EXPECT_EQ(call("repeat_interleave", {Value(x), 3, 4}).shape(), (Shape{1, 2, 1, 1, 6, 1, 1, 1}));
}

TEST_F(ArrayOps, ranges_are_exact_and_bounded) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    EXPECT_EQ(call("arange", {kMost - 3, kMost, 2}).integer_at(1), kMost - 1);
    EXPECT_EQ(call("arange", {5, 0}).size(), 0);
    EXPECT_EQ(error_of("arange", {0, 5, 0}), "step must not be 0");
    EXPECT_NE(error_of("arange", {0, kMost}).find("too large"), std::string::npos);
    EXPECT_NE(error_of("arange", {0.0, std::numeric_limits<double>::infinity()}).find("no finite size"),
              std::string::npos);
    EXPECT_EQ(elements(call("linspace", {0.0, 1.0, 3})), (Doubles{0, 0.5, 1}));
    EXPECT_EQ(call("full", {Shape{1}, kMost}).integer_at(0), kMost);
}

TEST_F(ArrayOps, indices_out_of_range_are_errors_with_the_range) {
    Tensor x = floats({1, 2, 3}, {3});
    EXPECT_EQ(error_of("gather", {Value(x), Value(integers({-4}, {1})), 0}),
              "index -4 is out of range for an axis of size 3: it must be -3 .. 2");
    EXPECT_NE(error_of("tensor_scatter_add", {Value(x), Value(integers({3}, {1, 1})), Value(floats({1}, {1}))})
                  .find("index 3 is out of range"),
              std::string::npos);
    EXPECT_NE(error_of("unsorted_segment_sum", {Value(x), Value(integers({0, 1, 2}, {3})), 2})
                  .find("segment id 2 is out of range for 2 segments"),
              std::string::npos);
    EXPECT_EQ(error_of("gather", {Value(Tensor::zeros(DType::f32, {0, 2})), Value(integers({0}, {1})), 0}),
              "index 0 is out of range: the axis is empty");
}

TEST_F(ArrayOps, segments_drop_negative_ids_and_mark_empty_ones) {
    Tensor x = floats({1, 2, -INFINITY}, {3});
    Tensor ids = integers({0, -1, 2}, {3});
    EXPECT_EQ(elements(call("unsorted_segment_sum", {Value(x), Value(ids), 4})), (Doubles{1, 0, -INFINITY, 0}));
    Tensor most = call("unsorted_segment_max", {Value(x), Value(ids), 4});
    EXPECT_EQ(most.at(1), -std::numeric_limits<float>::max());
    EXPECT_EQ(most.at(2), -INFINITY);
}

TEST_F(ArrayOps, scattered_values_meet_in_the_order_of_the_indices) {
    Tensor x = floats({0, 0}, {2});
    Tensor where = integers({1, 1, 1}, {3, 1});
    EXPECT_EQ(elements(call("tensor_scatter_update", {Value(x), Value(where), Value(floats({1, 2, 3}, {3}))})),
              (Doubles{0, 3}));
    Tensor most = call("tensor_scatter_max", {Value(x), Value(where), Value(floats({1, NAN, 3}, {3}))});
    EXPECT_TRUE(std::isnan(most.at(1)));
    EXPECT_NE(
        error_of("tensor_scatter_div", {Value(integers({1, 2}, {2})), Value(where), Value(integers({1, 0, 1}, {3}))})
            .find("division by zero"),
        std::string::npos);
}

TEST_F(ArrayOps, negative_padding_cuts_off) {
    Tensor x = floats({1, 2, 3}, {3});
    EXPECT_EQ(elements(call("pad", {Value(x), Shape{-1, 2}, "constant", 9.0})), (Doubles{2, 3, 9, 9}));
    EXPECT_EQ(elements(call("pad", {Value(x), Shape{-2, -1}})), Doubles{});
    EXPECT_EQ(elements(call("pad", {Value(x), Shape{2, 1}, "reflect"})), (Doubles{3, 2, 1, 2, 3, 2}));
    EXPECT_EQ(elements(call("pad", {Value(x), Shape{1, 2}, "circular"})), (Doubles{3, 1, 2, 3, 1, 2}));
    EXPECT_NE(error_of("pad", {Value(x), Shape{3, 0}, "reflect"}).find("mode reflect cannot pad axis 0 of size 3"),
              std::string::npos);
    EXPECT_NE(error_of("pad", {Value(x), Shape{-2, -2}}).find("negative size"), std::string::npos);
}

TEST_F(ArrayOps, assignment_changes_the_variable_and_keeps_its_dtype) {
    Tensor variable = floats({1, 2, 3}, {3}), before = call("identity", {Value(variable)});
    run(registry().get("assign_add"), {Value(variable), Value(10)});
    EXPECT_EQ(elements(variable), (Doubles{11, 12, 13}));
    EXPECT_EQ(elements(before), (Doubles{1, 2, 3}));
    run(registry().get("assign_sub"), {Value(variable), Value(integers({1, 1, 1}, {3}))});
    EXPECT_EQ(elements(variable), (Doubles{10, 11, 12}));
    run(registry().get("assign"), {Value(variable), Value(2.5)});
    EXPECT_EQ(elements(variable), (Doubles{2.5, 2.5, 2.5}));
    EXPECT_EQ(variable.dtype(), DType::f32);
    EXPECT_THROW(run(registry().get("assign"), {Value(variable), Value(Tensor::zeros(DType::f32, {4}))}), Error);
}

TEST_F(ArrayOps, huge_requests_are_memory_errors) {
    try {
        call("zeros", {Shape{int64_t{1} << 40}});
        ADD_FAILURE() << "there is no terabyte of memory";
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::memory);
    }
}

}  // namespace
}  // namespace lunaria
