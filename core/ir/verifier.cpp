#include "core/ir/verifier.h"

#include <unordered_set>

#include "core/ir/builder.h"
#include "core/ir/printer.h"

namespace lunaria::ir {

namespace {

class Verifier {
  public:
    void check(const Graph& graph) {
        for (const Node* p : graph.parameters()) made_.insert(p);
        for (const Node* node : graph.body()) {
            for (const Value& arg : node->args) operands(graph, *node, arg);
            if (node->callee) operands(graph, *node, Value(node->callee));
            if (node->kind == NodeKind::call && node->op) call(graph, *node);
            made_.insert(node);
        }
        if (graph.result.is_nil()) fail(graph, "has no result");
        for_each_node(graph.result, [&](Node* n) { visible(graph, *n, "the result"); });
        // An inner graph may use anything of this body: it runs where it is called.
        for (auto& inner : graph.inner()) check(*inner);
    }

  private:
    [[noreturn]] static void fail(const Graph& graph, const std::string& what) {
        throw state_error("ir", str("graph ", graph.name, ": ", what));
    }
    void operands(const Graph& graph, const Node& user, const Value& v) {
        for_each_node(v, [&](Node* n) { visible(graph, *n, str("%", user.id)); });
    }
    void visible(const Graph& graph, const Node& node, const std::string& user) {
        if (!node.graph().encloses(graph))
            fail(graph, str(user, " uses %", node.id, " of graph ", node.graph().name, ", which it cannot see"));
        if (node.kind != NodeKind::constant && !made_.contains(&node))
            fail(graph, str(user, " uses %", node.id, " before it is made"));
    }
    static void call(const Graph& graph, const Node& node) {
        if (node.args.size() != node.op->signature.params.size())
            fail(graph, str("%", node.id, ": ", node.op->name(), " has ", node.args.size(), " arguments, not ",
                            node.op->signature.params.size()));
        if (node.type.kind == NodeType::Kind::unknown) return;  // a primitive of the language, or not specialised yet
        NodeType type = infer_call(*node.op, node.args);
        if (!(type == node.type))
            fail(graph,
                 str("%", node.id, ": ", node.op->name(), " gives ", to_string(type), ", not ", to_string(node.type)));
    }

    std::unordered_set<const Node*> made_;
};

}  // namespace

void verify(const Graph& graph) { Verifier().check(graph); }

}  // namespace lunaria::ir
