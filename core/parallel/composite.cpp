#include "core/parallel/composite.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/ir/builder.h"
#include "core/operator/expansion.h"

namespace lunaria::parallel {

namespace {

using AxisLabels = std::vector<int>;  // one for each axis, -1: none

// The factor that cuts an axis: the first one that is larger than 1.
int leading(const Rule& rule, const AxisFactors& axis) {
    for (int f : axis)
        if (rule.factors[static_cast<size_t>(f)].size > 1) return f;
    return -1;
}

// The results of a value of the expansion, one or several.
std::vector<TensorType> types_in(const ir::NodeType& type) {
    if (type.kind == ir::NodeType::Kind::tensor) return {type.tensor};
    std::vector<TensorType> types;
    for (const ir::NodeType& item : type.items)
        for (TensorType& t : types_in(item)) types.push_back(std::move(t));
    return types;
}

Value parameter(ir::Graph& graph, const Value& v) {
    if (v.is_tensor() || v.is_node())
        return Value(graph.add_parameter(str("x", graph.parameters().size()), ir::NodeType::of(type_of(v))));
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(parameter(graph, item));
    return Value::list(std::move(items));
}

}  // namespace

class Labels {
  public:
    explicit Labels(CompositeRule& rule) : rule_(rule) {}

    void follow() {
        for (const ir::Node* node : rule_.graph_->parameters()) {
            AxisLabels axes;
            for (int64_t size : node->tensor_type().shape) axes.push_back(size > 1 ? add(size) : -1);
            values_[{node, 0}] = axes;
        }
        for (const ir::Node* node : rule_.graph_->body())
            if (node->kind == ir::NodeKind::item)
                values_[{node, 0}] = values_[{node->args[0].node(), node->index}];
            else
                follow(*node);
        block_twice_used();
    }

    void name_factors() {
        std::vector<int> parameters;
        size_t next = 0;
        for (Operand& o : rule_.operands) {
            const AxisLabels& axes = values_[{rule_.graph_->parameters()[next++], 0}];
            for (size_t k = 0; k < axes.size(); ++k) o.axes[k] = factor_of(axes[k], true);
        }
        std::vector<std::pair<const ir::Node*, size_t>> outs;
        collect(rule_.graph_->result, outs);
        for (size_t j = 0; j < rule_.results.size() && j < outs.size(); ++j) {
            const AxisLabels& axes = values_[outs[j]];
            for (size_t k = 0; k < axes.size() && k < rule_.results[j].axes.size(); ++k)
                rule_.results[j].axes[k] = factor_of(axes[k], false);
        }
        for (int f = 0; f < rule_.count(); ++f) set_kind(f);
    }

  private:
    struct Label {
        int parent;
        int64_t size;
        bool blocked = false, spreads = false, reduces = false, moves = false;
    };

    int add(int64_t size) {
        labels_.push_back({static_cast<int>(labels_.size()), size});
        return static_cast<int>(labels_.size()) - 1;
    }
    int root(int label) {
        while (labels_[static_cast<size_t>(label)].parent != label) label = labels_[static_cast<size_t>(label)].parent;
        return label;
    }
    Label& at(int label) { return labels_[static_cast<size_t>(root(label))]; }
    int join(int a, int b) {
        if (a < 0 || b < 0 || root(a) == root(b)) return std::max(a, b);
        Label &to = at(a), &from = at(b);
        to.size = std::min(to.size, from.size);
        to.blocked |= from.blocked;
        to.spreads |= from.spreads;
        to.reduces |= from.reduces;
        to.moves |= from.moves;
        from.parent = root(a);
        return a;
    }

    // Constants have no labels: every rank has them whole.
    AxisLabels labels_of(const Value& v) {
        if (v.is_node() && v.node()->kind != ir::NodeKind::constant) return values_[{v.node(), 0}];
        return AxisLabels(static_cast<size_t>(type_of(v).shape.rank()), -1);
    }

    void follow(const ir::Node& node) {
        CompositeRule::Step step{&node, letters_of(Call(*node.op, node.args, promoted_dtype(*node.op, node.args))), {}};
        const Rule& rule = *step.rule;
        step.labels.assign(rule.factors.size(), -1);
        for (const Operand& o : rule.operands) {
            const Value& arg = node.args[o.argument];
            const AxisLabels axes = labels_of(o.item < 0 ? arg : arg.items()[static_cast<size_t>(o.item)]);
            for (size_t k = 0; k < axes.size(); ++k) {
                if (axes[k] < 0) continue;
                const int f = leading(rule, o.axes[k]);
                if (f < 0 || rule.factors[static_cast<size_t>(f)].kind == Kind::whole) {
                    at(axes[k]).blocked = true;
                } else {
                    int& label = step.labels[static_cast<size_t>(f)];
                    label = label < 0 ? axes[k] : join(label, axes[k]);
                }
            }
        }
        for (size_t f = 0; f < rule.factors.size(); ++f) note(rule.factors[f], step.labels[f]);
        const std::vector<TensorType> types = types_in(node.type);
        for (size_t j = 0; j < types.size(); ++j) {
            AxisLabels axes;
            for (int k = 0; k < types[j].shape.rank(); ++k)
                axes.push_back(label_of_result(step, j, k, types[j].shape[k]));
            values_[{&node, j}] = axes;
        }
        rule_.steps_.push_back(std::move(step));
    }
    void note(const Factor& f, int label) {
        if (label < 0) return;
        at(label).size = std::min(at(label).size, f.size);
        at(label).spreads |= f.kind == Kind::spread;
        at(label).reduces |= f.kind == Kind::reduce || f.merge != Merge::none;
        at(label).moves |= f.kind == Kind::move;
    }
    int label_of_result(CompositeRule::Step& step, size_t result, int axis, int64_t size) {
        if (size <= 1) return -1;
        const Rule& rule = *step.rule;
        const int f = result < rule.results.size() && axis < static_cast<int>(rule.results[result].axes.size())
                          ? leading(rule, rule.results[result].axes[static_cast<size_t>(axis)])
                          : -1;
        if (f < 0 || rule.factors[static_cast<size_t>(f)].kind == Kind::whole) {
            const int made = add(size);
            at(made).blocked = true;
            return made;
        }
        int& label = step.labels[static_cast<size_t>(f)];
        if (label < 0) {
            label = add(size);
            note(rule.factors[static_cast<size_t>(f)], label);
        }
        return label;
    }
    // One mesh axis cannot cut two axes of one call in different ways.
    void block_twice_used() {
        for (const CompositeRule::Step& step : rule_.steps_)
            for (size_t f = 0; f < step.labels.size(); ++f)
                for (size_t g = 0; g < f; ++g)
                    if (step.labels[f] >= 0 && step.labels[g] >= 0 && root(step.labels[f]) == root(step.labels[g]))
                        at(step.labels[f]).blocked = true;
        for (CompositeRule::Step& step : rule_.steps_)
            for (int& label : step.labels)
                if (label >= 0) label = root(label);
    }

    void collect(const Value& v, std::vector<std::pair<const ir::Node*, size_t>>& outs) {
        if (v.is_list())
            for (const Value& item : v.items()) collect(item, outs);
        else if (v.is_node())
            for (size_t j = 0; j < types_in(v.node()->type).size(); ++j) outs.emplace_back(v.node(), j);
        else
            outs.emplace_back(nullptr, 0);
    }
    AxisFactors factor_of(int label, bool of_operand) {
        if (label < 0 || at(label).blocked) return {};
        const int r = root(label);
        auto found = std::ranges::find(rule_.labels_, r);
        if (found == rule_.labels_.end()) {
            rule_.add(of_operand ? Kind::reduce : Kind::make, at(r).size);
            rule_.labels_.push_back(r);
            found = rule_.labels_.end() - 1;
        }
        return {static_cast<int>(found - rule_.labels_.begin())};
    }
    void set_kind(int f) {
        const Label& label = at(rule_.label(f));
        const bool in_operands =
            std::ranges::any_of(rule_.operands, [&](const Operand& o) { return rule_.occurs(f, o.axes); });
        const bool in_results =
            std::ranges::any_of(rule_.results, [&](const Result& r) { return rule_.occurs(f, r.axes); });
        Factor& factor = rule_.factors[static_cast<size_t>(f)];
        if (label.spreads || label.reduces || !in_results)
            factor.kind = Kind::spread;
        else
            factor.kind = !in_operands ? Kind::make : label.moves ? Kind::move : Kind::pass;
    }

    CompositeRule& rule_;
    std::vector<Label> labels_;
    std::map<std::pair<const ir::Node*, size_t>, AxisLabels> values_;
};

std::unique_ptr<const CompositeRule> CompositeRule::of(const Call& call) {
    auto graph = std::make_unique<ir::Graph>("expansion");
    ir::GraphBuilder builder(*graph);
    builder.expands = true;
    std::vector<Value> given;
    for (const Value& v : call.args) given.push_back(parameter(*graph, v));
    try {
        std::vector<Value> args;
        for (size_t i = 0; i < given.size(); ++i)
            args.push_back(builder.operand(call.op, call.op.signature.params[i], given[i], call.dtype));
        args = expansion_args(call.op, args, call.dtype);
        graph->result = expand(ExpandCall(Call(call.op, args, call.dtype), builder));
    } catch (const Error&) {
        return nullptr;  // an expansion that reads its operands
    }
    Types types;
    auto add = [&](const Value& v) {
        if (v.is_node())
            for (TensorType& t : types_in(v.node()->type)) types.push_back(std::move(t));
        else if (v.is_tensor())
            types.push_back(type_of(v));
    };
    if (graph->result.is_list())
        for (const Value& v : graph->result.items()) add(v);
    else
        add(graph->result);
    std::unique_ptr<CompositeRule> rule(new CompositeRule(call, types));
    rule->is_composite = true;
    rule->graph_ = std::move(graph);
    rule->parameters_ = std::move(given);
    Labels labels(*rule);
    labels.follow();
    labels.name_factors();
    return rule;
}

std::unique_ptr<const Rule> letters_of(const Call& call) {
    std::unique_ptr<const Rule> rule = rule_of(call);
    if (!rule->is_composite) return rule;
    std::unique_ptr<const Rule> composite = CompositeRule::of(call);
    return composite ? std::move(composite) : std::move(rule);
}

}  // namespace lunaria::parallel
