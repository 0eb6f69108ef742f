// A call as one graph, and calls on trial.
#include "jit/trace/whole.h"

#include <gtest/gtest.h>

#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "tests/backends/graph_tools.h"
#include "tests/jit/trace/recorded_program.h"

namespace lunaria::testing {
namespace {

using Kind = trace::Step::Kind;
using vm::PlainHost;

class WholeCallTest : public CpuTest {};

// A step of descent: the loss of state.weight at x, from which the gradient's part is taken off, and a count of steps.
constexpr const char* kStep =
    "graph f(%0 x: ?, %1 state: ?) {\n"
    "  %2 = index(%1, \"weight\") : ?\n"
    "  %3 = mul(%0, %2) : ?\n"
    "  %4 = ops.sum(%3, nil, false, nil) : ?\n"
    "  %5 = mul(%0, 0.5) : ?\n"
    "  %6 = ops.assign_sub(%2, %5) : ?\n"
    "  %7 = index(%1, \"count\") : ?\n"
    "  %8 = add(%7, 1) : ?\n"
    "  %9 = set_index(%1, \"count\", %8) : ?\n"
    "  return {%4}\n"
    "}\n";

trace::Found found(const trace::Step& step) {
    return {step.kind == Kind::argument ? "x" : to_string(step.args()[1]), {}};
}

Value state() { return PlainHost::table({{Value("weight"), floats({1, 2, 3})}, {Value("count"), Value(7)}}); }

TEST_F(WholeCallTest, computes_what_the_call_does_and_writes_what_it_writes) {
    RecordedProgram f(kStep);
    const Value s = state(), x = floats({4, 5, 6});
    const Value expected = f.call({x, s})[0];
    const auto graph = trace::whole_call(f.host(), f.compiled().tree, found);
    ir::verify(*graph);
    const std::string text = ir::print(*graph);
    EXPECT_EQ(text.find("expect("), std::string::npos) << text;
    EXPECT_NE(text.find("raw_set"), std::string::npos) << text;
    // The effect on the table is not for the evaluation of operators.
    std::vector<ir::Node*> operators;
    for (ir::Node* node : graph->body())
        if (node->op->name() != "raw_set" && node->op->name() != "add") operators.push_back(node);
    graph->reorder_body(operators);
    std::vector<Value> args;
    const Value weight = floats({1, 2, 3});
    for (const ir::Node* p : graph->parameters())
        args.push_back(p->name == "x" ? x : p->name == "\"weight\"" ? weight : s);
    const Value results = evaluate(*graph, args);
    EXPECT_TRUE(has_same_bits(results.items()[0], expected));
    EXPECT_TRUE(has_same_bits(weight, f.host().raw_get(s, Value("weight"))));
}

TEST_F(WholeCallTest, a_trial_changes_nothing_and_later_calls_run_its_record) {
    RecordedProgram f(kStep);
    const Value s = state(), x = floats({4, 5, 6});
    f.compiled().trial = true;
    f.call({x, s});
    EXPECT_TRUE(has_same_bits(f.host().raw_get(s, Value("weight")), floats({1, 2, 3})));
    EXPECT_EQ(f.host().raw_get(s, Value("count")).integer(), 7);
    f.compiled().trial = false;
    f.call({x, s});
    EXPECT_EQ(f.recordings(), 1);
    EXPECT_EQ(f.runs(), 1);
    EXPECT_EQ(f.host().raw_get(s, Value("count")).integer(), 8);
    EXPECT_TRUE(has_same_bits(f.host().raw_get(s, Value("weight")), floats({-1, -0.5, 0})));
}

TEST_F(WholeCallTest, sizes_that_differ_are_nodes) {
    RecordedProgram f(
        "graph f(%0 x: ?) {\n"
        "  %1 = ops.exp(%0) : ?\n"
        "  %2 = ops.reshape(%1, {-1}) : ?\n"
        "  return {%2}\n"
        "}\n");
    f.compiled().trial = true;
    for (int64_t rows : {5, 7, 11, 13})
        f.call({floats(std::vector<double>(static_cast<size_t>(rows) * 2, 1.0), {rows, 2})});
    f.compiled().trial = false;
    const int64_t before = f.recordings();
    f.check({floats({1, 2, 3, 4, 5, 6}, {3, 2})}, __LINE__);
    f.check({floats({1, 2, 3, 4}, {2, 2})}, __LINE__);
    EXPECT_EQ(f.recordings(), before);
    const TensorType example{DType::f32, {13, 2}};
    const auto graph = trace::whole_call(f.host(), f.compiled().tree, [&](const trace::Step&) {
        return trace::Found{"x", example};
    });
    ir::verify(*graph);
    ASSERT_EQ(graph->parameters().size(), 1U);
    EXPECT_EQ(graph->parameters()[0]->type.tensor, example);
    EXPECT_NE(ir::print(*graph).find("float32(26)"), std::string::npos) << ir::print(*graph);
}

}  // namespace
}  // namespace lunaria::testing
