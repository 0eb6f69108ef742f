#include <algorithm>

#include "core/ir/labels.h"
#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"
#include "core/ir/text.h"

namespace lunaria::ir {

namespace {

using namespace mindir;

std::string operator_name(const Op& op) {
    return (registry().find(op.name()) == &op ? "ops." : "") + std::string(op.name());
}

// The attribute for a value that other programs' files do not have.
Attribute own_attribute(const Value& v) {
    Attribute a;
    if (v.kind() == Value::Kind::dtype) {
        a.kind = Kind::dtype;
        a.strings.emplace_back(name_of(v.dtype()));
        return a;
    }
    const Object* object = v.kind() == Value::Kind::object ? v.object() : nullptr;
    a.kind = Kind::primitive;
    if (const auto* holder = dynamic_cast<const OperatorHolder*>(object))
        a.strings.push_back(operator_name(holder->held()));
    else if (const auto* name = dynamic_cast<const NameHolder*>(object))
        a.strings.push_back(str("function:", name->held_name()));
    else
        throw state_error("mindir", "the graph holds an object that a file cannot hold");
    return a;
}

Attribute attribute(std::string name, const Value& v) {
    return attribute_of(std::move(name), v, {Kind::float64, Kind::tensor, own_attribute});
}

// Whether the value, or an item of the list, has an entry of its own in the file.
bool has_parts(const Value& v) {
    if (v.is_list()) return std::ranges::any_of(v.items(), has_parts);
    return v.is_node() || v.kind() == Value::Kind::object;
}

class ModelWriter {
  public:
    explicit ModelWriter(const Graph& graph) : labels_(graph) {}

    Model run() {
        for (const Graph* graph : labels_.whole) write(*graph, "");
        model_.ir_version = "1.1";
        model_.producer = "Lunaria";
        model_.graph = std::move(entries_.front());
        model_.functions.assign(std::make_move_iterator(entries_.begin() + 1), std::make_move_iterator(entries_.end()));
        return std::move(model_);
    }

  private:
    void write(const Graph& graph, const std::string& parent) {
        const std::string label = labels_.in_order[next_label_++];
        label_[&graph] = label;
        const size_t at = entries_.size();
        entries_.emplace_back();
        GraphEntry entry = entry_for(graph, label, parent);
        entries_[at] = std::move(entry);
        for (auto& inner : graph.inner()) write(*inner, label);
    }

    GraphEntry entry_for(const Graph& graph, const std::string& label, const std::string& parent) {
        GraphEntry entry;
        entry_ = &entry;
        entry.name = label;
        entry.attributes.push_back(attribute("name", Value(graph.name)));
        if (!parent.empty()) entry.attributes.push_back(attribute("parent", Value(parent)));
        if (graph.captures)
            entry.attributes.push_back(attribute("captures", Value(static_cast<int64_t>(graph.captures))));
        if (graph.variadic) entry.attributes.push_back(attribute("variadic", Value(1)));
        if (graph.order) entry.attributes.push_back(attribute("order", Value(graph.order)));
        if (graph.span.line) entry.attributes.push_back(attribute("span", Value(span_text(graph.span))));
        for (const Node* p : graph.parameters()) {
            ValueInfo info;
            info.name = node_name(*p);
            info.doc = p->name;
            if (p->type.kind == NodeType::Kind::tensor)
                info.tensors.push_back(entry_of(p->type.tensor));
            else
                info.info = type_attribute(p->type);
            entry.inputs.push_back(std::move(info));
        }
        for (auto& node : graph.nodes())
            if (node->kind == NodeKind::constant && !node->function) constant(*node);
        for (const Node* node : graph.body()) call(*node);
        ValueInfo result;
        result.name = operand(graph.result);
        entry.outputs.push_back(std::move(result));
        return entry;
    }

    std::string node_name(const Node& node) const { return label_.at(&node.graph()) + ":" + str(node.id); }

    NodeEntry& add(std::string output, std::string op_type, const Node* node) {
        NodeEntry e;
        e.name = e.output = std::move(output);
        e.op_type = std::move(op_type);
        if (node) {
            e.domain = node->name;
            if (node->span.line) e.doc = span_text(node->span);
        }
        entry_->nodes.push_back(std::move(e));
        return entry_->nodes.back();
    }

    void constant(const Node& node) {
        if (node.constant.is_tensor() && !node.name.empty() && !node.span.line) {
            TensorEntry t = entry_of(node.constant.tensor());
            t.name = node_name(node);
            t.key = node.name;
            entry_->parameters.push_back(std::move(t));
            return;
        }
        add(node_name(node), "Constant", &node).attributes.push_back(attribute("value", node.constant));
    }

    // The name for a value in the file: that of its node, of a graph, or of a node made for the value.
    std::string operand(const Value& v) {
        if (v.is_node()) {
            const Node& node = *v.node();
            return node.function ? "@" + labels_.of.at(node.function) : node_name(node);
        }
        const std::string name = str("ValueNode_", ++values_);
        if (v.is_list() && has_parts(v)) {
            std::vector<std::string> inputs;
            for (const Value& item : v.items()) inputs.push_back(operand(item));
            add(name, "MakeTuple", nullptr).inputs = std::move(inputs);
        } else {
            add(name, "Constant", nullptr).attributes.push_back(attribute("value", v));
        }
        return name;
    }

    void call(const Node& node) {
        std::vector<std::string> inputs;
        if (node.callee) inputs.push_back(operand(Value(node.callee)));
        for (const Value& arg : node.args) inputs.push_back(operand(arg));
        std::string type = "Call";
        if (node.kind == NodeKind::item) {
            type = "TupleGetItem";
            inputs.push_back(operand(Value(static_cast<int64_t>(node.index))));
        } else if (node.op) {
            const std::string name = operator_name(*node.op);
            model_.primitives.try_emplace(name, PrimitiveEntry{name, name, {}});
            type = "REF::" + name;
        }
        NodeEntry& e = add(node_name(node), type, &node);
        e.inputs = std::move(inputs);
        e.attributes.push_back(type_attribute(node.type));
    }

    Labels labels_;
    size_t next_label_ = 0;
    int values_ = 0;
    std::unordered_map<const Graph*, std::string> label_;  // latest label of each graph written so far
    std::vector<GraphEntry> entries_;
    GraphEntry* entry_ = nullptr;
    Model model_;
};

}  // namespace

std::string mindir_of(const Graph& graph) { return write_model(ModelWriter(graph).run()); }

}  // namespace lunaria::ir
