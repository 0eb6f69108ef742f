// The virtual machine on programs in the text form of the IR.
#include "jit/vm/machine.h"

#include <gtest/gtest.h>

#include "tests/jit/vm/text_program.h"

namespace lunaria::testing {
namespace {

class MachineTest : public CpuTest {};

Value vector(std::vector<double> values) {
    Tensor t = Tensor::empty(DType::f64, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) t.set_at(static_cast<int64_t>(i), values[i]);
    return Value(t);
}

void expect_values(const std::vector<Value>& got, const std::vector<Value>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(same_value(got[i], expected[i]))
            << i << ": " << to_string(got[i]) << ", not " << to_string(expected[i]);
}

constexpr const char* kAbsolute =
    "graph f(%0 x: ?) {\n"
    "  graph f.then(%1 x: ?) {\n"
    "    %2 = minus(%1) : ?\n"
    "    return {%2}\n"
    "  }\n"
    "  graph f.else(%3 x: ?) {\n"
    "    return {%3}\n"
    "  }\n"
    "  %4 = less(%0, 0) : ?\n"
    "  %5 = branch(%4, @f.then, {%0}, @f.else, {%0}) : ?\n"
    "  return %5\n"
    "}\n";

TEST_F(MachineTest, a_branch_goes_one_way) {
    TextProgram program(kAbsolute);
    expect_values(program.run({Value(-3)}), {Value(3)});
    expect_values(program.run({Value(2.5)}), {Value(2.5)});
}

TEST_F(MachineTest, only_nil_and_false_are_false) {
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  graph f.then() {\n"
        "    return {1}\n"
        "  }\n"
        "  graph f.else() {\n"
        "    return {0}\n"
        "  }\n"
        "  %1 = branch(%0, @f.then, {}, @f.else, {}) : ?\n"
        "  return %1\n"
        "}\n");
    for (const Value& yes : {Value(0), Value(""), Value(true), vm::PlainHost::table({}), vector({0})})
        expect_values(program.run({yes}), {Value(1)});
    for (const Value& no : {Value(), Value(false)}) expect_values(program.run({no}), {Value(0)});
}

// The sum of i * i for i from 1 to n.
constexpr const char* kSquares =
    "graph f(%0 n: ?) {\n"
    "  graph f.loop(%1 i: ?, %2 sum: ?, %3 n: ?) {\n"
    "    %4 = less_equal(%1, %3) : ?\n"
    "    %5 = branch(%4, @f.body, {%1, %2, %3}, @f.end, {%2}) : ?\n"
    "    return %5\n"
    "  }\n"
    "  graph f.body(%6 i: ?, %7 sum: ?, %8 n: ?) {\n"
    "    %9 = mul(%6, %6) : ?\n"
    "    %10 = add(%7, %9) : ?\n"
    "    %11 = add(%6, 1) : ?\n"
    "    %12 = @f.loop(%11, %10, %8) : ?\n"
    "    return %12\n"
    "  }\n"
    "  graph f.end(%13 sum: ?) {\n"
    "    return {%13}\n"
    "  }\n"
    "  %14 = @f.loop(1, 0, %0) : ?\n"
    "  return %14\n"
    "}\n";

TEST_F(MachineTest, a_loop_is_a_graph_that_goes_on_to_itself) {
    TextProgram program(kSquares);
    for (int64_t n : {0, 1, 2, 10, 100000})
        expect_values(program.run({Value(n)}), {Value(n * (n + 1) * (2 * n + 1) / 6)});
}

TEST_F(MachineTest, arguments_of_a_block_change_places_at_once) {
    // (a, b) = (b, a) n times.
    TextProgram program(
        "graph f(%0 n: ?, %1 a: ?, %2 b: ?) {\n"
        "  graph f.loop(%3 n: ?, %4 a: ?, %5 b: ?) {\n"
        "    %6 = less(0, %3) : ?\n"
        "    %7 = branch(%6, @f.body, {%3, %4, %5}, @f.end, {%4, %5}) : ?\n"
        "    return %7\n"
        "  }\n"
        "  graph f.body(%8 n: ?, %9 a: ?, %10 b: ?) {\n"
        "    %11 = sub(%8, 1) : ?\n"
        "    %12 = @f.loop(%11, %10, %9) : ?\n"
        "    return %12\n"
        "  }\n"
        "  graph f.end(%13 a: ?, %14 b: ?) {\n"
        "    return {%13, %14}\n"
        "  }\n"
        "  %15 = @f.loop(%0, %1, %2) : ?\n"
        "  return %15\n"
        "}\n");
    expect_values(program.run({Value(2), Value("a"), Value("b")}), {Value("a"), Value("b")});
    expect_values(program.run({Value(3), Value("a"), Value("b")}), {Value("b"), Value("a")});
}

TEST_F(MachineTest, recursion_is_as_deep_as_memory_allows) {
    // n == 0 and 0 or 1 + f(n - 1)
    TextProgram program(
        "graph f(%0 n: ?) {\n"
        "  graph f.then() {\n"
        "    return {0}\n"
        "  }\n"
        "  graph f.else(%1 f: ?, %2 n: ?) {\n"
        "    %3 = sub(%2, 1) : ?\n"
        "    %4 = call(%1, {%3}) : ?  -- deep.lua:4\n"
        "    %5 = result(%4, 0) : ?\n"
        "    %6 = add(1, %5) : ?\n"
        "    return {%6}\n"
        "  }\n"
        "  %7 = current_function() : ?\n"
        "  %8 = equal(%0, 0) : ?\n"
        "  %9 = branch(%8, @f.then, {}, @f.else, {%7, %0}) : ?\n"
        "  return %9\n"
        "}\n");
    expect_values(program.run({Value(100000)}), {Value(100000)});
    EXPECT_NE(program.error({Value(int64_t{1} << 40)}).find("deep.lua:4: stack overflow"), std::string::npos);
}

TEST_F(MachineTest, a_tail_call_takes_no_room) {
    TextProgram program(
        "graph f(%0 n: ?) {\n"
        "  graph f.then() {\n"
        "    return {\"end\"}\n"
        "  }\n"
        "  graph f.else(%1 f: ?, %2 n: ?) {\n"
        "    %3 = sub(%2, 1) : ?\n"
        "    %4 = call(%1, {%3}) : ?\n"
        "    return %4\n"
        "  }\n"
        "  %7 = current_function() : ?\n"
        "  %8 = equal(%0, 0) : ?\n"
        "  %9 = branch(%8, @f.then, {}, @f.else, {%7, %0}) : ?\n"
        "  return %9\n"
        "}\n");
    expect_values(program.run({Value(300000)}), {Value("end")});
}

TEST_F(MachineTest, closures_share_a_cell_and_keep_their_own_values) {
    // Two counters over one variable, with steps of their own.
    TextProgram program(
        "graph f(%0 start: ?) {\n"
        "  graph count(%1 n: ?, %2 step: ?) captures 2 {\n"
        "    %3 = cell_get(%1) : ?\n"
        "    %4 = add(%3, %2) : ?\n"
        "    %5 = cell_set(%1, %4) : ?\n"
        "    return {%4}\n"
        "  }\n"
        "  %6 = cell(%0) : ?\n"
        "  %7 = closure(@count, {%6, 1}) : ?\n"
        "  %8 = closure(@count, {%6, 10}) : ?\n"
        "  %9 = call(%7, {}) : ?\n"
        "  %10 = call(%8, {}) : ?\n"
        "  %11 = call(%7, {}) : ?\n"
        "  %12 = result(%9, 0) : ?\n"
        "  %13 = result(%10, 0) : ?\n"
        "  %14 = result(%11, 0) : ?\n"
        "  %15 = cell_get(%6) : ?\n"
        "  return {%12, %13, %14, %15}\n"
        "}\n");
    expect_values(program.run({Value(5)}), {Value(6), Value(16), Value(17), Value(17)});
}

TEST_F(MachineTest, lists_of_results_are_cut_filled_and_spread) {
    TextProgram program(
        "graph f(%0 first: ?, %1 ...: ?) variadic {\n"
        "  graph pair(%2 a: ?, %3 b: ?) {\n"
        "    return {%3, %2, %3}\n"
        "  }\n"
        "  %4 = closure(@pair, {}) : ?\n"
        "  %5 = call(%4, {%0}) : ?\n"
        "  %6 = result(%5, 1) : ?\n"
        "  %7 = result(%5, 7) : ?\n"
        "  %8 = results_from(%1, 1) : ?\n"
        "  %9 = spread({%6, %7}, %8) : ?\n"
        "  return %9\n"
        "}\n");
    expect_values(program.run({Value(1)}), {Value(1), Value()});
    expect_values(program.run({Value(1), Value(2), Value(3), Value(4)}), {Value(1), Value(), Value(3), Value(4)});
}

TEST_F(MachineTest, effects_keep_the_order_of_the_text) {
    // t[1] is read, written and read again; the result of the write is not used.
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  %9 = spread({7, 8}, nil) : ?\n"
        "  %1 = table({1, \"k\"}, {%0, %0}, 1, %9) : ?\n"
        "  %2 = index(%1, 1) : ?\n"
        "  %3 = add(%2, 1) : ?\n"
        "  %4 = set_index(%1, 1, %3) : ?\n"
        "  %5 = index(%1, 1) : ?\n"
        "  %6 = index(%1, 3) : ?\n"
        "  %7 = length(%1) : ?\n"
        "  %8 = index(%1, \"k\") : ?\n"
        "  return {%2, %5, %6, %7, %8}\n"
        "}\n");
    expect_values(program.run({Value(5)}), {Value(5), Value(6), Value(8), Value(3), Value(5)});
}

TEST_F(MachineTest, metatables_are_asked_where_a_table_has_no_answer) {
    TextProgram add(
        "graph add(%0 a: ?, %1 b: ?) {\n"
        "  %2 = index(%0, \"value\") : ?\n"
        "  %3 = index(%1, \"value\") : ?\n"
        "  %4 = add(%2, %3) : ?\n"
        "  return {%4, \"dropped\"}\n"
        "}\n");
    TextProgram program(
        "graph f(%0 a: ?, %1 b: ?) {\n"
        "  %2 = add(%0, %1) : ?\n"
        "  %3 = index(%0, \"inherited\") : ?\n"
        "  return {%2, %3}\n"
        "}\n");
    const Value meta = vm::PlainHost::table(
        {{Value("__add"), add.function()}, {Value("__index"), vm::PlainHost::table({{Value("inherited"), Value(9)}})}});
    const Value a = vm::PlainHost::table({{Value("value"), Value(2)}}, meta),
                b = vm::PlainHost::table({{Value("value"), Value(3)}});
    expect_values(program.run({a, b}), {Value(5), Value(9)});
    EXPECT_NE(program.error({b, b}).find("arithmetic"), std::string::npos);
}

TEST_F(MachineTest, numeric_loops_count_their_rounds) {
    TextProgram program(
        "graph f(%0 start: ?, %1 limit: ?, %2 step: ?) {\n"
        "  graph f.loop(%10 i: ?, %11 limit: ?, %12 step: ?, %13 count: ?, %14 n: ?) {\n"
        "    %15 = for_more(%10, %11, %12, %13) : ?\n"
        "    %16 = branch(%15, @f.body, {%10, %11, %12, %13, %14}, @f.end, {%14}) : ?\n"
        "    return %16\n"
        "  }\n"
        "  graph f.body(%17 i: ?, %18 limit: ?, %19 step: ?, %20 count: ?, %21 n: ?) {\n"
        "    %22 = add(%21, 1) : ?\n"
        "    %23 = add(%17, %19) : ?\n"
        "    %24 = for_count(%20) : ?\n"
        "    %25 = @f.loop(%23, %18, %19, %24, %22) : ?\n"
        "    return %25\n"
        "  }\n"
        "  graph f.end(%26 n: ?) {\n"
        "    return {%26}\n"
        "  }\n"
        "  %3 = for_prepare(%0, %1, %2) : ?\n"
        "  %4 = result(%3, 0) : ?\n"
        "  %5 = result(%3, 1) : ?\n"
        "  %6 = result(%3, 2) : ?\n"
        "  %7 = result(%3, 3) : ?\n"
        "  %8 = @f.loop(%4, %5, %6, %7, 0) : ?\n"
        "  return %8\n"
        "}\n");
    const int64_t most = std::numeric_limits<int64_t>::max();
    expect_values(program.run({Value(1), Value(10), Value(3)}), {Value(4)});
    expect_values(program.run({Value(1), Value(0), Value(1)}), {Value(0)});
    expect_values(program.run({Value(0.0), Value(1), Value(0.25)}), {Value(5)});
    expect_values(program.run({Value(most - 1), Value(most), Value(1)}), {Value(2)});
    EXPECT_NE(program.error({Value(1), Value(2), Value(0)}).find("step is zero"), std::string::npos);
    EXPECT_NE(program.error({Value("a"), Value(2), Value(1)}).find("initial"), std::string::npos);
}

TEST_F(MachineTest, operators_run_on_tensors_by_name_by_value_and_by_sign) {
    TextProgram program(
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.mul(%0, %0) : ?\n"
        "  %2 = call(ops.neg, {%1}) : ?\n"
        "  %3 = result(%2, 0) : ?\n"
        "  %4 = add(%3, 1) : ?\n"
        "  %5 = float64(3) {1.0, 2.0, 3.0}\n"
        "  %6 = mul(%4, %5) : ?\n"
        "  %7 = index(%6, 2) : ?\n"
        "  return {%6, %7}\n"
        "}\n");
    const auto results = program.run({vector({1, 2, 3})});
    EXPECT_TRUE(same_value(results[0], vector({0, -6, -24})));
    EXPECT_EQ(results[1].tensor().at(0), -24);
}

TEST_F(MachineTest, errors_name_the_place_in_the_text) {
    TextProgram program(
        "graph f(%0 x: ?, %1 y: ?) {\n"
        "  graph inner(%2 a: ?, %3 b: ?) {\n"
        "    %4 = ops.matmul(%2, %3) : ?  -- inner.lua:7\n"
        "    return {%4}\n"
        "  }\n"
        "  %5 = closure(@inner, {}) : ?\n"
        "  %6 = call(%5, {%0, %1}) : ?  -- outer.lua:3\n"
        "  %7 = result(%6, 0) : ?\n"
        "  return {%7}\n"
        "}\n");
    const Value a(Tensor::zeros(DType::f32, {2, 3})), b(Tensor::zeros(DType::f32, {2, 3}));
    EXPECT_EQ(program.error({a, b}).find("inner.lua:7: matmul: "), 0u) << program.error({a, b});
    EXPECT_EQ(program.error({a, Value(Tensor::zeros(DType::f32, {3, 1}))}), "no error");
}

constexpr const char* kRaising =
    "graph f(%0 pcall: ?, %1 error: ?, %2 x: ?) {\n"
    "  graph risky(%3 error: ?, %4 x: ?) captures 1 {\n"
    "    graph risky.then(%5 error: ?, %6 x: ?) {\n"
    "      %7 = call(%5, {%6, 1}) : ?  -- risky.lua:5\n"
    "      return {}\n"
    "    }\n"
    "    graph risky.else(%8 x: ?) {\n"
    "      return {%8, \"fine\"}\n"
    "    }\n"
    "    %9 = index(%4, \"bad\") : ?\n"
    "    %10 = branch(%9, @risky.then, {%3, %9}, @risky.else, {%4}) : ?\n"
    "    return %10\n"
    "  }\n"
    "  %11 = closure(@risky, {%1}) : ?\n"
    "  %12 = call(%0, {%11, %2}) : ?\n"
    "  %13 = result(%12, 0) : ?\n"
    "  %14 = result(%12, 1) : ?\n"
    "  return {%13, %14}\n"
    "}\n";

TEST_F(MachineTest, a_protected_call_meets_errors_with_any_value) {
    TextProgram program(kRaising);
    const Value pcall = function_value(vm::prelude(vm::Prelude::pcall)),
                error = function_value(vm::prelude(vm::Prelude::error));
    const Value fine = vm::PlainHost::table({}),
                object = vm::PlainHost::table({{Value("bad"), vm::PlainHost::table({})}});
    auto results = program.run({pcall, error, fine});
    EXPECT_TRUE(results[0].boolean());
    EXPECT_EQ(results[1].object(), fine.object());
    results = program.run({pcall, error, vm::PlainHost::table({{Value("bad"), Value("broken")}})});
    expect_values(results, {Value(false), Value("risky.lua:5: broken")});
    results = program.run({pcall, error, object});
    EXPECT_TRUE(vm::PlainHost().is_table(results[1]));
}

TEST_F(MachineTest, variables_are_closed_from_the_last_to_the_first_when_an_error_leaves) {
    TextProgram closing(
        "graph close(%0 self: ?, %1 error: ?) {\n"
        "  %2 = index(%0, \"log\") : ?\n"
        "  %3 = index(%0, \"name\") : ?\n"
        "  %4 = length(%2) : ?\n"
        "  %5 = add(%4, 1) : ?\n"
        "  %6 = set_index(%2, %5, %3) : ?\n"
        "  return {}\n"
        "}\n");
    TextProgram program(
        "graph f(%0 a: ?, %1 b: ?, %2 error: ?) {\n"
        "  %6 = guard(%0) : ?\n"
        "  %3 = to_close(%0, \"a\") : ?\n"
        "  %4 = to_close(%1, \"b\") : ?\n"
        "  %5 = call(%2, {\"stop\", 0}) : ?\n"
        "  return {}\n"
        "}\n");
    const Value meta = vm::PlainHost::table({{Value("__close"), closing.function()}}), log = vm::PlainHost::table({});
    auto guarded = [&](const char* name) {
        return vm::PlainHost::table({{Value("name"), Value(name)}, {Value("log"), log}}, meta);
    };
    EXPECT_EQ(program.error({guarded("a"), guarded("b"), function_value(vm::prelude(vm::Prelude::error))}), "stop");
    vm::PlainHost host;
    expect_values({host.raw_get(log, Value(1)), host.raw_get(log, Value(2)), host.length(log)},
                  {Value("b"), Value("a"), Value(2)});
    EXPECT_NE(program.error({Value(1), Value(), Value()}).find("variable 'a' got a non-closable value"),
              std::string::npos);
}

Value native(vm::NativeFunction::Kind kind) { return function_value(vm::native_function(kind, Value())); }

// A coroutine that yields x, then what it was given times 2, and returns their sum.
constexpr const char* kCoroutine =
    "graph f(%0 create: ?, %1 resume: ?, %2 yield: ?, %3 x: ?) {\n"
    "  graph part(%4 yield: ?, %5 x: ?) captures 1 {\n"
    "    %6 = call(%4, {%5}) : ?\n"
    "    %7 = result(%6, 0) : ?\n"
    "    %8 = mul(%7, 2) : ?\n"
    "    %9 = call(%4, {%8}) : ?\n"
    "    %10 = add(%5, %8) : ?\n"
    "    return {%10}\n"
    "  }\n"
    "  %11 = closure(@part, {%2}) : ?\n"
    "  %12 = call(%0, {%11}) : ?\n"
    "  %13 = result(%12, 0) : ?\n"
    "  %14 = call(%1, {%13, %3}) : ?\n"
    "  %15 = result(%14, 1) : ?\n"
    "  %16 = mul(%15, %15) : ?\n"
    "  %17 = call(%1, {%13, %16}) : ?\n"
    "  %18 = result(%17, 1) : ?\n"
    "  %19 = call(%1, {%13}) : ?\n"
    "  %20 = result(%19, 1) : ?\n"
    "  %21 = call(%1, {%13}) : ?\n"
    "  %22 = result(%21, 0) : ?\n"
    "  return {%20, %15, %18, %22}\n"
    "}\n";

TEST_F(MachineTest, coroutines_go_on_where_they_stopped) {
    TextProgram program(kCoroutine);
    using Kind = vm::NativeFunction::Kind;
    expect_values(program.run({native(Kind::create), native(Kind::resume), native(Kind::yield), Value(3)}),
                  {Value(21), Value(3), Value(18), Value(false)});
}

// A function of n statements: each uses the value of the one before, and every tenth one of long ago.
std::string chain(size_t n) {
    std::string text = "graph f(%0 x: ?) {\n";
    for (size_t i = 1; i <= n; ++i)
        text += str("  %", i, " = mul(%", i - 1, ", %", i % 10 == 0 ? i / 2 : i - 1, ") : ?\n");
    return text + str("  return {%", n, "}\n}\n");
}

TEST_F(MachineTest, registers_are_used_again) {
    TextProgram program(chain(10));
    const vm::Code& code = vm::code_of(vm::function_of(program.graph()));
    EXPECT_LE(code.registers, 4u);
    // Results that several nodes stand for live until the last of these is used.
    TextProgram aliases(
        "graph f(%0 g: ?, %1 x: ?) {\n"
        "  %2 = call(%0, {%1}) : ?\n"
        "  %3 = result(%2, 0) : ?\n"
        "  %4 = result(%2, 0) : ?\n"
        "  %5 = ops.neg(%3) : ?\n"
        "  %6 = ops.abs(%5) : ?\n"
        "  %7 = ops.add(%6, %4) : ?\n"
        "  return {%7}\n"
        "}\n");
    expect_values(aliases.run({vm::operator_value(registry().get("exp")), vector({0, 0})}), {vector({2, 2})});
}

}  // namespace
}  // namespace lunaria::testing
