// The machine's own functions, called by programs that are texts of the IR, and their derivatives.
#include "jit/vm/prelude.h"

#include <cmath>

#include "jit/trace/plain_function.h"
#include "jit/vm/native.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using vm::PlainHost;
using vm::Prelude;

class MachineFunctionTest : public CpuTest {};

Value function(Prelude which) { return function_value(vm::prelude(which)); }
Value function(vm::NativeFunction::Kind kind) { return function_value(vm::native_function(kind, Value())); }

// f(x, g) = the first result of g(...), where `call` is the list of arguments.
std::string calling(std::string_view call) {
    return str("graph f(%0 x: ?, %1 g: ?) {\n  %2 = mul(%0, 1) : ?\n  %3 = call(%1, ", call,
               ") : ?\n  %4 = result(%3, 0) : ?\n  %5 = mul(%4, %2) : ?\n  return {%5}\n}\n");
}

double number(const Value& v) { return v.is_tensor() ? v.tensor().at(0) : v.number(); }

// The first result and its derivative by the first argument, by the machine and from a record.
void expect_slope(std::string_view text, std::vector<Value> args, double result, double slope) {
    TextProgram f(text);
    vm::Values all{Value("grad"), f.function(), Value(0)};
    for (const Value& v : args) all.push_back(v);
    trace::PlainFunction gradient(f.host(), function(Prelude::gradient));
    for (int i = 0; i < 3; ++i) {
        const vm::Values got = gradient.call({all.begin(), all.size()});
        EXPECT_DOUBLE_EQ(number(got[0]), result) << text;
        EXPECT_DOUBLE_EQ(number(got[1]), slope) << text;
    }
    EXPECT_DOUBLE_EQ(number(f.run(args)[0]), result) << text;
}

TEST_F(MachineFunctionTest, a_stopped_value_is_a_constant) {
    expect_slope(calling("{%0}"), {Value(3.0), function(Prelude::stop)}, 9, 3);
}

TEST_F(MachineFunctionTest, the_element_of_a_tensor_is_followed) {
    expect_slope(calling("{%0}"), {floats({3}), function(Prelude::item)}, 9, 6);
}

TEST_F(MachineFunctionTest, the_element_of_a_tensor_is_a_number_of_the_record) {
    RecordedProgram f(calling("{%0}"));
    const Value item = function(Prelude::item);
    for (double x : {3.0, 4.0, 5.0, 6.0}) f.check({floats({x}), item}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
}

TEST_F(MachineFunctionTest, operators_have_second_derivatives) {
    TextProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.tanh(%0) : ?\n"
        "  %2 = ops.sum(%1, nil, false, nil) : ?\n"
        "  return {%2}\n"
        "}\n");
    const double y = std::tanh(0.5);
    EXPECT_NEAR(number(f.second_derivative({floats({0.5})})), -2 * y * (1 - y * y), 1e-6);
}

TEST_F(MachineFunctionTest, fields_of_an_argument_have_cotangents) {
    // t.x * t.x * t.y
    TextProgram f(
        "graph f(%0 t: ?) {\n"
        "  %1 = index(%0, \"x\") : ?\n"
        "  %2 = index(%0, \"y\") : ?\n"
        "  %3 = mul(%1, %1) : ?\n"
        "  %4 = mul(%3, %2) : ?\n"
        "  return {%4}\n"
        "}\n");
    vm::Machine machine(f.host());
    const Value t = PlainHost::table({{Value("x"), Value(3.0)}, {Value("y"), Value(4.0)}});
    // pull, context, results
    const vm::Values pulled = machine.run(function(Prelude::vjp), vm::Values{f.function(), Value(0), Value(), t});
    ASSERT_EQ(pulled.size(), 3u);
    machine.run(pulled[0], vm::Values{Value(1.0)});
    for (const auto& [field, slope] : {std::pair("x", 24.0), std::pair("y", 9.0)})
        EXPECT_EQ(number(machine.run(function(Prelude::shadow), vm::Values{pulled[1], t, Value(field)})[0]), slope);
}

TEST_F(MachineFunctionTest, fields_are_read_and_written_without_metamethods) {
    // t = {}; set(t, "x", x); return get(t, "x") * x
    expect_slope(
        "graph f(%0 x: ?, %1 get: ?, %2 set: ?) {\n"
        "  %3 = table({}, {}, 0, nil) : ?\n"
        "  %4 = call(%2, {%3, \"x\", %0}) : ?\n"
        "  %5 = call(%1, {%3, \"x\"}) : ?\n"
        "  %6 = result(%5, 0) : ?\n"
        "  %7 = mul(%6, %0) : ?\n"
        "  return {%7}\n"
        "}\n",
        {Value(3.0), function(Prelude::raw_index), function(Prelude::raw_set)}, 9, 6);
}

TEST_F(MachineFunctionTest, a_tensor_gets_other_content_and_its_old_one_is_followed_up_to_there) {
    // y = x * 1; z = y * y; overwrite(y, z); return sum(y * x)
    expect_slope(
        "graph f(%0 x: ?, %1 overwrite: ?) {\n"
        "  %2 = mul(%0, 1) : ?\n"
        "  %3 = mul(%2, %2) : ?\n"
        "  %4 = call(%1, {%2, %3}) : ?\n"
        "  %5 = mul(%2, %0) : ?\n"
        "  %6 = ops.sum(%5, nil, false, nil) : ?\n"
        "  return {%6}\n"
        "}\n",
        {floats({3}), function(Prelude::overwrite)}, 27, 27);
}

// g(x) = x * x with a derivative of its own: the last argument of back is the cotangent.
constexpr const char* kGiven =
    "graph f(%0 x: ?, %1 with: ?) {\n"
    "  graph g(%2 x: ?) {\n"
    "    %3 = mul(%2, %2) : ?\n"
    "    return {%3}\n"
    "  }\n"
    "  graph back(%4 x: ?, %5 y: ?, %6 d: ?) {\n"
    "    %7 = mul(%6, 10) : ?\n"
    "    return {%7}\n"
    "  }\n"
    "  %8 = closure(@g, {}) : ?\n"
    "  %9 = closure(@back, {}) : ?\n"
    "  %10 = call(%1, {%8, %9, %0}) : ?\n"
    "  %11 = result(%10, 0) : ?\n"
    "  return {%11}\n"
    "}\n";

TEST_F(MachineFunctionTest, a_function_has_the_derivative_that_the_program_gives) {
    expect_slope(kGiven, {floats({3}), function(Prelude::custom)}, 9, 10);
}

TEST_F(MachineFunctionTest, a_function_is_computed_again_for_its_derivative) {
    std::string text(kGiven);
    text.replace(text.find("%8, %9, %0"), 10, "%8, %8, %0");
    expect_slope(text, {floats({3}), function(Prelude::checkpoint)}, 9, 6);
}

TEST_F(MachineFunctionTest, errors_that_a_program_meets_leave_the_derivative_whole) {
    // pcall(function(x) if x > 2 then error("no") end return x * x end, x)
    constexpr const char* kMet =
        "graph f(%0 x: ?, %1 met: ?, %2 handler: ?, %3 error: ?) {\n"
        "  graph g(%4 error: ?, %5 x: ?) captures 1 {\n"
        "    graph g.then(%6 error: ?) {\n"
        "      %7 = call(%6, {\"no\", 0}) : ?\n"
        "      return {}\n"
        "    }\n"
        "    graph g.else(%8 x: ?) {\n"
        "      %9 = mul(%8, %8) : ?\n"
        "      return {%9}\n"
        "    }\n"
        "    %10 = less(2, %5) : ?\n"
        "    %11 = branch(%10, @g.then, {%4}, @g.else, {%5}) : ?\n"
        "    return %11\n"
        "  }\n"
        "  graph f.then(%12 x: ?, %13 y: ?) {\n"
        "    %14 = add(%12, %13) : ?\n"
        "    return {%14}\n"
        "  }\n"
        "  graph f.else(%15 x: ?) {\n"
        "    %16 = mul(%15, 5) : ?\n"
        "    return {%16}\n"
        "  }\n"
        "  graph handle(%17 e: ?) {\n"
        "    return {%17}\n"
        "  }\n"
        "  %18 = closure(@g, {%3}) : ?\n"
        "  %19 = closure(@handle, {}) : ?\n"
        "  %20 = call(%1, ARGS) : ?\n"
        "  %21 = result(%20, 0) : ?\n"
        "  %22 = result(%20, 1) : ?\n"
        "  %23 = branch(%21, @f.then, {%0, %22}, @f.else, {%0}) : ?\n"
        "  return %23\n"
        "}\n";
    const auto with = [](std::string_view args) {
        std::string text(kMet);
        return text.replace(text.find("ARGS"), 4, args);
    };
    const Value error = function(Prelude::error);
    for (const auto& [met, args] : {std::pair(Prelude::pcall, "{%18, %0}"), {Prelude::xpcall, "{%18, %19, %0}"}}) {
        expect_slope(with(args), {Value(1.5), function(met), Value(), error}, 3.75, 4);
        expect_slope(with(args), {Value(3.0), function(met), Value(), error}, 15, 5);
    }
}

// A coroutine that yields x, then what it was given times 2, and returns their sum.
constexpr const char* kCoroutine =
    "graph f(%0 x: ?, %1 create: ?, %2 resume: ?, %3 yield: ?) {\n"
    "  graph part(%4 yield: ?, %5 x: ?) captures 1 {\n"
    "    %6 = call(%4, {%5}) : ?\n"
    "    %7 = result(%6, 0) : ?\n"
    "    %8 = mul(%7, 2) : ?\n"
    "    %9 = call(%4, {%8}) : ?\n"
    "    %10 = add(%5, %8) : ?\n"
    "    return {%10}\n"
    "  }\n"
    "  %11 = closure(@part, {%3}) : ?\n"
    "  %12 = call(%1, {%11}) : ?\n"
    "  %13 = result(%12, 0) : ?\n"
    "  %14 = call(%2, {%13, %0}) : ?\n"
    "  %15 = result(%14, 1) : ?\n"
    "  %16 = mul(%15, %15) : ?\n"
    "  %17 = call(%2, {%13, %16}) : ?\n"
    "  %18 = call(%2, {%13}) : ?\n"
    "  %19 = result(%18, 1) : ?\n"
    "  return {%19}\n"
    "}\n";

TEST_F(MachineFunctionTest, a_derivative_goes_through_coroutines) {
    using Kind = vm::NativeFunction::Kind;
    TextProgram f(kCoroutine);
    const auto [y, slope] =
        f.gradient({Value(3.0), function(Kind::create), function(Kind::resume), function(Kind::yield)});
    EXPECT_EQ(number(y), 21);
    EXPECT_EQ(number(slope), 13);
    // A function that resumes it: its errors are met where it was wrapped.
    TextProgram wrapped(
        "graph f(%0 x: ?, %1 wrap: ?) {\n"
        "  graph part(%2 x: ?) {\n"
        "    %3 = mul(%2, %2) : ?\n"
        "    return {%3}\n"
        "  }\n"
        "  %4 = closure(@part, {}) : ?\n"
        "  %5 = call(%1, {%4}) : ?\n"
        "  %6 = result(%5, 0) : ?\n"
        "  %7 = call(%6, {%0}) : ?\n"
        "  return %7\n"
        "}\n");
    const auto [z, slope_of_z] = wrapped.gradient({Value(3.0), function(Kind::wrap)});
    EXPECT_EQ(number(z), 9);
    EXPECT_EQ(number(slope_of_z), 6);
}

TEST_F(MachineFunctionTest, a_value_and_all_derivatives_come_in_one_call) {
    TextProgram f(
        "graph f(%0 x: ?, %1 y: ?) {\n"
        "  %2 = mul(%0, %1) : ?\n"
        "  return {%2, %1}\n"
        "}\n");
    vm::Machine machine(f.host());
    const Value both = PlainHost::table({{Value(0), Value(true)}, {Value(1), Value(true)}});
    // context, number of results, results, cotangents
    const vm::Values got = machine.run(function(Prelude::derivative),
                                       vm::Values{Value("grad"), f.function(), both, Value(), Value(3.0), Value(4.0)});
    ASSERT_EQ(got.size(), 6u);
    EXPECT_EQ(got[1].integer(), 2);
    EXPECT_EQ(number(got[2]), 12);
    EXPECT_EQ(number(got[4]), 4);
    EXPECT_EQ(number(got[5]), 3);
    // The same in two steps: pull, context, results.
    const vm::Values pulled =
        machine.run(function(Prelude::vjp), vm::Values{f.function(), both, Value(), Value(3.0), Value(4.0)});
    ASSERT_EQ(pulled.size(), 4u);
    for (double d : {1.0, 2.0}) {
        const vm::Values cotangents = machine.run(pulled[0], vm::Values{Value(d), Value()});
        EXPECT_EQ(number(cotangents[0]), 4 * d);
        EXPECT_EQ(number(cotangents[1]), 3 * d);
    }
}

TEST_F(MachineFunctionTest, a_host_without_batches_tries_none) {
    TextProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = mul(%0, %0) : ?\n"
        "  return {%1}\n"
        "}\n");
    vm::Machine machine(f.host());
    // Nothing tells the program to go through the samples one by one.
    const vm::Values got =
        machine.run(function(Prelude::batched), vm::Values{Value(3), f.function(), floats({1, 2, 3})});
    EXPECT_EQ(got.size(), 0u);
}

TEST_F(MachineFunctionTest, results_after_the_first_ones_and_tables_of_all_are_followed) {
    // g(...) = {0, ...}: t[2] * t[3] of the results from the second on
    constexpr const char* kMany =
        "graph f(%0 x: ?, %1 ...: ?) variadic {\n"
        "  graph g(%2 ...: ?) variadic {\n"
        "    %3 = results_from(%2, 1) : ?\n"
        "    return %3\n"
        "  }\n"
        "  %4 = closure(@g, {}) : ?\n"
        "  %5 = spread({1, %0}, %1) : ?\n"
        "  %6 = call(%4, %5) : ?\n"
        "  %7 = table({1}, {%0}, 1, %6) : ?\n"
        "  %8 = index(%7, 2) : ?\n"
        "  %9 = index(%7, 3) : ?\n"
        "  %10 = mul(%8, %9) : ?\n"
        "  %11 = mul(%10, %0) : ?\n"
        "  return {%11}\n"
        "}\n";
    expect_slope(kMany, {Value(3.0), Value(4.0)}, 36, 24);
    TextProgram f(kMany);
    EXPECT_EQ(number(f.second_derivative({Value(3.0), Value(4.0)})), 8);
}

TEST_F(MachineFunctionTest, a_variable_is_closed_where_its_block_ends) {
    TextProgram close(
        "graph close(%0 self: ?, %1 error: ?) {\n"
        "  %2 = set_index(%0, \"closed\", true) : ?\n"
        "  %3 = set_index(%0, \"error\", %1) : ?\n"
        "  return {}\n"
        "}\n");
    TextProgram f(
        "graph f(%0 t: ?, %1 x: ?) {\n"
        "  %2 = to_close(%0, \"t\") : ?\n"
        "  %3 = stop_point({\"t\", \"x\"}, {%0, %1}) : ?  -- f.lua:2\n"
        "  %4 = pending() : ?\n"
        "  %5 = caught() : ?\n"
        "  %6 = closing(%0) : ?\n"
        "  %7 = call(%6, {%4, %5}) : ?\n"
        "  return {%1}\n"
        "}\n");
    const Value t = PlainHost::table({}, PlainHost::table({{Value("__close"), close.function()}}));
    EXPECT_EQ(f.run({t, Value(7)})[0].integer(), 7);
    EXPECT_EQ(f.host().lines, 1);
    EXPECT_TRUE(f.host().raw_get(t, Value("closed")).boolean());
    EXPECT_TRUE(f.host().raw_get(t, Value("error")).is_nil());
}

TEST_F(MachineFunctionTest, what_only_records_have_is_not_run_by_the_machine) {
    // A plain host has no functions of its own whose variables a record could read.
    for (std::string_view name : {"upvalue(%0, 1)", "set_upvalue(%0, 1, 2)", "metatable(%0)", "raw_length(%0)"}) {
        TextProgram f(str("graph f(%0 g: ?) {\n  %1 = ", name, " : ?\n  return {%1}\n}\n"));
        const std::string primitive(name.substr(0, name.find('(')));
        EXPECT_NE(f.error({Value(1)}).find(primitive), std::string::npos) << f.error({Value(1)});
        primitives_that_ran().insert(primitive);
    }
}

}  // namespace
}  // namespace lunaria::testing
