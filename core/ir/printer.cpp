#include "core/ir/printer.h"

#include <sstream>

#include "core/ir/labels.h"
#include "core/ir/text.h"

namespace lunaria::ir {

namespace {

class Printer {
  public:
    Printer(const Graph& graph, const PrintOptions& options) : options_(options), labels_(graph) {}

    std::string print() {
        for (const Graph* graph : labels_.whole) write(*graph, "");
        return std::move(out_).str();
    }

  private:
    std::string type_text(const Node& node) const {
        return options_.type_text ? options_.type_text(node) : to_string(node.type);
    }
    std::string operand_text(const Value& v) const {
        switch (v.kind()) {
            case Value::Kind::node: {
                const Node& node = *v.node();
                return node.function ? "@" + labels_.of.at(node.function) : str('%', node.id);
            }
            case Value::Kind::number:
                return number_text(v.number());
            case Value::Kind::string:
                return quoted(v.string());
            case Value::Kind::tensor:
                return tensor_text(v.tensor(), options_.most_elements);
            case Value::Kind::object: {
                const auto* holder = dynamic_cast<const OperatorHolder*>(v.object());
                return holder ? operator_text(holder->held()) : "object";
            }
            case Value::Kind::list: {
                std::string text = "{";
                for (const Value& item : v.items()) text += (text.size() > 1 ? ", " : "") + operand_text(item);
                return text + "}";
            }
            default:
                return lunaria::to_string(v);
        }
    }

    static std::string operator_text(const Op& op) {
        return (registry().find(op.name()) == &op ? "ops." : "") + std::string(op.name());
    }

    std::string call_text(const Node& node) const {
        if (node.kind == NodeKind::item) return operand_text(node.args[0]) + str('[', node.index, ']');
        std::string text = node.op ? operator_text(*node.op) : operand_text(Value(node.callee));
        text += "(";
        for (size_t i = 0; i < node.args.size(); ++i) text += (i ? ", " : "") + operand_text(node.args[i]);
        return text + ")";
    }

    void write(const Graph& graph, const std::string& indent) {
        out_ << indent << "graph " << labels_.in_order[next_label_++] << '(';
        for (size_t i = 0; i < graph.parameters().size(); ++i) {
            const Node& p = *graph.parameters()[i];
            out_ << (i ? ", " : "") << '%' << p.id << ' ' << node_name_text(p.name) << ": " << type_text(p);
        }
        out_ << ')';
        if (graph.captures) out_ << " captures " << graph.captures;
        if (graph.variadic) out_ << " variadic";
        if (graph.order) out_ << " order " << graph.order;
        out_ << " {";
        write_span(graph.span);
        out_ << '\n';
        std::string inside = indent + "  ";
        for (auto& inner : graph.inner()) write(*inner, inside);
        for (auto& node : graph.nodes())
            if (node->kind == NodeKind::constant && !node->function) {
                out_ << inside << '%' << node->id << " = " << operand_text(node->constant);
                if (!node->name.empty()) out_ << "  " << node_name_text(node->name);
                write_span(node->span);
                out_ << '\n';
            }
        for (const Node* node : graph.body()) {
            std::string text = str(inside, '%', node->id, " = ", call_text(*node));
            if (text.size() < 40) text.resize(40, ' ');
            out_ << text << " : " << type_text(*node);
            if (!node->name.empty()) out_ << "  " << node_name_text(node->name);
            write_span(node->span);
            out_ << '\n';
        }
        out_ << inside << "return " << operand_text(graph.result) << '\n' << indent << "}\n";
    }
    void write_span(const Span& span) {
        if (span.line) out_ << "  -- " << span_text(span);
    }

    const PrintOptions options_;
    const Labels labels_;
    size_t next_label_ = 0;
    std::ostringstream out_;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(graph, options).print(); }

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
