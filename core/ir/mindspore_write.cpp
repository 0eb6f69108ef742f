// Graphs of operators alone as MindSpore writes them, by the rules in mindspore_rules.h.
#include <algorithm>
#include <set>

#include "core/expansion.h"
#include "core/ir/builder.h"
#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"
#include "core/ir/mindspore_rules.h"
#include "core/ir/substitution.h"
#include "core/ir/text.h"

namespace lunaria::ir {

namespace {

using namespace mindir;

bool binds(const Term& term, const Value& value, Bindings& b) {
    switch (term.kind) {
        case Term::Kind::anything:
            return true;
        case Term::Kind::literal:
            return is_same_setting(term.value, value);
        case Term::Kind::variable: {
            if (value.is_nil() && !term.may_be_nil) return false;
            const auto [place, is_new] = b.values.try_emplace(term.name, value);
            return is_new || is_same_setting(place->second, value);
        }
        default:  // a function of variables, which the operator's own rule has checked
            return !value.is_nil();
    }
}

// What a call of ours is in MindSpore's operators: the rule, and what its variables are.
struct Match {
    const Rule* rule = nullptr;
    Bindings bindings;
};

Match match_of(const Op& op, std::span<const Value> args, const NodeType& type) {
    Match m;
    for (const Rule& rule : rules()) {
        if (rule.ours.name != op.name()) continue;
        m.bindings = {};
        m.bindings.result = &type;
        const auto& params = op.signature.params;
        bool fits = rule.ours.items.size() <= params.size();
        for (size_t i = 0; fits && i < params.size(); ++i)
            fits = i < rule.ours.items.size() ? binds(rule.ours.items[i], args[i], m.bindings)
                                              : is_same_setting(params[i].default_value, args[i]);
        if (fits && (!rule.condition || rule.condition(m.bindings))) {
            m.rule = &rule;
            return m;
        }
    }
    return m;
}

// Composite for what runs it, too: there are no kernels whose results could differ.
bool is_composite(const Op& op) {
    if (!op.expand_fn || op.view_fn || op.host_fn) return false;
    size_t count = 0;
    op.kernels(*current_device(), count);
    return !(op.infer_fn && count > 0);
}

bool has_operands(const Op& op, std::span<const Value> args) {
    for (size_t i = op.reads_type_only ? 1 : 0; i < args.size(); ++i) {
        bool found = args[i].is_tensor();
        for_each_node(args[i], [&](Node*) { found = true; });
        if (found) return true;
    }
    return false;
}

// The graph with what has no rule expanded, and what depends on nothing computed, until nothing changes.
class Preparation {
  public:
    std::unique_ptr<Graph> run(const Graph& given) {
        std::unique_ptr<Graph> graph = copied(given);
        for (int pass = 0; changed_ && pass < kMostPasses; ++pass) graph = copied(*graph);
        return graph;
    }

  private:
    static constexpr int kMostPasses = 50;

    std::unique_ptr<Graph> copied(const Graph& from) {
        changed_ = false;
        auto graph = std::make_unique<Graph>(from.name);
        Substitution made(graph.get());
        GraphBuilder builder(*graph);
        for (const Node* p : from.parameters()) made[p] = Value(graph->add_parameter(p->name, p->type));
        for (const auto& node : from.nodes()) {
            if (node->kind != NodeKind::constant) continue;
            Node* constant = graph->add_constant(node->constant);
            constant->name = node->name;
            constant->span = node->span;
            made[node.get()] = Value(constant);
        }
        for (const Node* node : from.body()) {
            builder.span = node->span;
            Value v = node->kind == NodeKind::item ? builder.item(made[node->args[0].node()], node->index)
                                                   : call(*node, made, builder);
            if (v.is_node() && v.node()->name.empty()) v.node()->name = node->name;
            made[node] = std::move(v);
        }
        graph->result = made(from.result);
        return graph;
    }

    Value call(const Node& node, Substitution& made, GraphBuilder& builder) {
        const Op& op = *node.op;
        std::vector<Value> args;
        for (const Value& v : node.args) args.push_back(made(v));
        if (match_of(op, args, node.type).rule) return builder.emit(op, args);
        if (op.side_effect == Effect::none && !has_operands(op, args)) {
            changed_ = true;
            if (op.reads_type_only) args[0] = Value(Tensor::zeros(type_of(args[0]).dtype, type_of(args[0]).shape));
            const Value v = lunaria::run(op, args);
            return v.is_tensor() ? Value(builder.graph().add_constant(v)) : v;
        }
        if (!is_composite(op)) return builder.emit(op, args);
        changed_ = true;
        const DType dtype = promoted_dtype(op, args);
        args = expansion_args(op, args, dtype);
        for (size_t i = 0; i < args.size(); ++i) args[i] = builder.operand(op, op.signature.params[i], args[i], dtype);
        const Value v = expand(ExpandCall(Call(op, args, dtype), builder));
        return v.is_tensor() ? Value(builder.graph().add_constant(v)) : v;
    }

    bool changed_ = false;
};

// What cannot be written: the names of operators, or what else there is.
struct Missing {
    std::set<std::string> what;
};

class MindSporeWriter {
  public:
    explicit MindSporeWriter(const Graph& graph) : graph_(graph) { entry_.name = "main"; }

    std::optional<Model> run(Missing& missing) {
        for (const Node* node : graph_.body())
            if (node->kind == NodeKind::call && !match_of(*node->op, node->args, node->type).rule)
                missing.what.insert("ops." + std::string(node->op->name()));
        for (const Value& v : results())
            if (!v.is_node()) missing.what.insert("a result that is no tensor");
        if (!missing.what.empty()) return std::nullopt;
        for (const Node* p : graph_.parameters()) input(*p);
        for (const auto& node : graph_.nodes())
            if (node->kind == NodeKind::constant) constant(*node);
        for (const Node* node : graph_.body()) call(*node);
        for (const Value& v : results()) {
            ValueInfo info;
            info.name = names_.at(v.node());
            info.tensors.push_back(entry_of(v.node()->type.tensor));
            entry_.outputs.push_back(std::move(info));
        }
        model_.ir_version = "1.1";
        model_.producer = "Lunaria";
        model_.producer_version = "1.0.0";  // MindSpore refuses files without one
        model_.graph = std::move(entry_);
        return std::move(model_);
    }

  private:
    std::vector<Value> results() const {
        return graph_.result.is_list() ? graph_.result.items() : std::vector<Value>{graph_.result};
    }

    std::string unique(std::string name) {
        const std::string first = name;
        for (int i = 2; !used_.insert(name).second; ++i) name = str(first, "_", i);
        return name;
    }

    void input(const Node& p) {
        ValueInfo info;
        info.name = "main:" + unique(p.name.empty() ? "x" : p.name);
        info.doc = p.name;
        info.tensors.push_back(entry_of(p.type.tensor));
        names_[&p] = info.name;
        entry_.inputs.push_back(std::move(info));
    }

    void constant(const Node& node) {
        if (!node.name.empty() && !node.span.line) {
            TensorEntry t = entry_of(node.constant.tensor());
            t.name = "main:" + unique(node.name);
            t.key = node.name;
            names_[&node] = t.name;
            entry_.parameters.push_back(std::move(t));
        } else {
            names_[&node] = setting(node.constant);
        }
    }

    // A node for a value that is known.
    std::string setting(const Value& v, std::optional<double> number = std::nullopt) {
        NodeEntry e;
        e.name = e.output = unique(str("ValueNode_", ++values_));
        e.op_type = "Constant";
        e.attributes.push_back(attribute("value", v));
        if (v.kind() == Value::Kind::number) number = v.number();
        if (number) {  // MindSpore has it as float32
            Attribute exact;
            exact.name = "number";
            exact.kind = Kind::float64;
            exact.numbers.push_back(*number);
            e.attributes.push_back(std::move(exact));
        }
        entry_.nodes.push_back(std::move(e));
        return entry_.nodes.back().output;
    }

    static Attribute attribute(std::string name, const Value& v) {
        Attribute a;
        a.name = std::move(name);
        switch (v.kind()) {
            case Value::Kind::nil:
                a.kind = Kind::none;
                break;
            case Value::Kind::boolean:
                a.kind = Kind::boolean;
                a.integers.push_back(v.boolean());
                break;
            case Value::Kind::integer:
                a.kind = Kind::int64;
                a.integers.push_back(v.integer());
                break;
            case Value::Kind::number:
                a.kind = Kind::float32;
                a.numbers.push_back(v.number());
                break;
            case Value::Kind::string:
                a.kind = Kind::string;
                a.strings.push_back(v.string());
                break;
            case Value::Kind::tensor:
                a.kind = Kind::tensors;
                a.tensors.push_back(entry_of(v.tensor()));
                a.tensors.back().name = "value0";
                break;
            case Value::Kind::list:
                a.kind = Kind::tuple;
                for (const Value& item : v.items()) a.values.push_back(attribute("", item));
                break;
            default:
                throw state_error("export", "MindSpore has no such value");
        }
        return a;
    }

    void call(const Node& node) {
        if (node.kind == NodeKind::item) {
            names_[&node] =
                add("TupleGetItem", {names_.at(node.args[0].node()), setting(Value(static_cast<int64_t>(node.index)))},
                    {}, &node);
            return;
        }
        const Match m = match_of(*node.op, node.args, node.type);
        node_ = &node;
        names_[&node] = written(m.rule->theirs, m);
        if (m.rule->is_nested()) {
            Attribute op;
            op.name = "op";
            op.kind = Kind::string;
            op.strings.emplace_back(node.op->name());
            entry_.nodes.back().attributes.push_back(std::move(op));
        }
        // An operator that gives its operand back is written as that operand, by no node.
        if (entry_.nodes.empty() || entry_.nodes.back().output != names_[&node]) return;
        NodeEntry& last = entry_.nodes.back();
        last.domain = node.name;
        if (node.span.line) last.doc = span_text(node.span);
    }

    Value number_as_constant(const Value& number) const {
        return Value(Tensor::scalar(promoted_dtype(*node_->op, node_->args), number.number()));
    }

    bool is_operand(const Rule& rule, std::string_view variable) const {
        for (size_t i = 0; i < rule.ours.items.size(); ++i)
            if (rule.ours.items[i].name == variable && rule.ours.items[i].kind == Term::Kind::variable)
                return is_tensor_type(node_->op->signature.params[i].type);
        return false;
    }

    std::string operand(const Value& v, bool as_tensor) {
        if (v.is_node()) return names_.at(v.node());
        if (v.is_list() && !v.items().empty() && v.items()[0].is_node()) {
            std::vector<std::string> inputs;
            for (const Value& item : v.items()) inputs.push_back(operand(item, true));
            return add("MakeTuple", std::move(inputs), {}, nullptr);
        }
        if (as_tensor && v.is_number()) return setting(number_as_constant(v), v.number());
        return setting(v);
    }

    Value known(const Term& t, const Match& m) const {
        if (t.kind == Term::Kind::literal) return t.value;
        if (t.kind == Term::Kind::function) return computed(t, m.bindings);
        if (t.kind == Term::Kind::variable) return m.bindings[t.name];
        std::vector<Value> items;
        for (const Term& item : t.items) items.push_back(known(item, m));
        return Value::list(std::move(items));
    }

    // The name of what the term stands for.
    std::string written(const Term& t, const Match& m) {
        switch (t.kind) {
            case Term::Kind::variable:
                return operand(m.bindings[t.name], is_operand(*m.rule, t.name));
            case Term::Kind::tensor:
                return operand(known(t.items[0], m), true);
            case Term::Kind::call:
                break;
            default:
                return setting(known(t, m));
        }
        std::vector<std::string> inputs;
        for (const Term& item : t.items) inputs.push_back(written(item, m));
        std::vector<Attribute> attributes;
        for (const auto& [name, value] : t.attributes) attributes.push_back(attribute(name, known(value, m)));
        const bool last = &t == &m.rule->theirs;
        if (t.result < 0) return add(t.name, std::move(inputs), std::move(attributes), last ? node_ : nullptr);
        const std::string all = add(t.name, std::move(inputs), std::move(attributes), nullptr);
        return add("TupleGetItem", {all, setting(Value(int64_t{t.result}))}, {}, last ? node_ : nullptr);
    }

    std::string add(std::string_view type, std::vector<std::string> inputs, std::vector<Attribute> attributes,
                    const Node* typed) {
        NodeEntry e;
        e.name = e.output = "main:" + unique(str("CNode_", ++calls_));
        std::string primitive(type);
        if (!attributes.empty()) primitive += str(":", calls_);
        PrimitiveEntry p{primitive, std::string(type), std::move(attributes), primitive_type(type)};
        model_.primitives.try_emplace(primitive, std::move(p));
        e.op_type = "REF::" + primitive;
        e.inputs = std::move(inputs);
        if (typed) e.attributes.push_back(type_attribute(typed->type));
        entry_.nodes.push_back(std::move(e));
        return entry_.nodes.back().output;
    }

    const Graph& graph_;
    Model model_;
    GraphEntry entry_;
    const Node* node_ = nullptr;  // that is being written
    std::unordered_map<const Node*, std::string> names_;
    std::set<std::string> used_;
    int values_ = 0, calls_ = 0;
};

}  // namespace

std::optional<std::string> mindspore_mindir_of(const Graph& given, std::string& missing) {
    Missing names;
    const std::unique_ptr<Graph> graph = Preparation().run(given);
    if (const std::optional<Model> model = MindSporeWriter(*graph).run(names)) return write_model(*model);
    for (const std::string& name : names.what) missing += (missing.empty() ? "" : ", ") + name;
    return std::nullopt;
}

}  // namespace lunaria::ir
