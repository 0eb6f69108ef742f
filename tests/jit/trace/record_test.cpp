// Calls of functions that are texts of the IR: recorded, compiled, run from their records.
#include <gtest/gtest.h>

#include "core/random/random.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using Kind = trace::Step::Kind;
using vm::PlainHost;

class RecordTest : public CpuTest {};

constexpr const char* kChain =
    "graph f(%0 x: ?, %1 y: ?) {\n"
    "  %2 = mul(%0, %1) : ?\n"
    "  %3 = ops.tanh(%2) : ?\n"
    "  %4 = add(%3, %0) : ?\n"
    "  %5 = ops.exp(%4) : ?\n"
    "  return {%5, %3}\n"
    "}\n";

TEST_F(RecordTest, the_first_call_is_recorded_and_later_ones_run_a_compiled_graph) {
    RecordedProgram f(kChain);
    const Value x = floats({0.5, -1, 2}), y = floats({1, 2, 3});
    for (int i = 0; i < 4; ++i) f.check({x, y}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.runs(), 3);
    EXPECT_EQ(f.steps(Kind::op), 4);
    EXPECT_EQ(f.graphs(), 1);
}

TEST_F(RecordTest, other_values_of_the_same_type_run_the_same_record) {
    RecordedProgram f(kChain);
    f.check({floats({1, 2}), floats({3, 4})}, __LINE__);
    f.check({floats({-5, 0.25}), floats({7, -8})}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.runs(), 1);
}

TEST_F(RecordTest, another_dtype_is_another_way_on) {
    RecordedProgram f(kChain);
    const Value wide(Tensor::full(DType::f64, {2}, 0.3));
    f.check({floats({1, 2}), floats({3, 4})}, __LINE__);
    f.check({wide, wide}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    f.check({floats({1, 2}), floats({3, 4})}, __LINE__);
    f.check({wide, wide}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    EXPECT_EQ(f.runs(), 2);
}

TEST_F(RecordTest, one_tensor_in_two_places_is_told_from_two_tensors) {
    // assign writes into x, which y is or is not.
    RecordedProgram f(
        "graph f(%0 x: ?, %1 y: ?) {\n"
        "  %2 = add(%0, 1) : ?\n"
        "  %3 = ops.assign(%0, %2) : ?\n"
        "  %4 = mul(%1, 10) : ?\n"
        "  return {%4}\n"
        "}\n");
    for (int i = 0; i < 3; ++i) {
        const Value a = floats({1, 2}), b = floats({1, 2});
        EXPECT_EQ(f.call({a, b})[0].tensor().at(0), 10);
        EXPECT_EQ(f.call({a, a})[0].tensor().at(0), 30);
        EXPECT_EQ(a.tensor().at(1), 4);
    }
    EXPECT_EQ(f.recordings(), 2);
}

TEST_F(RecordTest, a_number_that_comes_in_two_values_stays_open) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 n: ?) {\n"
        "  %2 = mul(%0, %1) : ?\n"
        "  return {%2}\n"
        "}\n");
    for (double n : {2.0, 3.0, 4.5, -1.0, 8.0}) f.check({floats({1, 2}), Value(n)}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    EXPECT_EQ(f.runs(), 3);
}

constexpr const char* kBranch =
    "graph f(%0 x: ?, %1 n: ?) {\n"
    "  graph f.then(%2 x: ?) {\n"
    "    %3 = ops.neg(%2) : ?\n"
    "    return {%3}\n"
    "  }\n"
    "  graph f.else(%4 x: ?) {\n"
    "    %5 = ops.exp(%4) : ?\n"
    "    return {%5}\n"
    "  }\n"
    "  %6 = less(%1, 0) : ?\n"
    "  %7 = branch(%6, @f.then, {%0}, @f.else, {%0}) : ?\n"
    "  return %7\n"
    "}\n";

TEST_F(RecordTest, a_number_that_an_operator_takes_as_an_axis_is_decided) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 axis: ?) {\n"
        "  %2 = call(ops.sum, {%0, %1}) : ?\n"
        "  %3 = result(%2, 0) : ?\n"
        "  return {%3}\n"
        "}\n");
    for (int axis : {0, 1, 2, 0, 1, 2}) f.check({floats({1, 2, 3, 4}, {1, 2, 2}), Value(axis)}, __LINE__);
    EXPECT_GE(f.steps(Kind::is), 1);
    EXPECT_GE(f.runs(), 2);
}

TEST_F(RecordTest, both_ways_of_a_branch_are_recorded_once) {
    RecordedProgram f(kBranch);
    for (int n : {1, -1, 2, -2, 3, -3, 4, -4}) f.check({floats({1, 2}), Value(n)}, __LINE__);
    EXPECT_LE(f.recordings(), 4);
    const int64_t before = f.recordings();
    for (int n : {100, -100, 200, -200}) f.check({floats({5, 6}), Value(n)}, __LINE__);
    EXPECT_EQ(f.recordings(), before);
}

TEST_F(RecordTest, an_element_of_a_tensor_decides_a_branch) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  graph f.then(%1 x: ?) {\n"
        "    %2 = ops.neg(%1) : ?\n"
        "    return {%2}\n"
        "  }\n"
        "  graph f.else(%3 x: ?) {\n"
        "    return {%3}\n"
        "  }\n"
        "  %94 = call(ops.sum, {%0}) : ?\n"
        "  %4 = result(%94, 0) : ?\n"
        "  %5 = less(%4, 0) : ?\n"
        "  %6 = branch(%5, @f.then, {%0}, @f.else, {%0}) : ?\n"
        "  return %6\n"
        "}\n");
    for (double a : {1.0, -4.0, 2.0, -5.0, 3.0, -6.0}) f.check({floats({a, 1})}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    EXPECT_EQ(f.runs(), 4);
}

// y = x; for i = 1, n do y = tanh(y + x) end
constexpr const char* kLoop =
    "graph f(%0 x: ?, %1 n: ?) {\n"
    "  graph f.loop(%2 i: ?, %3 y: ?, %4 x: ?, %5 n: ?) {\n"
    "    %6 = less_equal(%2, %5) : ?\n"
    "    %7 = branch(%6, @f.body, {%2, %3, %4, %5}, @f.end, {%3}) : ?\n"
    "    return %7\n"
    "  }\n"
    "  graph f.body(%8 i: ?, %9 y: ?, %10 x: ?, %11 n: ?) {\n"
    "    %12 = add(%9, %10) : ?\n"
    "    %13 = ops.tanh(%12) : ?\n"
    "    %14 = add(%8, 1) : ?\n"
    "    %15 = @f.loop(%14, %13, %10, %11) : ?\n"
    "    return %15\n"
    "  }\n"
    "  graph f.end(%16 y: ?) {\n"
    "    return {%16}\n"
    "  }\n"
    "  %17 = @f.loop(1, %0, %0, %1) : ?\n"
    "  return %17\n"
    "}\n";

TEST_F(RecordTest, a_loop_is_in_the_record_once_whatever_its_number_of_turns) {
    RecordedProgram f(kLoop);
    const Value x = floats({0.1, -0.2, 0.3});
    for (int n : {3, 5, 7, 4}) f.check({x, Value(n)}, __LINE__);
    const int64_t before = f.recordings();
    EXPECT_GE(f.steps(Kind::loop), 1);
    EXPECT_GE(f.steps(Kind::again), 1);
    for (int n : {50, 1, 200, 12}) f.check({x, Value(n)}, __LINE__);
    EXPECT_EQ(f.recordings(), before);
    EXPECT_LT(f.compiled().tree.steps, 100u);
}

TEST_F(RecordTest, a_function_calls_itself) {
    // n == 0 and x or tanh(f(n - 1, x))
    RecordedProgram f(
        "graph f(%0 n: ?, %1 x: ?) {\n"
        "  graph f.then(%2 x: ?) {\n"
        "    return {%2}\n"
        "  }\n"
        "  graph f.else(%3 f: ?, %4 n: ?, %5 x: ?) {\n"
        "    %6 = sub(%4, 1) : ?\n"
        "    %7 = call(%3, {%6, %5}) : ?\n"
        "    %8 = result(%7, 0) : ?\n"
        "    %9 = ops.tanh(%8) : ?\n"
        "    return {%9}\n"
        "  }\n"
        "  %10 = current_function() : ?\n"
        "  %11 = equal(%0, 0) : ?\n"
        "  %12 = branch(%11, @f.then, {%1}, @f.else, {%10, %0, %1}) : ?\n"
        "  return %12\n"
        "}\n");
    for (int i = 0; i < 3; ++i)
        for (int n : {0, 2, 5}) f.check({Value(n), floats({0.5, 2})}, __LINE__);
    EXPECT_LE(f.recordings(), 4);
    EXPECT_GE(f.runs(), 5);
}

TEST_F(RecordTest, any_batch_size_runs_the_same_record) {
    // The sizes of x go into a reshape.
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = index(%0, \"shape\") : ?\n"
        "  %2 = index(%1, 1) : ?\n"
        "  %93 = table({1, 2}, {%2, 4}, 2, nil) : ?\n"
        "  %94 = call(ops.reshape, {%0, %93}) : ?\n"
        "  %4 = result(%94, 0) : ?\n"
        "  %5 = ops.tanh(%4) : ?\n"
        "  %96 = call(ops.sum, {%5, 0}) : ?\n"
        "  %6 = result(%96, 0) : ?\n"
        "  return {%5, %6, %2}\n"
        "}\n");
    for (int64_t n : {2, 3, 5, 2, 7, 7, 9, 9}) {
        Tensor x = Tensor::empty(DType::f32, {n, 2, 2});
        for (int64_t i = 0; i < x.size(); ++i) x.set_at(i, 0.1 * static_cast<double>(i));
        f.check({Value(x)}, __LINE__);
    }
    EXPECT_EQ(f.recordings(), 2);
    EXPECT_GE(f.steps(Kind::size), 1);
    EXPECT_GE(f.graphs(), 1);
}

TEST_F(RecordTest, random_numbers_are_those_of_the_call_without_records) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %91 = call(ops.dropout, {%0, 0.5, true, nil}) : ?\n"
        "  %1 = result(%91, 0) : ?\n"
        "  %2 = mul(%1, %0) : ?\n"
        "  return {%2}\n"
        "}\n");
    const Value x = floats(std::vector<double>(64, 1));
    default_generator().set_seed(7);
    std::vector<Tensor> expected;
    for (int i = 0; i < 3; ++i) expected.push_back(f.eager({x})[0].tensor());
    default_generator().set_seed(7);
    for (int i = 0; i < 3; ++i) {
        const Tensor got = f.call({x})[0].tensor();
        for (int64_t k = 0; k < 64; ++k) EXPECT_EQ(got.at(k), expected[static_cast<size_t>(i)].at(k)) << i << ", " << k;
    }
    EXPECT_EQ(f.runs(), 2);
}

TEST_F(RecordTest, the_derivative_of_a_function_is_recorded_as_any_other) {
    TextProgram f(
        "graph f(%0 x: ?, %1 y: ?) {\n"
        "  %2 = mul(%0, %1) : ?\n"
        "  %3 = ops.tanh(%2) : ?\n"
        "  %4 = ops.sum(%3, nil, false, nil) : ?\n"
        "  return {%4}\n"
        "}\n");
    vm::PlainHost& host = f.host();
    trace::PlainFunction gradient(host, function_value(vm::prelude(vm::Prelude::gradient)));
    const Value x = floats({0.5, -1, 2}), y = floats({1, 2, 3});
    const std::vector<Value> args{Value("grad"), f.function(), Value(int64_t{0}), x, y};
    const Value expected = f.gradient({x, y}).second;
    for (int i = 0; i < 3; ++i) {
        const vm::Values got = gradient.call(args);
        ASSERT_EQ(got.size(), 2u);
        EXPECT_TRUE(same_value(got[1], expected)) << to_string(got[1]) << ", not " << to_string(expected);
    }
    EXPECT_EQ(gradient.compiled().recorded, 1);
    EXPECT_EQ(gradient.compiled().runs, 2);
}

// The derivative at x of a function with that body, which captures k + 1.
std::string derivative_with(std::string_view body) {
    return str(
        "graph f(%0 gradient: ?, %1 x: ?, %2 k: ?) {\n"
        "  graph h(%10 k: ?, %11 x: ?) captures 1 {\n",
        body,
        "  }\n"
        "  %3 = add(%2, 1) : ?\n"
        "  %4 = closure(@h, {%3}) : ?\n"
        "  %5 = call(%0, {\"grad\", %4, 0, %1}) : ?\n"
        "  %6 = result(%5, 1) : ?\n"
        "  return {%6}\n"
        "}\n");
}

TEST_F(RecordTest, a_derivative_within_the_record_may_depend_on_a_number_that_changes) {
    const Value gradient = function_value(vm::prelude(vm::Prelude::gradient));
    RecordedProgram of_tensors(
        derivative_with("    %12 = pow(%11, %10) : ?\n"
                        "    %13 = ops.sum(%12, nil, false, nil) : ?\n"
                        "    return {%13}\n"));
    RecordedProgram of_numbers(
        derivative_with("    %12 = div(%11, %10) : ?\n"
                        "    %13 = mod(%12, %10) : ?\n"
                        "    return {%13}\n"));
    for (int k = 0; k < 6; ++k) {
        of_tensors.check({gradient, floats({1, 2, 3}), Value(k + 0.5)}, __LINE__);
        of_numbers.check({gradient, Value(k + 0.25), Value(k + 0.5)}, __LINE__);
    }
    // The first two calls tell which of the numbers change.
    EXPECT_EQ(of_tensors.recordings(), 2);
    EXPECT_EQ(of_tensors.runs(), 4);
    EXPECT_GE(of_numbers.runs(), 3);
}

TEST_F(RecordTest, a_function_that_goes_out_leaves_the_call_to_the_machine) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  graph add(%1 x: ?, %2 y: ?) captures 1 {\n"
        "    %3 = add(%1, %2) : ?\n"
        "    return {%3}\n"
        "  }\n"
        "  %4 = closure(@add, {%0}) : ?\n"
        "  return {%4}\n"
        "}\n");
    for (int i = 0; i < 3; ++i) {
        const std::vector<Value> results = f.call({floats({1})});
        EXPECT_TRUE(f.host().is_function(results.at(0)));
    }
    EXPECT_EQ(f.runs(), 0);
    EXPECT_NE(f.refusal().find("a function that it makes is given away"), std::string::npos);
}

TEST_F(RecordTest, more_ways_than_are_allowed_forget_the_oldest) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 name: ?) {\n"
        "  graph f.then(%2 x: ?) {\n"
        "    %3 = ops.neg(%2) : ?\n"
        "    return {%3}\n"
        "  }\n"
        "  graph f.else(%4 x: ?) {\n"
        "    return {%4}\n"
        "  }\n"
        "  %5 = equal(%1, \"neg\") : ?\n"
        "  %6 = branch(%5, @f.then, {%0}, @f.else, {%0}) : ?\n"
        "  return %6\n"
        "}\n");
    f.compiled().limits.ways = 3;
    for (int i = 0; i < 20; ++i) f.check({floats({1, 2}), i % 4 ? Value(str("k", i)) : Value("neg")}, __LINE__);
    EXPECT_LE(f.branches(), 6u);
}

}  // namespace
}  // namespace lunaria::testing
