#include "core/ir/graph.h"

#include <gtest/gtest.h>

#include "core/ir/printer.h"
#include "core/ir/verifier.h"

namespace lunaria::ir {
namespace {

NodeType f32(Shape shape) { return NodeType::of({DType::f32, shape}); }

TEST(Graph, free_variables_are_what_inner_graphs_use_of_outer_ones) {
    Graph f("f");
    Node* x = f.add_parameter("x", f32({2}));
    Graph& g = f.add_inner("g");
    Node* y = g.add_parameter("y", f32({2}));
    Node* callee = g.add_function(f);
    g.result = Value(g.add_call(*callee, {Value(x), Value::list({Value(y)})}, {}));
    EXPECT_EQ(g.free_variables(), std::vector<Node*>{x});
    EXPECT_TRUE(f.free_variables().empty());
}

TEST(Graph, ids_are_unique_through_the_whole_tree) {
    Graph f("f");
    Node* a = f.add_parameter("a", {});
    Node* b = f.add_inner("g").add_parameter("b", {});
    Node* c = f.add_parameter("c", {});
    EXPECT_EQ(std::vector<int>({a->id, b->id, c->id}), std::vector<int>({0, 1, 2}));
}

TEST(Graph, prints_parameters_constants_items_and_lines) {
    Graph f("f");
    Node* x = f.add_parameter("x", NodeType::list({f32({2}), f32({})}));
    Node* item = f.add_item(*x, 1);
    item->span = {std::make_shared<const std::string>("demo.lua"), 3, 1};
    f.add_constant(Value(Tensor::scalar(DType::f32, 2.5)));
    f.result = Value(item);
    EXPECT_EQ(print(f),
              "graph f(%0 x: {float32(2), float32()}) {\n"
              "  %2 = float32() {2.5}\n"
              "  %1 = %0[1]                             : float32()  -- demo.lua:3\n"
              "  return %1\n"
              "}\n");
}

// Three calls in a row, the last of which is the result.
std::vector<Node*> add_chain(Graph& graph, Node* x) {
    std::vector<Node*> chain;
    for (int i = 0; i < 3; ++i) {
        const Value operand(chain.empty() ? x : chain.back());
        chain.push_back(graph.add_call(registry().get("relu"), {operand}, f32({2})));
    }
    graph.result = Value(chain.back());
    return chain;
}

TEST(Graph, a_node_that_was_made_without_a_graph_comes_at_its_end) {
    Graph f("f");
    Node* x = f.add_parameter("x", f32({2}));
    auto loose = std::make_unique<Node>(NodeKind::call);
    loose->op = &registry().get("relu");
    loose->args = {Value(x)};
    loose->type = f32({2});
    Node* y = f.append(std::move(loose));
    f.result = Value(y);
    verify(f);
    EXPECT_EQ(f.body(), std::vector<Node*>{y});
    EXPECT_EQ(&y->graph(), &f);
    EXPECT_EQ(y->id, 1);
}

TEST(Graph, is_as_before_when_what_was_split_off_is_joined) {
    Graph f("f");
    Node* x = f.add_parameter("x", f32({2}));
    const std::vector<Node*> chain = add_chain(f, x);
    Graph& inside = f.add_inner("inside");
    inside.result = Value(inside.add_call(registry().get("relu"), {Value(chain[1])}, f32({2})));
    const std::string before = print(f);
    Graph& tail = f.split(*chain[1], "tail");
    f.result = Value(chain[0]);
    verify(f);
    EXPECT_EQ(f.body(), std::vector<Node*>{chain[0]});
    EXPECT_EQ(tail.body(), (std::vector<Node*>{chain[1], chain[2]}));
    EXPECT_EQ(tail.result.node(), chain[2]);
    EXPECT_EQ(&chain[2]->graph(), &tail);
    EXPECT_EQ(inside.parent, &tail);
    EXPECT_EQ(tail.free_variables(), std::vector<Node*>{chain[0]});
    f.join(tail);
    verify(f);
    EXPECT_EQ(inside.parent, &f);
    EXPECT_EQ(print(f), before);
}

TEST(Graph, loses_its_end_and_its_result_when_that_is_erased) {
    Graph f("f");
    const std::vector<Node*> chain = add_chain(f, f.add_parameter("x", f32({2})));
    f.erase_from(*chain[1]);
    EXPECT_EQ(f.body(), std::vector<Node*>{chain[0]});
    EXPECT_EQ(f.nodes().size(), 2u);
    EXPECT_TRUE(f.result.is_nil());
}

TEST(Verifier, refuses_a_graph_without_a_result) {
    Graph f("f");
    EXPECT_THROW(verify(f), Error);
}

TEST(Verifier, refuses_a_node_of_an_inner_graph) {
    Graph f("f");
    Node* inside = f.add_inner("g").add_parameter("y", f32({2}));
    f.inner()[0]->result = Value(inside);
    f.result = Value(inside);
    try {
        verify(f);
        FAIL();
    } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("cannot see"), std::string::npos) << e.what();
    }
}

TEST(Verifier, accepts_a_closure_over_an_outer_parameter) {
    Graph f("f");
    Node* x = f.add_parameter("x", f32({2}));
    Graph& g = f.add_inner("g");
    g.result = Value(x);
    f.result = Value(f.add_call(*f.add_function(g), {}, {}));
    EXPECT_NO_THROW(verify(f));
}

std::string complaint_about(const Graph& graph) {
    try {
        verify(graph);
    } catch (const Error& e) {
        return e.what();
    }
    return "none";
}

TEST(Verifier, refuses_a_call_of_a_graph_that_is_not_last) {
    Graph f("f");
    Graph& g = f.add_inner("g");
    g.result = Value(1);
    Node* call = f.add_call(*f.add_function(g), {}, {});
    f.result = Value::list({Value(call)});
    EXPECT_NE(complaint_about(f).find("not the last node"), std::string::npos);
    f.result = Value(call);
    EXPECT_EQ(complaint_about(f), "none");
    Node* item = f.add_item(*call, 0);
    EXPECT_NE(complaint_about(f).find("not the last node"), std::string::npos);
    f.result = Value(item);
    EXPECT_NE(complaint_about(f).find("not the last node"), std::string::npos);
}

TEST(Verifier, refuses_another_number_of_arguments_than_the_graph_has_parameters) {
    Graph f("f");
    Graph& g = f.add_inner("g");
    g.result = Value(g.add_parameter("x", {}));
    f.result = Value(f.add_call(*f.add_function(g), {}, {}));
    EXPECT_NE(complaint_about(f).find("graph g has 1 parameters, not 0"), std::string::npos);
}

TEST(Verifier, refuses_more_captures_than_parameters) {
    Graph f("f");
    f.add_parameter("x", {});
    f.result = Value(1);
    f.captures = 1;
    EXPECT_EQ(complaint_about(f), "none");
    f.variadic = true;
    EXPECT_NE(complaint_about(f).find("1 captures and a list of arguments, but 1 parameters"), std::string::npos);
}

TEST(Verifier, refuses_two_nodes_of_one_number) {
    Graph f("f");
    f.add_parameter("x", {});
    f.add_parameter("y", {})->id = 0;
    f.result = Value(1);
    EXPECT_NE(complaint_about(f).find("two nodes %0"), std::string::npos);
}

TEST(Graph, an_item_beyond_the_list_is_an_error) {
    Graph f("f");
    Node* x = f.add_parameter("x", NodeType::list({f32({2})}));
    EXPECT_THROW(f.add_item(*x, 1), Error);
}

TEST(Graph, types_with_another_placement_differ_and_copies_keep_theirs) {
    const int somewhere = 0;
    TensorType placed{DType::f32, {2}};
    placed.placement = reinterpret_cast<const Distribution*>(&somewhere);
    EXPECT_FALSE(NodeType::of(placed) == f32({2}));
    EXPECT_FALSE(NodeType::list({NodeType::of(placed)}) == NodeType::list({f32({2})}));
    Graph f("f"), g("g");
    const Node* x = f.add_parameter("x", NodeType::of(placed));
    EXPECT_EQ(g.add_parameter("x", x->type)->tensor_type(), placed);

    Tensor t = Tensor::zeros(DType::f32, {2});
    EXPECT_TRUE(type_of(Value(t)) == TensorType(f32({2}).tensor));
    t.set_parameter({"x", true, placed.placement});
    EXPECT_TRUE(type_of(Value(t)) == placed);
    EXPECT_TRUE(g.add_constant(Value(t))->type == NodeType::of(placed));
    EXPECT_TRUE(type_of(Value(t.view({1, 2}, {2, 1}, 0))) == f32({1, 2}).tensor);
}

}  // namespace
}  // namespace lunaria::ir
