// Parts of the language that a plain host has beside tables, recorded: operators as a call spells them, parts of
// tensors, methods, functions that others stand for.
#include <gtest/gtest.h>

#include "core/ir/printer.h"
#include "jit/vm/cycles.h"
#include "jit/vm/plain_arguments.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using vm::PlainHost;

class PlainTest : public CpuTest {};

TEST_F(PlainTest, operators_as_values_take_their_arguments_as_a_call_spells_them) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = table({\"axis\", \"keepdims\"}, {-1, true}, 0, nil) : ?\n"
        "  %2 = call(ops.sum, {%0, %1}) : ?\n"
        "  %3 = result(%2, 0) : ?\n"
        "  %4 = call(ops.reshape, {%3, 1, -1}) : ?\n"
        "  %5 = result(%4, 0) : ?\n"
        "  %6 = table({1, 2}, {%5, %0}, 2, nil) : ?\n"
        "  %7 = call(ops.concat, {%6}) : ?\n"
        "  %8 = result(%7, 0) : ?\n"
        "  %9 = call(ops.softmax, {%8}) : ?\n"
        "  return %9\n"
        "}\n");
    const Value x = floats({1, 2, 3, 4}, {2, 2});
    for (int i = 0; i < 3; ++i) f.check({x}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.refusal(), "");
    EXPECT_NE(f.error({Value("text")}).find("sum: input must be a tensor or a number, got the string 'text'"),
              std::string::npos)
        << f.error({Value("text")});
}

TEST_F(PlainTest, parts_of_tensors_are_operators_of_the_record) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 i: ?, %2 rows: ?) {\n"
        "  %3 = index(%0, \"1:, ::2\") : ?\n"
        "  %4 = index(%0, %1) : ?\n"
        "  %5 = table({1, 2}, {-1, %1}, 2, nil) : ?\n"
        "  %6 = index(%0, %5) : ?\n"
        "  %7 = index(%0, %2) : ?\n"
        "  %8 = index(%0, \"T\") : ?\n"
        "  return {%3, %4, %6, %7, %8}\n"
        "}\n");
    Tensor rows = Tensor::empty(DType::i64, {2});
    rows.set_at(0, 2);
    rows.set_at(1, 0);
    const Value x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
    for (int i : {0, 1, 2, 1, 0}) f.check({x, Value(i), Value(rows)}, __LINE__);
    EXPECT_EQ(f.refusal(), "");
    EXPECT_GE(f.runs(), 2);
}

TEST_F(PlainTest, parts_are_written_in_place_and_have_derivatives) {
    // y = x * 1; y[1] = x[0] * x[0]; y["2:"] = 0; return sum(y * x)
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = mul(%0, 1) : ?\n"
        "  %2 = index(%0, 0) : ?\n"
        "  %3 = mul(%2, %2) : ?\n"
        "  %4 = set_index(%1, 1, %3) : ?\n"
        "  %5 = set_index(%1, \"2:\", 0) : ?\n"
        "  %6 = mul(%1, %0) : ?\n"
        "  %7 = call(ops.sum, {%6}) : ?\n"
        "  return %7\n"
        "}\n");
    const Value x = floats({2, 3, 5});
    for (int i = 0; i < 3; ++i) {
        f.check({x}, __LINE__);
        EXPECT_EQ(f.call({x})[0].tensor().at(0), 2 * 2 + 4 * 3);
    }
    const Value slope = f.program().gradient({x}).second;  // of x0 x0 + x0 x0 x1
    EXPECT_EQ(slope.tensor().at(0), 2 * 2 + 2 * 2 * 3);
    EXPECT_EQ(slope.tensor().at(1), 4);
    EXPECT_EQ(slope.tensor().at(2), 0);
}

// return gradient("grad", function(v) return sum(v * n) end, 0, x)
constexpr const char* kGradient =
    "graph f(%0 gradient: ?, %1 x: ?, %2 n: ?) {\n"
    "  graph g(%3 n: ?, %4 v: ?) captures 1 {\n"
    "    %5 = mul(%4, %3) : ?\n"
    "    %6 = mul(%5, %4) : ?\n"
    "    %7 = call(ops.sum, {%6}) : ?\n"
    "    return %7\n"
    "  }\n"
    "  %8 = closure(@g, {%2}) : ?\n"
    "  %9 = call(%0, {\"grad\", %8, 0, %1}) : ?\n"
    "  %10 = result(%9, 1) : ?\n"
    "  return {%10}\n"
    "}\n";

TEST_F(PlainTest, a_derivative_of_a_closure_with_an_open_number_is_recorded) {
    RecordedProgram f(kGradient);
    const Value gradient = function_value(vm::prelude(vm::Prelude::gradient));
    for (double n : {2.0, 3.5, 1.25, 7.0, -1.0, 0.5}) {
        const std::vector<Value> got = f.call({gradient, floats({1, 2}), Value(n)});
        EXPECT_EQ(got.at(0).tensor().at(1), 2 * 2 * n);
    }
    EXPECT_EQ(f.refusal(), "");
    EXPECT_LE(f.recordings(), 3);
    EXPECT_GE(f.runs(), 3);
}

TEST_F(PlainTest, a_function_of_the_outside_is_replaced_where_its_arguments_are_of_the_kinds) {
    // The replacement doubles; the function itself says what it got.
    TextProgram twice(
        "graph twice(%0 x: ?) {\n"
        "  %1 = add(%0, %0) : ?\n"
        "  return {%1}\n"
        "}\n");
    RecordedProgram f(
        "graph f(%0 f: ?, %1 x: ?) {\n"
        "  %2 = call(%0, {%1}) : ?\n"
        "  return %2\n"
        "}\n");
    const Value plain = PlainHost::function(
        "plain", Native::unknown, [](std::span<const Value> args) { return vm::Values{Value(to_string(args[0]))}; });
    f.host().replace(plain, twice.function(), "N");
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(f.call({plain, Value(2.5)})[0].number(), 5);
        EXPECT_EQ(f.call({plain, Value("text")})[0].string(), "\"text\"");
    }
    EXPECT_EQ(f.program().gradient({plain, Value(2.5)}, 1).second.number(), 2);
}

TEST_F(PlainTest, another_function_stands_in_where_a_derivative_is_followed) {
    TextProgram square(
        "graph square(%0 x: ?) {\n"
        "  %1 = mul(%0, %0) : ?\n"
        "  return {%1}\n"
        "}\n");
    TextProgram f(
        "graph f(%0 f: ?, %1 x: ?) {\n"
        "  %2 = call(%0, {%1}) : ?\n"
        "  return %2\n"
        "}\n");
    const Value opaque = PlainHost::function("opaque", Native::unknown, [](std::span<const Value> args) {
        return vm::Values{Value(args[0].number() * args[0].number())};
    });
    EXPECT_EQ(f.run({opaque, Value(3.0)})[0].number(), 9);
    const vm::Host::Protected refused = f.host().call_protected([&] { f.gradient({opaque, Value(3.0)}, 1); });
    EXPECT_NE(to_string(refused.error).find("no gradient flows through function 'opaque'"), std::string::npos);
    f.host().set_stand_in(opaque, square.function());
    EXPECT_EQ(f.gradient({opaque, Value(3.0)}, 1).second.number(), 6);
}

TEST_F(PlainTest, methods_of_tensors_are_found_by_name_once) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = index(%0, \"tanh\") : ?\n"
        "  %2 = call(%1, {%0}) : ?\n"
        "  %3 = index(%0, \"ndim\") : ?\n"
        "  %4 = result(%2, 0) : ?\n"
        "  return {%4, %3}\n"
        "}\n");
    int asked = 0;
    f.host().method = [&](std::string_view name) {
        ++asked;
        return name == "tanh" ? PlainHost::operator_value(registry().get("tanh")) : Value();
    };
    for (int i = 0; i < 3; ++i) f.check({floats({0.5, 1})}, __LINE__);
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.refusal(), "");
    EXPECT_NE(f.error({Value(1)}).find("attempt to index a number value (field 'tanh')"), std::string::npos)
        << f.error({Value(1)});
}

// Tells when it is destroyed.
struct Probe final : Object {
    explicit Probe(int& alive) : alive(alive) { ++alive; }
    ~Probe() override { --alive; }
    int& alive;
};

TEST_F(PlainTest, tables_that_hold_themselves_are_freed) {
    int alive = 0;
    {
        PlainHost host;
        Value a = PlainHost::table({}), b = PlainHost::table({}, a);
        host.raw_set(a, Value("probe"), vm::make_object<Probe>(alive));
        host.raw_set(a, Value("other"), b);
        host.raw_set(a, a, Value(1));
        Value kept = PlainHost::table({{Value(1), vm::make_object<Probe>(alive)}});
        host.raw_set(kept, Value(2), kept);
        a = b = Value();
        EXPECT_EQ(alive, 2);
        vm::collect_all_cycles();
        EXPECT_EQ(alive, 1);
        EXPECT_EQ(host.length(kept).integer(), 2);
    }
    vm::collect_all_cycles();
    EXPECT_EQ(alive, 0);
}

TEST_F(PlainTest, a_program_whose_tables_hold_their_functions_leaves_nothing) {
    // t.self = t; t.f = function() return t end
    TextProgram f(
        "graph f(%0 probe: ?) {\n"
        "  graph g(%1 t: ?) captures 1 {\n"
        "    return {%1}\n"
        "  }\n"
        "  %2 = table({\"probe\"}, {%0}, 0, nil) : ?\n"
        "  %3 = set_index(%2, \"self\", %2) : ?\n"
        "  %4 = closure(@g, {%2}) : ?\n"
        "  %5 = set_index(%2, \"f\", %4) : ?\n"
        "  %6 = call(%4, {}) : ?\n"
        "  %7 = result(%6, 0) : ?\n"
        "  %8 = index(%7, \"probe\") : ?\n"
        "  %9 = equal(%8, %0) : ?\n"
        "  return {%9}\n"
        "}\n");
    int alive = 0;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(f.run({vm::make_object<Probe>(alive)})[0].boolean());
    vm::collect_all_cycles();
    EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace lunaria::testing
