// The language in recorded calls: numbers, texts, closures, errors that are met, nested loops, guards of each kind.
#include <gtest/gtest.h>

#include "jit/trace/region.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using Kind = trace::Step::Kind;
using vm::PlainHost;

class LanguageTest : public CpuTest {};

TEST_F(LanguageTest, arithmetic_on_open_numbers_is_a_part_of_the_record) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 n: ?) {\n"
        "  %2 = mul(%1, 2) : ?\n"
        "  %3 = add(%2, 1) : ?\n"
        "  %4 = pow(%3, 2) : ?\n"
        "  %5 = mul(%0, %4) : ?\n"
        "  return {%5, %4}\n"
        "}\n");
    for (double n : {2.0, 3.0, 0.5, -7.25, 1e300, 4.0}) f.check({floats({1, 2}), Value(n)}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    EXPECT_EQ(f.steps(Kind::number), 3);
}

TEST_F(LanguageTest, integers_and_floats_are_different_cases) {
    RecordedProgram f(
        "graph f(%0 n: ?) {\n"
        "  %1 = floor_div(%0, 2) : ?\n"
        "  return {%1}\n"
        "}\n");
    for (int i = 0; i < 3; ++i) {
        f.check({Value(int64_t{7})}, __LINE__);
        f.check({Value(7.0)}, __LINE__);
        f.check({Value(-3.5)}, __LINE__);
    }
    EXPECT_EQ(f.call({Value(int64_t{9})})[0].kind(), Value::Kind::integer);
    EXPECT_EQ(f.call({Value(9.0)})[0].kind(), Value::Kind::number);
}

TEST_F(LanguageTest, zeros_of_both_signs_and_nan_are_told_apart) {
    RecordedProgram f(
        "graph f(%0 t: ?) {\n"
        "  %1 = index(%0, \"n\") : ?\n"
        "  %2 = div(1, %1) : ?\n"
        "  return {%2}\n"
        "}\n");
    const Value t = PlainHost::table({{Value("n"), Value(0.0)}});
    for (double n : {0.0, -0.0, 0.0, -0.0, 2.0}) {
        f.host().raw_set(t, Value("n"), Value(n));
        f.check({t}, __LINE__);
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    f.host().raw_set(t, Value("n"), Value(nan));
    EXPECT_TRUE(std::isnan(f.call({t})[0].number()));
}

TEST_F(LanguageTest, texts_are_guards_by_their_content) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 options: ?) {\n"
        "  graph f.then(%2 x: ?) {\n"
        "    %3 = ops.relu(%2) : ?\n"
        "    return {%3}\n"
        "  }\n"
        "  graph f.else(%4 x: ?) {\n"
        "    %5 = ops.tanh(%4) : ?\n"
        "    return {%5}\n"
        "  }\n"
        "  %6 = index(%1, \"activation\") : ?\n"
        "  %7 = equal(%6, \"relu\") : ?\n"
        "  %8 = branch(%7, @f.then, {%0}, @f.else, {%0}) : ?\n"
        "  return %8\n"
        "}\n");
    const Value relu = PlainHost::table({{Value("activation"), Value("relu")}});
    const Value tanh = PlainHost::table({{Value("activation"), Value("tanh")}});
    for (int i = 0; i < 3; ++i) {
        f.check({floats({-1, 2}), relu}, __LINE__);
        f.check({floats({-1, 2}), tanh}, __LINE__);
    }
    // Another table with an equal text of its own.
    f.check({floats({-1, 2}), PlainHost::table({{Value("activation"), Value(std::string("re") + "lu")}})}, __LINE__);
    EXPECT_LE(f.recordings(), 3);
}

TEST_F(LanguageTest, closures_and_the_variables_that_they_share_are_no_part_of_the_record) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  graph add(%1 sum: ?, %2 y: ?) captures 1 {\n"
        "    %3 = cell_get(%1) : ?\n"
        "    %4 = add(%3, %2) : ?\n"
        "    %5 = cell_set(%1, %4) : ?\n"
        "    return {}\n"
        "  }\n"
        "  %6 = cell(%0) : ?\n"
        "  %7 = closure(@add, {%6}) : ?\n"
        "  %8 = call(%7, {%0}) : ?\n"
        "  %9 = call(%7, {10}) : ?\n"
        "  %10 = cell_get(%6) : ?\n"
        "  return {%10}\n"
        "}\n");
    for (int i = 0; i < 3; ++i) f.check({floats({1, 2})}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.steps(Kind::op), 2);
    EXPECT_EQ(f.steps(Kind::call), 0);
}

TEST_F(LanguageTest, arguments_and_results_come_in_any_number) {
    RecordedProgram f(
        "graph f(%0 first: ?, %1 ...: ?) variadic {\n"
        "  %2 = ops.neg(%0) : ?\n"
        "  %3 = spread({%2}, %1) : ?\n"
        "  return %3\n"
        "}\n");
    for (int i = 0; i < 2; ++i) {
        f.check({floats({1})}, __LINE__);
        f.check({floats({1}), floats({2}), Value("x")}, __LINE__);
        f.check({floats({1}), Value(), Value(true)}, __LINE__);
    }
    EXPECT_EQ(f.recordings(), 3);
    EXPECT_EQ(f.runs(), 3);
}

// pcall(function() if x.bad then error(x.bad, 2) else return x end end), as in machine_test.cpp.
constexpr const char* kProtected =
    "graph f(%0 pcall: ?, %1 error: ?, %2 t: ?, %20 x: ?) {\n"
    "  graph risky(%3 error: ?, %4 t: ?) captures 1 {\n"
    "    graph risky.then(%5 error: ?, %6 bad: ?) {\n"
    "      %7 = call(%5, {%6}) : ?  -- risky.lua:5\n"
    "      return %7\n"
    "    }\n"
    "    graph risky.else(%8 t: ?) {\n"
    "      return {\"fine\"}\n"
    "    }\n"
    "    %9 = index(%4, \"bad\") : ?\n"
    "    %10 = branch(%9, @risky.then, {%3, %9}, @risky.else, {%4}) : ?\n"
    "    return %10\n"
    "  }\n"
    "  %11 = closure(@risky, {%1}) : ?\n"
    "  %12 = call(%0, {%11, %2}) : ?\n"
    "  %13 = result(%12, 0) : ?\n"
    "  %14 = result(%12, 1) : ?\n"
    "  %15 = ops.neg(%20) : ?\n"
    "  return {%13, %14, %15}\n"
    "}\n";

TEST_F(LanguageTest, an_error_that_the_program_meets_is_a_way_of_the_record) {
    RecordedProgram f(kProtected);
    const Value pcall = function_value(vm::prelude(vm::Prelude::pcall)),
                error = function_value(vm::prelude(vm::Prelude::error));
    const Value fine = PlainHost::table({}), bad = PlainHost::table({{Value("bad"), Value("broken")}});
    for (int i = 0; i < 3; ++i) {
        f.check({pcall, error, fine, floats({1})}, __LINE__);
        const std::vector<Value> results = f.call({pcall, error, bad, floats({1})});
        EXPECT_FALSE(results[0].boolean());
        EXPECT_EQ(results[1].string(), f.eager({pcall, error, bad, floats({1})})[1].string());
        EXPECT_EQ(results[2].tensor().at(0), -1);
    }
}

TEST_F(LanguageTest, a_loop_within_a_loop_is_recorded_once) {
    // for i = 1, n do for j = 1, m do x = tanh(x) end; x = x + 1 end
    RecordedProgram f(
        "graph f(%0 x: ?, %1 n: ?, %2 m: ?) {\n"
        "  graph f.outer(%3 i: ?, %4 x: ?, %5 n: ?, %6 m: ?) {\n"
        "    %7 = less_equal(%3, %5) : ?\n"
        "    %8 = branch(%7, @f.inner, {1, %3, %4, %5, %6}, @f.end, {%4}) : ?\n"
        "    return %8\n"
        "  }\n"
        "  graph f.inner(%9 j: ?, %10 i: ?, %11 x: ?, %12 n: ?, %13 m: ?) {\n"
        "    %14 = less_equal(%9, %13) : ?\n"
        "    %15 = branch(%14, @f.body, {%9, %10, %11, %12, %13}, @f.after, {%10, %11, %12, %13}) : ?\n"
        "    return %15\n"
        "  }\n"
        "  graph f.body(%16 j: ?, %17 i: ?, %18 x: ?, %19 n: ?, %20 m: ?) {\n"
        "    %21 = ops.tanh(%18) : ?\n"
        "    %22 = add(%16, 1) : ?\n"
        "    %23 = @f.inner(%22, %17, %21, %19, %20) : ?\n"
        "    return %23\n"
        "  }\n"
        "  graph f.after(%24 i: ?, %25 x: ?, %26 n: ?, %27 m: ?) {\n"
        "    %28 = add(%25, 1) : ?\n"
        "    %29 = add(%24, 1) : ?\n"
        "    %30 = @f.outer(%29, %28, %26, %27) : ?\n"
        "    return %30\n"
        "  }\n"
        "  graph f.end(%31 x: ?) {\n"
        "    return {%31}\n"
        "  }\n"
        "  %32 = @f.outer(1, %0, %1, %2) : ?\n"
        "  return %32\n"
        "}\n");
    for (auto [n, m] : {std::pair(2, 3), std::pair(3, 2), std::pair(4, 5), std::pair(5, 4), std::pair(3, 6)})
        f.check({floats({0.5, 2}), Value(n), Value(m)}, __LINE__);
    const int64_t before = f.recordings();
    for (auto [n, m] : {std::pair(20, 3), std::pair(2, 30), std::pair(7, 7)})
        f.check({floats({0.5, 2}), Value(n), Value(m)}, __LINE__);
    EXPECT_EQ(f.recordings(), before);
}

TEST_F(LanguageTest, a_loop_whose_tensor_grows_is_recorded_turn_by_turn) {
    // for i = 1, n do x = concat(x, y) end: no turn begins with the sizes of the one before.
    RecordedProgram f(
        "graph f(%0 x: ?, %1 n: ?) {\n"
        "  graph f.loop(%2 i: ?, %3 x: ?, %4 y: ?, %5 n: ?) {\n"
        "    %6 = less_equal(%2, %5) : ?\n"
        "    %7 = branch(%6, @f.body, {%2, %3, %4, %5}, @f.end, {%3}) : ?\n"
        "    return %7\n"
        "  }\n"
        "  graph f.body(%8 i: ?, %9 x: ?, %10 y: ?, %11 n: ?) {\n"
        "    %911 = table({1, 2}, {%9, %10}, 2, nil) : ?\n"
        "    %912 = call(ops.concat, {%911, 0}) : ?\n"
        "    %12 = result(%912, 0) : ?\n"
        "    %13 = add(%8, 1) : ?\n"
        "    %14 = @f.loop(%13, %12, %10, %11) : ?\n"
        "    return %14\n"
        "  }\n"
        "  graph f.end(%15 x: ?) {\n"
        "    return {%15}\n"
        "  }\n"
        "  %16 = @f.loop(1, %0, %0, %1) : ?\n"
        "  return %16\n"
        "}\n");
    for (int i = 0; i < 2; ++i)
        for (int n : {1, 3, 2}) f.check({floats({1, 2}), Value(n)}, __LINE__);
    EXPECT_EQ(f.call({floats({1, 2}), Value(3)})[0].tensor().dim(0), 8);
}

TEST_F(LanguageTest, the_length_and_the_items_of_a_list_are_guards) {
    // x * #t + t[1]
    RecordedProgram f(
        "graph f(%0 x: ?, %1 t: ?) {\n"
        "  %2 = length(%1) : ?\n"
        "  %3 = mul(%0, %2) : ?\n"
        "  %4 = index(%1, 1) : ?\n"
        "  %5 = add(%3, %4) : ?\n"
        "  return {%5}\n"
        "}\n");
    const Value t = PlainHost::table({{Value(1), floats({1, 1})}, {Value(2), floats({1, 1})}});
    for (int i = 0; i < 3; ++i) f.check({floats({1, 2}), t}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    f.host().raw_set(t, Value(3), Value(true));
    f.check({floats({1, 2}), t}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
}

TEST_F(LanguageTest, a_metatable_that_comes_later_is_noticed) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 t: ?) {\n"
        "  graph f.then(%5 x: ?) {\n"
        "    return {%5}\n"
        "  }\n"
        "  graph f.else(%6 x: ?, %7 bias: ?) {\n"
        "    %8 = add(%6, %7) : ?\n"
        "    return {%8}\n"
        "  }\n"
        "  %2 = index(%1, \"bias\") : ?\n"
        "  %3 = equal(%2, nil) : ?\n"
        "  %4 = branch(%3, @f.then, {%0}, @f.else, {%0, %2}) : ?\n"
        "  return %4\n"
        "}\n");
    const Value t = PlainHost::table({});
    for (int i = 0; i < 3; ++i) f.check({floats({1, 2}), t}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    vm::object_as<PlainHost::Table>(t)->metatable =
        PlainHost::table({{Value("__index"), PlainHost::table({{Value("bias"), floats({10, 20})}})}});
    f.check({floats({1, 2}), t}, __LINE__);
    EXPECT_EQ(f.call({floats({1, 2}), t})[0].tensor().at(1), 22);
    EXPECT_EQ(f.recordings(), 2);
}

TEST_F(LanguageTest, without_compiled_graphs_the_record_gives_the_same) {
    const auto program =
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.exp(%0) : ?\n"
        "  %2 = add(%1, %0) : ?\n"
        "  %93 = call(ops.softmax, {%2, 0}) : ?\n"
        "  %3 = result(%93, 0) : ?\n"
        "  return {%3}\n"
        "}\n";
    RecordedProgram f(program), flat(program);
    flat.compiled().level = trace::Level::nothing;
    for (int i = 0; i < 3; ++i) {
        f.check({floats({1, 2, 3})}, __LINE__);
        flat.check({floats({1, 2, 3})}, __LINE__);
    }
    EXPECT_EQ(f.graphs(), 1);
    EXPECT_EQ(flat.graphs(), 0);
    EXPECT_EQ(flat.runs(), 2);
}

TEST_F(LanguageTest, the_step_limit_leaves_the_function_to_the_machine) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.exp(%0) : ?\n"
        "  %2 = ops.neg(%1) : ?\n"
        "  %3 = ops.tanh(%2) : ?\n"
        "  return {%3}\n"
        "}\n");
    f.compiled().limits.steps = 4;
    for (int i = 0; i < 3; ++i) f.check({floats({1})}, __LINE__);
    EXPECT_EQ(f.runs(), 0);
    EXPECT_NE(f.refusal().find("more than 4 steps"), std::string::npos) << f.refusal();
}

}  // namespace
}  // namespace lunaria::testing
