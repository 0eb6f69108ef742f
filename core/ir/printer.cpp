#include "core/ir/printer.h"

namespace lunaria::ir {

namespace {

std::string operand_text(const Value& v) {
    if (v.is_node()) {
        const Node& node = *v.node();
        if (node.function) return "@" + node.function->name;
        return str('%', node.id);
    }
    if (!v.is_list()) return lunaria::to_string(v);
    std::string text = "{";
    for (const Value& item : v.items()) text += (text.size() > 1 ? ", " : "") + operand_text(item);
    return text + "}";
}

std::string call_text(const Node& node) {
    if (node.kind == NodeKind::item) return operand_text(node.args[0]) + str('[', node.index, ']');
    std::string text = node.op ? std::string(node.op->name()) : operand_text(Value(node.callee));
    text += "(";
    for (size_t i = 0; i < node.args.size(); ++i) text += (i ? ", " : "") + operand_text(node.args[i]);
    return text + ")";
}

// Small constants are shown whole: they are what one looks for in a dump.
std::string constant_text(const Tensor& t) {
    std::string text = str(name_of(t.dtype()), t.shape());
    if (t.size() > 8) return text;
    text += " {";
    for (int64_t i = 0; i < t.size(); ++i) text += str(i ? ", " : "", t.at(i));
    return text + "}";
}

class Printer {
  public:
    std::string print(const Graph& graph) {
        write(graph, "");
        return std::move(out_).str();
    }

  private:
    void write(const Graph& graph, const std::string& indent) {
        out_ << indent << "graph " << graph.name << '(';
        for (size_t i = 0; i < graph.parameters().size(); ++i) {
            const Node& p = *graph.parameters()[i];
            out_ << (i ? ", " : "") << '%' << p.id << ' ' << p.name << ": " << to_string(p.type);
        }
        out_ << ") {\n";
        std::string inside = indent + "  ";
        for (auto& inner : graph.inner()) write(*inner, inside);
        for (auto& node : graph.nodes())
            if (node->kind == NodeKind::constant && !node->function)
                out_ << inside << '%' << node->id << " = "
                     << (node->constant.is_tensor() ? constant_text(node->constant.tensor())
                                                    : lunaria::to_string(node->constant))
                     << '\n';
        for (const Node* node : graph.body()) {
            std::string text = str(inside, '%', node->id, " = ", call_text(*node));
            if (text.size() < 40) text.resize(40, ' ');
            out_ << text << " : " << to_string(node->type);
            if (!node->name.empty()) out_ << "  " << node->name;
            if (node->span.line)
                out_ << "  -- " << (node->span.chunk ? *node->span.chunk : "?") << ':' << node->span.line;
            out_ << '\n';
        }
        out_ << inside << "return " << operand_text(graph.result) << '\n' << indent << "}\n";
    }

    std::ostringstream out_;
};

}  // namespace

std::string print(const Graph& graph) { return Printer().print(graph); }

std::string to_string(const NodeType& type) {
    switch (type.kind) {
        case NodeType::Kind::tensor:
            return str(name_of(type.tensor.dtype), type.tensor.shape);
        case NodeType::Kind::host:
            return "value";
        case NodeType::Kind::unknown:
            return "?";
        case NodeType::Kind::list:
            break;
    }
    std::string text = "{";
    for (const NodeType& item : type.items) text += (text.size() > 1 ? ", " : "") + to_string(item);
    return text + "}";
}

}  // namespace lunaria::ir
