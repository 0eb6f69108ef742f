#include "core/ir/verifier.h"

#include <unordered_set>

#include "core/ir/builder.h"
#include "core/ir/printer.h"

namespace lunaria::ir {

namespace {

class Verifier {
  public:
    void check(const Graph& graph) {
        if (graph.captures + graph.variadic > graph.parameters().size())
            fail(graph, str("has ", graph.captures, " captures", graph.variadic ? " and a list of arguments" : "",
                            ", but ", graph.parameters().size(), " parameters"));
        for (auto& node : graph.nodes())
            if (!ids_.insert(node->id).second) fail(graph, str("there are two nodes %", node->id));
        for (const Node* p : graph.parameters()) made_.insert(p);
        for (const Node* node : graph.body()) {
            for (const Value& arg : node->args) operands(graph, *node, arg);
            if (node->callee) operands(graph, *node, Value(node->callee));
            if (node->kind == NodeKind::call) {
                if (node->op) call(graph, *node);
                flow(graph, *node);
            }
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
        // A primitive of the language has no inference rule to compare with, nor has a call that is not specialised
        // yet.
        if (node.type.kind == NodeType::Kind::unknown || (!node.op->infer_fn && !node.op->expand_fn)) return;
        // Where a size is a node, the type is that of an example.
        bool open = false;
        for (size_t i = 0; i < node.args.size(); ++i)
            if (!is_tensor_type(node.op->signature.params[i].type))
                for_each_node(node.args[i], [&](Node*) { open = true; });
        if (open) return;
        const NodeType type = infer_call(*node.op, node.args);
        if (!(type == node.type))
            fail(graph,
                 str("%", node.id, ": ", node.op->name(), " gives ", to_string(type), ", not ", to_string(node.type)));
    }

    // Blocks jump to each other by calls of graphs and by `branch`, which only the last node may do.
    static void flow(const Graph& graph, const Node& node) {
        const bool jump = node.callee && node.callee->function;
        const bool branch = node.op && node.op->is_branch;
        if (node.op && node.op->is_closure && node.args[0].is_node() && node.args[0].node()->function &&
            node.args[1].is_list()) {
            const Graph& f = *node.args[0].node()->function;
            if (node.args[1].items().size() != f.captures)
                fail(graph, str("%", node.id, ": function ", f.name, " captures ", f.captures, " values, not ",
                                node.args[1].items().size()));
        }
        if (!jump && !branch) return;
        if (&node != graph.body().back() || !graph.result.is_node() || graph.result.node() != &node)
            fail(graph, str("%", node.id, " goes on to another graph, but is not the last node and the result"));
        if (jump) return target(graph, node, *node.callee, node.args.size());
        for (size_t i : {1, 3}) {
            if (!node.args[i].is_node() || !node.args[i].node()->function || !node.args[i + 1].is_list())
                fail(graph, str("%", node.id, ": a branch has graphs and lists of their arguments"));
            target(graph, node, *node.args[i].node(), node.args[i + 1].items().size());
        }
    }
    static void target(const Graph& graph, const Node& node, const Node& callee, size_t count) {
        const Graph& next = *callee.function;
        if (next.parameters().size() != count)
            fail(graph, str("%", node.id, ": graph ", next.name, " has ", next.parameters().size(), " parameters, not ",
                            count));
    }

    std::unordered_set<const Node*> made_;
    std::unordered_set<int> ids_;
};

}  // namespace

void verify(const Graph& graph) { Verifier().check(graph); }

}  // namespace lunaria::ir
