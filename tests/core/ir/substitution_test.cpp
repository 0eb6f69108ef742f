#include "core/ir/substitution.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ir/printer.h"
#include "core/operator/op.h"

namespace lunaria::ir {
namespace {

NodeType f32() { return NodeType::of({DType::f32, {}}); }

// x * x + 2.5, beside x.
struct Sample {
    Graph graph{"f"};
    Sample() {
        Value x(graph.add_parameter("x", f32()));
        Value square(graph.add_call(registry().get("mul"), {x, x}, f32()));
        Value constant(graph.add_constant(Value(Tensor::scalar(DType::f32, 2.5))));
        graph.result = Value::list({Value(graph.add_call(registry().get("add"), {square, constant}, f32())), x});
    }
};

TEST(Substitution, copies_a_graph_into_another_one_with_each_constant_once) {
    const Sample sample;
    Graph to("g");
    Substitution copied(&to);
    copied[sample.graph.parameters()[0]] = Value(to.add_parameter("y", f32()));
    for (int times = 0; times < 2; ++times)
        for (const Node* node : sample.graph.body()) copied[node] = copied.copy(*node);
    to.result = copied(sample.graph.result);
    EXPECT_EQ(print(to),
              "graph g(%0 y: float32()) {\n"
              "  %2 = float32() {2.5}\n"
              "  %1 = ops.mul(%0, %0)                   : float32()\n"
              "  %3 = ops.add(%1, %2)                   : float32()\n"
              "  %4 = ops.mul(%0, %0)                   : float32()\n"
              "  %5 = ops.add(%4, %2)                   : float32()\n"
              "  return {%5, %0}\n"
              "}\n");
}

TEST(Substitution, an_item_of_a_list_is_what_the_list_holds) {
    Graph from("f"), to("g");
    Node* list = from.add_parameter("list", NodeType::list({f32(), f32()}));
    Node* second = from.add_item(*list, 1);
    Substitution copied(&to);
    copied[list] = Value::list({Value(1), Value(2)});
    EXPECT_EQ(copied.copy(*second).integer(), 2);
}

TEST(Substitution, a_node_that_nothing_stands_for_is_an_error) {
    const Sample sample;
    Substitution values;
    EXPECT_THROW(values(sample.graph.result), Error);
}

TEST(Substitution, a_replay_runs_the_operators_with_other_operands_and_the_values_of_constants) {
    const Sample sample;
    const Value ten[] = {Value(10)};
    std::string calls;
    const Value result = replay(
        sample.graph, ten,
        [&](const Op& op, const std::vector<Value>& args) {
            (calls += op.name()) += " ";
            return args[1].is_tensor() ? Value(args[0].integer() + 1) : Value(args[0].integer() * args[1].integer());
        },
        [](const Value& results, size_t i) { return results.items().at(i); });
    EXPECT_EQ(calls, "mul add ");
    EXPECT_EQ(result.items().at(0).integer(), 101);
    EXPECT_EQ(result.items().at(1).integer(), 10);
}

}  // namespace
}  // namespace lunaria::ir
