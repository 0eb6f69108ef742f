// The writer of graphs in MindSpore's form: graphs of operators, and blocks that end with a jump to each other. It
// applies the rules in mindspore_rules.h; mindspore_blocks.h describes the blocks.
#include <algorithm>
#include <set>

#include "core/ir/builder.h"
#include "core/ir/mindir.h"
#include "core/ir/mindir_model.h"
#include "core/ir/mindspore_rules.h"
#include "core/ir/substitution.h"
#include "core/ir/text.h"
#include "core/operator/expansion.h"

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

// The form of a call in MindSpore's operators: the rule, and the values of its variables.
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

// Composite also for the runtime, so that no kernel can give other results.
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

// The graph and its blocks, with calls without a rule expanded and calls of constants computed, until nothing changes.
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
        blocks_.clear();
        for (const auto& block : from.inner()) blocks_[block.get()] = &graph->add_inner(block->name);
        copy(from, *graph);
        for (const auto& block : from.inner()) copy(*block, *blocks_.at(block.get()));
        return graph;
    }

    void copy(const Graph& from, Graph& graph) {
        Substitution made(&graph);
        GraphBuilder builder(graph);
        for (const Node* p : from.parameters()) made[p] = Value(graph.add_parameter(p->name, p->type));
        for (const auto& node : from.nodes()) {
            if (node->kind != NodeKind::constant || node->function) continue;
            Node* constant = graph.add_constant(node->constant);
            constant->name = node->name;
            constant->span = node->span;
            made[node.get()] = Value(constant);
        }
        for (const Node* node : from.body()) {
            builder.span = node->span;
            Value v = goes_on(*node)                 ? go_on(*node, made, graph)
                      : node->kind == NodeKind::item ? builder.item(made[node->args[0].node()], node->index)
                                                     : call(*node, made, builder);
            if (v.is_node() && v.node()->name.empty()) v.node()->name = node->name;
            made[node] = std::move(v);
        }
        graph.result = made(from.result);
    }

    Value go_on(const Node& node, Substitution& made, Graph& graph) {
        const auto block = [&](const Node& function) { return graph.add_function(*blocks_.at(function.function)); };
        if (node.callee) return Value(graph.add_call(*block(*node.callee), made(node.args), node.type));
        std::vector<Value> args = made(std::vector<Value>{node.args[0], node.args[2], node.args[4]});
        return Value(graph.add_call(
            *node.op,
            {args[0], Value(block(*node.args[1].node())), args[1], Value(block(*node.args[3].node())), args[2]},
            node.type));
    }

    Value call(const Node& node, Substitution& made, GraphBuilder& builder) {
        const Op& op = *node.op;
        std::vector<Value> args;
        for (const Value& v : node.args) args.push_back(made(v));
        if (match_of(op, args, node.type).rule) return builder.emit(op, args);
        if (op.is_repeatable() && !has_operands(op, args)) {
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
    std::unordered_map<const Graph*, Graph*> blocks_;
};

// A report of all that cannot be written: names of operators and other things.
struct Missing {
    std::set<std::string> what;
};

class MindSporeWriter {
  public:
    explicit MindSporeWriter(const Graph& graph) : graph_(graph) {}

    std::optional<Model> run(Missing& missing) {
        look_for_missing(graph_, missing);
        for (const auto& block : graph_.inner()) look_for_missing(*block, missing);
        if (!missing.what.empty()) return std::nullopt;
        labels_[&graph_] = "main";
        for (const auto& block : graph_.inner()) labels_[block.get()] = block->name;
        for (const auto& block : graph_.inner()) model_.functions.push_back(written(*block));
        model_.graph = written(graph_);
        model_.ir_version = "1.1";
        model_.producer = "Lunaria";
        model_.producer_version = "1.0.0";  // MindSpore refuses a file without a version
        return std::move(model_);
    }

  private:
    static void look_for_missing(const Graph& graph, Missing& missing) {
        for (const Node* node : graph.body())
            if (node->kind == NodeKind::call && !goes_on(*node) && !match_of(*node->op, node->args, node->type).rule)
                missing.what.insert("ops." + std::string(node->op->name()));
        for (const Value& v : results_of(graph))
            if (!v.is_node()) missing.what.insert("a result that is no tensor");
    }

    GraphEntry written(const Graph& graph) {
        GraphEntry entry;
        entry_ = &entry;
        entry.name = label_ = labels_.at(&graph);
        for (const Node* p : graph.parameters()) input(*p);
        for (const auto& node : graph.nodes())
            if (node->kind == NodeKind::constant && !node->function) constant(*node);
        for (const Node* node : graph.body()) goes_on(*node) ? go_on(*node) : call(*node);
        std::vector<Value> results = results_of(graph);
        // The results of a graph that jumps to a block form a tuple, as those of the block do.
        const bool is_tuple = results.size() > 1 && !graph_.inner().empty();
        if (is_tuple) {
            const std::string tuple = operand(graph.result, true);
            std::vector<NodeType> types;
            for (const Value& v : results) types.push_back(v.node()->type);
            entry.nodes.back().attributes.push_back(type_attribute(NodeType::list(types)));
            output(tuple, NodeType::list(std::move(types)));
        } else {
            for (const Value& v : results) output(names_.at(v.node()), v.node()->type);
        }
        return entry;
    }

    void output(const std::string& name, const NodeType& type) {
        ValueInfo info;
        info.name = name;
        const NodeType& one = only(type);
        if (one.kind == NodeType::Kind::tensor)
            info.tensors.push_back(entry_of(one.tensor));
        else
            info.info = type_attribute(one);
        entry_->outputs.push_back(std::move(info));
    }

    // The type of a result; a list of one result counts as that result.
    static const NodeType& only(const NodeType& type) {
        return type.kind == NodeType::Kind::list && type.items.size() == 1 ? type.items[0] : type;
    }

    // The last node of a graph, a jump to a block or to one of two.
    void go_on(const Node& node) {
        if (node.callee) {
            names_[&node] = call_of(labels_.at(node.callee->function), operands(Value::list(node.args)), node);
            return;
        }
        const std::string condition = operand(node.args[0], true);
        const std::string yes = way(*node.args[1].node(), node.args[2]), no = way(*node.args[3].node(), node.args[4]);
        const std::string chosen = add("Switch", {condition, yes, no}, {}, nullptr);
        Attribute closures = attribute("shape", Value::list({}));
        closures.kind = Kind::union_closure;
        for (size_t i : {1, 3}) closures.values.push_back(closure("", labels_.at(node.args[i].node()->function)));
        entry_->nodes.back().attributes.push_back(std::move(closures));
        names_[&node] = call_of(chosen, {}, node);
    }

    // Writes a block with its arguments as a function.
    std::string way(const Node& function, const Value& args) {
        const std::string& label = labels_.at(function.function);
        std::vector<std::string> inputs = operands(args);
        inputs.insert(inputs.begin(), label);
        const std::string name =
            add("Partial", std::move(inputs), {attribute("side_effect_propagate", Value(int64_t{1}))}, nullptr);
        entry_->nodes.back().attributes.push_back(closure("shape", label));
        return name;
    }

    static Attribute closure(std::string name, const std::string& label) {
        Attribute a = attribute(std::move(name), Value(label));
        a.kind = Kind::graph_closure;
        return a;
    }

    std::string call_of(const std::string& function, std::vector<std::string> inputs, const Node& node) {
        NodeEntry e;
        e.name = e.output = unique(label_ + ":" + str("CNode_", ++calls_));
        e.op_type = "REF::" + function;
        e.inputs = std::move(inputs);
        e.attributes.push_back(type_attribute(only(node.type)));
        entry_->nodes.push_back(std::move(e));
        return entry_->nodes.back().output;
    }

    std::vector<std::string> operands(const Value& list) {
        std::vector<std::string> names;
        for (const Value& v : list.items()) names.push_back(operand(v, true));
        return names;
    }

    static std::vector<Value> results_of(const Graph& graph) {
        return graph.result.is_list() ? graph.result.items() : std::vector<Value>{graph.result};
    }

    std::string unique(std::string name) {
        const std::string first = name;
        for (int i = 2; !used_.insert(name).second; ++i) name = str(first, "_", i);
        return name;
    }

    void input(const Node& p) {
        ValueInfo info;
        info.name = unique(label_ + ":" + (p.name.empty() ? "x" : p.name));
        info.doc = p.name;
        info.tensors.push_back(entry_of(p.type.tensor));
        names_[&p] = info.name;
        entry_->inputs.push_back(std::move(info));
    }

    void constant(const Node& node) {
        if (!node.name.empty() && !node.span.line) {
            TensorEntry t = entry_of(node.constant.tensor());
            t.name = unique(label_ + ":" + node.name);
            t.key = node.name;
            names_[&node] = t.name;
            entry_->parameters.push_back(std::move(t));
        } else {
            names_[&node] = setting(node.constant);
        }
    }

    // A node for a known value.
    std::string setting(const Value& v, std::optional<double> number = std::nullopt) {
        NodeEntry e;
        e.name = e.output = unique(str("ValueNode_", ++values_));
        e.op_type = "Constant";
        e.attributes.push_back(attribute("value", v));
        if (v.kind() == Value::Kind::number) number = v.number();
        if (number) {  // MindSpore keeps it as float32
            Attribute exact;
            exact.name = "number";
            exact.kind = Kind::float64;
            exact.numbers.push_back(*number);
            e.attributes.push_back(std::move(exact));
        }
        entry_->nodes.push_back(std::move(e));
        return entry_->nodes.back().output;
    }

    static Attribute attribute(std::string name, const Value& v) {
        static constexpr ValueForm kForm{Kind::float32, Kind::tensors, [](const Value&) -> Attribute {
                                             throw state_error("export", "MindSpore has no such value");
                                         }};
        return attribute_of(std::move(name), v, kForm);
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
            entry_->nodes.back().attributes.push_back(std::move(op));
        }
        // An operator that returns its operand is written as that operand, without a node.
        if (entry_->nodes.empty() || entry_->nodes.back().output != names_[&node]) return;
        NodeEntry& last = entry_->nodes.back();
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

    // The name of the node that the term stands for.
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
        e.name = e.output = unique(label_ + ":" + str("CNode_", ++calls_));
        std::string primitive(type);
        if (!attributes.empty()) primitive += str(":", calls_);
        PrimitiveEntry p{primitive, std::string(type), std::move(attributes), primitive_type(type)};
        model_.primitives.try_emplace(primitive, std::move(p));
        e.op_type = "REF::" + primitive;
        e.inputs = std::move(inputs);
        if (typed) e.attributes.push_back(type_attribute(typed->type));
        entry_->nodes.push_back(std::move(e));
        return entry_->nodes.back().output;
    }

    const Graph& graph_;
    Model model_;
    std::unordered_map<const Graph*, std::string> labels_;
    std::string label_;            // the label of the graph in progress
    GraphEntry* entry_ = nullptr;  // the entry of that graph
    const Node* node_ = nullptr;   // the node in progress
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
