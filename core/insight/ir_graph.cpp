// Graphs of the IR as operators and edges, with the lines of the program that they come from.
#include <unordered_map>

#include "core/insight/operator_graph.h"
#include "core/ir/printer.h"
#include "core/ir/text.h"

namespace lunaria::insight {

namespace {

class Conversion {
  public:
    explicit Conversion(const CallForms& forms) : forms_(forms) {}

    OperatorGraph run(const ir::Graph& graph) {
        add(graph, "");
        for (const auto& [node, index] : waiting_) connect(*node, graph_.nodes[index]);
        return std::move(graph_);
    }

  private:
    using Node = ir::Node;

    void add(const ir::Graph& graph, const std::string& scope) {
        for (size_t i = 0; i < graph.parameters().size(); ++i) {
            const Node* p = graph.parameters()[i];
            const std::string name = p->name.empty() ? str('%', p->id) : p->name;
            if (i < graph.captures)
                captured_.emplace(p, name);
            else
                give(*p, {GivenValue::Kind::input, name, ir::to_string(p->type)});
        }
        for (const auto& node : graph.nodes())
            if (node->kind == ir::NodeKind::constant && !node->function)
                give(*node, {GivenValue::Kind::constant, str('%', node->id), text_of(node->constant)});
        for (const Node* node : graph.body()) add(*node, scope);
        for (const auto& inner : graph.inner()) add(*inner, scope.empty() ? inner->name : scope + "/" + inner->name);
    }

    void give(const Node& node, GivenValue value) {
        source_[&node] = {-1, false, static_cast<int32_t>(graph_.values.size())};
        graph_.values.push_back(std::move(value));
    }

    void add(const Node& node, const std::string& scope) {
        // The only result of a call, and what a program looks up, are no operators.
        if (is_lookup(node)) return;
        if (const Node* call = only_result_of(node)) {
            source_[&node] = source_[call];
            return;
        }
        const auto index = static_cast<int32_t>(graph_.nodes.size());
        source_[&node] = {index, false, -1};
        waiting_.emplace_back(&node, index);
        OperatorNode& made = graph_.nodes.emplace_back();
        made.name = str('%', node.id);
        made.scope = scope;
        made.type = type_of(node);
        if (node.type.kind != ir::NodeType::Kind::unknown) made.result = ir::to_string(node.type);
        if (node.span.line) made.line = ir::span_text(node.span);
        if (!node.name.empty()) made.attributes.emplace_back("variable", node.name);
        for (size_t i = 0; i < node.args.size(); ++i)
            if (std::string text = text_of(node.args[i]); !text.empty())
                made.attributes.emplace_back(str("argument ", i + 1), std::move(text));
    }

    // A field, by name, of a captured value, or of one of its fields: `ms.ops.relu`, `self.weight`.
    bool is_lookup(const Node& node) {
        if (node.kind != ir::NodeKind::call || node.op != forms_.index || node.args.size() != 2) return false;
        if (!node.args[0].is_node() || node.args[1].kind() != Value::Kind::string) return false;
        const auto from = captured_.find(node.args[0].node());
        if (from == captured_.end()) return false;
        captured_[&node] = (from->second == "_ENV" ? "" : from->second + ".") + node.args[1].string();
        return true;
    }

    const Node* only_result_of(const Node& node) const {
        if (node.kind != ir::NodeKind::call || node.op != forms_.result || node.args.size() != 2) return nullptr;
        if (!node.args[0].is_node() || text_of(node.args[1]) != "0") return nullptr;
        const Node* call = node.args[0].node();
        return source_.contains(call) ? call : nullptr;
    }

    // The captured function that a node calls.
    const Node* callee_of(const Node& node) const {
        if (node.kind != ir::NodeKind::call || node.op != forms_.call || node.args.empty() || !node.args[0].is_node())
            return nullptr;
        return captured_.contains(node.args[0].node()) ? node.args[0].node() : nullptr;
    }

    std::string type_of(const Node& node) const {
        if (node.kind == ir::NodeKind::item) return "item";
        if (const Node* callee = callee_of(node)) {
            const std::string& name = captured_.at(callee);
            return name.substr(name.rfind('.') + 1);
        }
        return node.op ? std::string(node.op->name()) : "call";
    }

    // Plain arguments as a text; nothing for those that are nodes.
    static std::string text_of(const Value& v) {
        switch (v.kind()) {
            case Value::Kind::node:
                return v.node()->function ? "function " + v.node()->function->name : "";
            case Value::Kind::number:
                return ir::number_text(v.number());
            case Value::Kind::string:
                return ir::quoted(v.string());
            case Value::Kind::tensor:
                return str(name_of(v.tensor().dtype()), v.tensor().shape());
            case Value::Kind::object:
                return "object";
            case Value::Kind::list: {
                std::string text;
                for (const Value& item : v.items())
                    if (std::string part = text_of(item); !part.empty()) text += (text.empty() ? "" : ", ") + part;
                return text.empty() ? text : "{" + text + "}";
            }
            default:
                return to_string(v);
        }
    }

    void connect(const Node& node, OperatorNode& made) {
        const Node* callee = callee_of(node);
        const auto use = [&](const Node* from) {
            if (from == callee || from->function) return;
            // A captured value is a given one when an operator uses it.
            if (const auto known = captured_.find(from); known != captured_.end() && !source_.contains(from))
                give(*from, {GivenValue::Kind::parameter, known->second, ir::to_string(from->type)});
            const auto source = source_.find(from);
            made.inputs.push_back(source == source_.end() ? OperatorNode::Input{} : source->second);
        };
        if (node.callee) use(node.callee);
        for (const Value& v : node.args) ir::for_each_node(v, use);
    }

    const CallForms forms_;
    OperatorGraph graph_;
    std::unordered_map<const Node*, OperatorNode::Input> source_;
    std::unordered_map<const Node*, std::string> captured_;  // and their fields, with their names
    std::vector<std::pair<const Node*, int32_t>> waiting_;
};

}  // namespace

OperatorGraph operator_graph_of(const ir::Graph& graph, const CallForms& forms) { return Conversion(forms).run(graph); }

}  // namespace lunaria::insight
