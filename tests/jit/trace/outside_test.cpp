// A record's questions to the outside and its effects there: tables, functions, errors.
#include <gtest/gtest.h>

#include "jit/trace/region.h"
#include "jit/vm/prelude.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using Kind = trace::Step::Kind;
using vm::PlainHost;

class OutsideTest : public CpuTest {};

// x * config.scale + config.shift[1]
constexpr const char* kConfigured =
    "graph f(%0 x: ?, %1 config: ?) {\n"
    "  %2 = index(%1, \"scale\") : ?\n"
    "  %3 = index(%1, \"shift\") : ?\n"
    "  %4 = index(%3, 1) : ?\n"
    "  %5 = mul(%0, %2) : ?\n"
    "  %6 = add(%5, %4) : ?\n"
    "  return {%6}\n"
    "}\n";

TEST_F(OutsideTest, fields_are_guards_of_the_record) {
    RecordedProgram f(kConfigured);
    const Value shift = PlainHost::table({{Value(1), floats({1, 1})}});
    const Value config = PlainHost::table({{Value("scale"), Value(2)}, {Value("shift"), shift}});
    for (int i = 0; i < 3; ++i) f.check({floats({1, 2}), config}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    f.host().raw_set(config, Value("scale"), Value(5));
    f.check({floats({1, 2}), config}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    f.host().raw_set(shift, Value(1), floats({7, 7}));
    f.check({floats({1, 2}), config}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    // A number that came in two values is open.
    f.host().raw_set(config, Value("scale"), Value(9));
    f.check({floats({1, 2}), config}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
}

TEST_F(OutsideTest, many_questions_to_known_tables_are_asked_as_one) {
    // The table is a capture, which is the same in all calls.
    TextProgram inner(
        "graph f(%0 t: ?, %1 x: ?) captures 1 {\n"
        "  %2 = index(%0, \"a\") : ?\n"
        "  %3 = index(%0, \"b\") : ?\n"
        "  %4 = index(%0, \"c\") : ?\n"
        "  %5 = mul(%1, %2) : ?\n"
        "  %6 = add(%5, %3) : ?\n"
        "  %7 = sub(%6, %4) : ?\n"
        "  return {%7}\n"
        "}\n");
    const Value t = PlainHost::table({{Value("a"), Value(2)}, {Value("b"), Value(true)}, {Value("c"), Value(4)}});
    inner.host().raw_set(t, Value("b"), Value(3));
    const Value f = vm::make_object<vm::Closure>(vm::function_of(inner.graph()), nullptr, vm::Values{t});
    trace::PlainFunction recorded(inner.host(), f);
    const std::vector<Value> args{floats({1, 2})};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(recorded.call(args)[0].tensor().at(1), 3);
    EXPECT_EQ(recorded.compiled().recorded, 1);
    size_t asked_as_one = 0;
    const trace::Block& root = recorded.compiled().tree.root;
    for (const auto& group : root.groups) asked_as_one += group.guards.checks().size();
    for (const auto& region : root.regions) asked_as_one += region->guards.checks().size();
    EXPECT_GE(asked_as_one, 4u);  // the table and its three fields
    inner.host().raw_set(t, Value("c"), Value(5));
    EXPECT_EQ(recorded.call(args)[0].tensor().at(1), 2);
    EXPECT_EQ(recorded.compiled().recorded, 2);
}

TEST_F(OutsideTest, a_table_is_written_at_each_call) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 log: ?) {\n"
        "  %2 = length(%1) : ?\n"
        "  %3 = add(%2, 1) : ?\n"
        "  %4 = ops.exp(%0) : ?\n"
        "  %5 = set_index(%1, %3, %4) : ?\n"
        "  return {%3}\n"
        "}\n");
    const Value log = PlainHost::table({});
    for (int64_t i = 1; i <= 6; ++i) {
        EXPECT_EQ(f.call({floats({1, 2}), log})[0].integer(), i);
        EXPECT_EQ(f.host().length(log).integer(), i);
    }
    EXPECT_LE(f.recordings(), 2);
    EXPECT_GE(f.runs(), 4);
    EXPECT_GE(f.steps(Kind::raw_set), 1);
}

TEST_F(OutsideTest, an_effect_before_a_side_exit_happens_once) {
    // The count is written before the branch that gives something new.
    RecordedProgram f(
        "graph f(%0 x: ?, %1 t: ?) {\n"
        "  graph f.then(%2 x: ?) {\n"
        "    %3 = ops.neg(%2) : ?\n"
        "    return {%3}\n"
        "  }\n"
        "  graph f.else(%4 x: ?) {\n"
        "    %5 = ops.exp(%4) : ?\n"
        "    return {%5}\n"
        "  }\n"
        "  %6 = index(%1, \"count\") : ?\n"
        "  %7 = add(%6, 1) : ?\n"
        "  %8 = set_index(%1, \"count\", %7) : ?\n"
        "  %99 = call(ops.sum, {%0}) : ?\n"
        "  %9 = result(%99, 0) : ?\n"
        "  %10 = less(%9, 0) : ?\n"
        "  %11 = branch(%10, @f.then, {%0}, @f.else, {%0}) : ?\n"
        "  return %11\n"
        "}\n");
    const Value t = PlainHost::table({{Value("count"), Value(0)}});
    int64_t calls = 0;
    for (double a : {1.0, 2.0, -3.0, 4.0, -5.0, 6.0}) {
        const Value got = f.call({floats({a}), t})[0];
        const Value other = PlainHost::table({{Value("count"), Value(0)}});
        EXPECT_EQ(got.tensor().at(0), f.eager({floats({a}), other})[0].tensor().at(0));
        EXPECT_EQ(f.host().raw_get(t, Value("count")).integer(), ++calls);
    }
    EXPECT_GE(f.compiled().resumed, 1);
    EXPECT_GE(f.runs(), 2);
}

TEST_F(OutsideTest, a_function_of_the_outside_is_called_once_in_each_call) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 g: ?) {\n"
        "  %2 = ops.neg(%0) : ?\n"
        "  %3 = call(%1, {%2}) : ?\n"
        "  %4 = result(%3, 0) : ?\n"
        "  %5 = ops.exp(%4) : ?\n"
        "  return {%5}\n"
        "}\n");
    int calls = 0;
    const Value g = PlainHost::function("g", Native::unknown, [&](std::span<const Value> args) {
        ++calls;
        return vm::Values{run(registry().get("abs"), args)};
    });
    for (int i = 1; i <= 4; ++i) {
        EXPECT_EQ(f.call({floats({0, 0}), g})[0].tensor().at(0), 1);
        EXPECT_EQ(calls, i);
    }
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.steps(Kind::call), 1);
}

TEST_F(OutsideTest, an_error_of_the_outside_that_the_program_meets_is_a_way_of_the_record) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 pcall: ?, %2 g: ?) {\n"
        "  %3 = call(%1, {%2, %0}) : ?\n"
        "  %4 = result(%3, 0) : ?\n"
        "  %5 = result(%3, 1) : ?\n"
        "  return {%4, %5}\n"
        "}\n");
    const Value pcall = function_value(vm::prelude(vm::Prelude::pcall));
    const Value g = PlainHost::function("g", Native::unknown, [](std::span<const Value> args) -> vm::Values {
        if (args[0].tensor().at(0) > 2) throw argument_error("g", "too large");
        return {args[0]};
    });
    for (double x : {1.0, 3.0, 1.5, 4.0, 2.0}) {
        const std::vector<Value> got = f.call({floats({x}), pcall, g});
        EXPECT_EQ(got[0].boolean(), x <= 2);
        EXPECT_EQ(got[1].kind(), x <= 2 ? Value::Kind::tensor : Value::Kind::string);
    }
    EXPECT_GE(f.runs(), 2);
}

TEST_F(OutsideTest, a_pure_function_of_known_values_is_no_part_of_the_record) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 g: ?) {\n"
        "  %2 = call(%1, {3}) : ?\n"
        "  %3 = result(%2, 0) : ?\n"
        "  %4 = mul(%0, %3) : ?\n"
        "  return {%4}\n"
        "}\n");
    int calls = 0;
    const Value g = PlainHost::function("g", Native::pure, [&](std::span<const Value> args) {
        ++calls;
        return vm::Values{Value(args[0].integer() * 2)};
    });
    for (int i = 0; i < 4; ++i) EXPECT_EQ(f.call({floats({1, 2}), g})[0].tensor().at(1), 12);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(f.steps(Kind::call), 0);
}

TEST_F(OutsideTest, an_error_of_the_outside_has_the_place_of_the_call) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 g: ?) {\n"
        "  %2 = ops.neg(%0) : ?\n"
        "  %3 = call(%1, {%2}) : ?  -- train.lua:7\n"
        "  return {%2}\n"
        "}\n");
    bool fails = false;
    const Value g = PlainHost::function("g", Native::unknown, [&](std::span<const Value>) -> vm::Values {
        if (fails) throw argument_error("g", "it fails");
        return {};
    });
    for (int i = 0; i < 2; ++i) EXPECT_EQ(f.error({floats({1}), g}), "no error");
    fails = true;
    EXPECT_NE(f.error({floats({1}), g}).find("train.lua:7: "), std::string::npos);
    fails = false;
    EXPECT_EQ(f.error({floats({1}), g}), "no error");
}

TEST_F(OutsideTest, a_table_that_the_call_makes_is_another_one_each_time) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.exp(%0) : ?\n"
        "  %2 = table({\"y\", \"n\"}, {%1, 3}, 0, nil) : ?\n"
        "  %3 = set_index(%2, \"n\", 4) : ?\n"
        "  return {%2}\n"
        "}\n");
    std::vector<Value> made;
    for (int i = 0; i < 3; ++i) {
        made.push_back(f.call({floats({0})})[0]);
        ASSERT_TRUE(f.host().is_table(made.back()));
        EXPECT_EQ(f.host().raw_get(made.back(), Value("n")).integer(), 4);
        EXPECT_EQ(f.host().raw_get(made.back(), Value("y")).tensor().at(0), 1);
    }
    EXPECT_NE(made[1].object(), made[2].object());
    EXPECT_EQ(f.runs(), 2);
    EXPECT_EQ(f.steps(Kind::make), 1);
}

TEST_F(OutsideTest, methods_are_found_by_metatables) {
    TextProgram scaled(
        "graph scaled(%0 self: ?, %1 x: ?) {\n"
        "  %2 = index(%0, \"scale\") : ?\n"
        "  %3 = mul(%1, %2) : ?\n"
        "  return {%3}\n"
        "}\n");
    RecordedProgram f(
        "graph f(%0 object: ?, %1 x: ?) {\n"
        "  %2 = index(%0, \"scaled\") : ?\n"
        "  %3 = call(%2, {%0, %1}) : ?\n"
        "  %4 = result(%3, 0) : ?\n"
        "  return {%4}\n"
        "}\n");
    const Value library = PlainHost::table({{Value("scaled"), scaled.function()}});
    const Value meta = PlainHost::table({{Value("__index"), library}});
    const Value object = PlainHost::table({{Value("scale"), floats({2, 3})}}, meta);
    for (int i = 0; i < 3; ++i) f.check({object, floats({1, 10})}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.runs(), 2);
    // A field of its own comes before that of the library.
    f.host().raw_set(
        object, Value("scaled"),
        PlainHost::function("own", Native::unknown, [](std::span<const Value> args) { return vm::Values{args[1]}; }));
    EXPECT_EQ(f.call({object, floats({1, 10})})[0].tensor().at(1), 10);
    EXPECT_EQ(f.recordings(), 2);
}

TEST_F(OutsideTest, a_table_is_gone_through_in_its_order) {
    // The sum over next(t).
    RecordedProgram f(
        "graph f(%0 t: ?, %1 next: ?) {\n"
        "  graph f.loop(%2 t: ?, %3 next: ?, %4 key: ?, %5 sum: ?) {\n"
        "    %6 = call(%3, {%2, %4}) : ?\n"
        "    %7 = result(%6, 0) : ?\n"
        "    %8 = equal(%7, nil) : ?\n"
        "    %9 = branch(%8, @f.end, {%5}, @f.body, {%2, %3, %7, %5}) : ?\n"
        "    return %9\n"
        "  }\n"
        "  graph f.body(%10 t: ?, %11 next: ?, %12 key: ?, %13 sum: ?) {\n"
        "    %14 = index(%10, %12) : ?\n"
        "    %15 = add(%13, %14) : ?\n"
        "    %16 = @f.loop(%10, %11, %12, %15) : ?\n"
        "    return %16\n"
        "  }\n"
        "  graph f.end(%17 sum: ?) {\n"
        "    return {%17}\n"
        "  }\n"
        "  %18 = @f.loop(%0, %1, nil, 0) : ?\n"
        "  return %18\n"
        "}\n");
    const Value next = PlainHost::function("next", Native::next_key, [](std::span<const Value> args) {
        return vm::Values{vm::object_as<PlainHost::Table>(args[0])->next(args[1])};
    });
    const Value t = PlainHost::table({{Value("a"), floats({1, 2})}, {Value("b"), floats({3, 4})}});
    for (int i = 0; i < 3; ++i) f.check({t, next}, __LINE__);
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.steps(Kind::next), 3);
    f.host().raw_set(t, Value("c"), floats({10, 20}));
    f.check({t, next}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
    f.host().raw_set(t, Value("c"), Value());
    f.check({t, next}, __LINE__);
    EXPECT_EQ(f.recordings(), 2);
}

TEST_F(OutsideTest, a_parameter_is_updated_in_place_at_each_call) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 net: ?) {\n"
        "  %2 = index(%1, \"weight\") : ?\n"
        "  %3 = mul(%2, %0) : ?\n"
        "  %4 = mul(%3, 0.5) : ?\n"
        "  %5 = sub(%2, %4) : ?\n"
        "  %6 = ops.assign(%2, %5) : ?\n"
        "  return {%3}\n"
        "}\n");
    Tensor weight = Tensor::full(DType::f32, {2}, 1);
    weight.set_parameter({"weight", true});
    const Value net = PlainHost::table({{Value("weight"), Value(weight)}});
    double expected = 1;
    for (int i = 0; i < 5; ++i) {
        f.call({floats({1, 1}), net});
        expected *= 0.5;
        EXPECT_EQ(weight.at(0), expected);
    }
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.graphs(), 1);
}

TEST_F(OutsideTest, errors_of_operators_name_the_operator_and_its_place) {
    RecordedProgram f(
        "graph f(%0 x: ?, %1 i: ?) {\n"
        "  %92 = call(ops.gather, {%0, %1, 0}) : ?  -- net.lua:3\n"
        "  %2 = result(%92, 0) : ?\n"
        "  return {%2}\n"
        "}\n");
    const auto at = [](int64_t i) { return Value(Tensor::full(DType::i64, {1}, static_cast<double>(i))); };
    for (int i = 0; i < 3; ++i) f.check({floats({1, 2}), at(i % 2)}, __LINE__);
    const std::string message = f.error({floats({1, 2}), at(9)});
    EXPECT_NE(message.find("net.lua:3"), std::string::npos) << message;
    EXPECT_NE(message.find("gather"), std::string::npos) << message;
    f.check({floats({1, 2}), at(1)}, __LINE__);
}

}  // namespace
}  // namespace lunaria::testing
