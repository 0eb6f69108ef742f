#include "tests/jit/autodiff/graph_runner.h"

#include <functional>

#include "jit/autodiff/pullback.h"
#include "jit/language.h"
#include "jit/number.h"

namespace lunaria::testing {

namespace {

bool is_number_call(const Op& op) {
    const Op* found = lua::language().find(op.name());
    return found == &op && lua::is_number_primitive(op);
}

// Arguments in a tensor's place, lists item by item.
void for_each_operand(const Op& op, std::span<const Value> args, const std::function<void(const Value&)>& f) {
    for (size_t i = 0; i < args.size(); ++i) {
        if (!is_tensor_type(op.signature.params[i].type)) continue;
        if (args[i].is_list())
            for (const Value& item : args[i].items()) f(item);
        else if (args[i].is_tensor() || args[i].is_number())
            f(args[i]);
    }
}

}  // namespace

Value GraphRun::substitute(const Value& v, const Values& values) {
    if (v.is_node()) return v.node()->kind == ir::NodeKind::constant ? v.node()->constant : values.at(v.node());
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(substitute(item, values));
    return Value::list(std::move(items));
}

GraphRun::GraphRun(const ir::Graph& graph, std::span<const Value> args) : graph_(graph) {
    if (args.size() != graph.parameters().size())
        throw state_error(
            "test", str("graph ", graph.name, " has ", graph.parameters().size(), " parameters, not ", args.size()));
    for (size_t i = 0; i < args.size(); ++i) values_[graph.parameters()[i]] = args[i];
    for (const ir::Node* node : graph.body()) {
        std::vector<Value> operands;
        for (const Value& arg : node->args) operands.push_back(substitute(arg, values_));
        if (node->kind == ir::NodeKind::item)
            values_[node] = operands[0].items().at(node->index);
        else if (is_number_call(*node->op))
            values_[node] = lua::run_number(*node->op, operands);
        else
            values_[node] = lunaria::run(*node->op, operands);
    }
    result_ = substitute(graph.result, values_);
}

std::vector<Value> GraphRun::backward(const Value& cotangent) const {
    std::map<const ir::Node*, Value> found;
    auto plus = [](const Value& a, const Value& b) {
        if (a.is_number() && b.is_number()) return Value(a.number() + b.number());
        return run(registry().get("add"), {a, b});
    };
    std::function<void(const Value&, const Value&)> give = [&](const Value& to, const Value& c) {
        if (c.is_nil()) return;
        if (to.is_list()) {
            for (size_t i = 0; i < to.items().size(); ++i) give(to.items()[i], c.items()[i]);
            return;
        }
        if (!to.is_node() || to.node()->kind == ir::NodeKind::constant) return;
        Value& sum = found[to.node()];
        if (sum.is_nil()) {
            sum = c;
        } else if (sum.is_list()) {
            std::vector<Value> items;
            for (size_t i = 0; i < sum.items().size(); ++i) {
                const Value &x = sum.items()[i], &y = c.items()[i];
                items.push_back(x.is_nil() ? y : y.is_nil() ? x : plus(x, y));
            }
            sum = Value::list(std::move(items));
        } else {
            sum = plus(sum, c);
        }
    };
    give(graph_.result, cotangent);
    for (size_t n = graph_.body().size(); n-- > 0;) {
        const ir::Node* node = graph_.body()[n];
        auto c = found.find(node);
        if (c == found.end()) continue;
        if (node->kind == ir::NodeKind::item) {
            const Value& whole = values_.at(node->args[0].node());
            std::vector<Value> items(whole.items().size());
            items[node->index] = c->second;
            give(node->args[0], Value::list(std::move(items)));
            continue;
        }
        std::vector<Value> operands;
        for (const Value& arg : node->args) operands.push_back(substitute(arg, values_));
        auto cotangents = cotangents_of_call(*node->op, operands, values_.at(node), c->second);
        for (size_t i = 0; i < cotangents.size(); ++i) give(node->args[i], cotangents[i]);
    }
    std::vector<Value> result;
    for (const ir::Node* p : graph_.parameters()) result.push_back(found[p]);
    return result;
}

std::vector<Value> pullback_inputs(const std::vector<int>& saved, const std::vector<int>& saved_item,
                                   std::span<const Value> args, const Value& result,
                                   std::span<const Value> cotangents) {
    std::vector<Value> inputs;
    for (size_t k = 0; k < saved.size(); ++k) {
        size_t place = static_cast<size_t>(saved[k]);
        if (place >= args.size())
            inputs.push_back(result.is_list() ? result.items().at(place - args.size()) : result);
        else
            inputs.push_back(saved_item[k] < 0 ? args[place]
                                               : args[place].items().at(static_cast<size_t>(saved_item[k])));
    }
    inputs.insert(inputs.end(), cotangents.begin(), cotangents.end());
    return inputs;
}

std::vector<Value> cotangents_of_call(const Op& op, std::span<const Value> args, const Value& result,
                                      const Value& cotangent, uint64_t active) {
    if (!is_number_call(op) && autodiff::needs_expansion(op)) {
        auto graph = autodiff::expansion(op, args);
        std::vector<Value> operands;
        for_each_operand(op, args, [&](const Value& v) { operands.push_back(v); });
        auto flat = GraphRun(*graph, operands).backward(cotangent);
        std::vector<Value> cotangents;
        size_t next = 0;
        for (size_t i = 0; i < args.size(); ++i) {
            bool operand = is_tensor_type(op.signature.params[i].type);
            if (operand && args[i].is_list()) {
                std::vector<Value> items(flat.begin() + static_cast<ptrdiff_t>(next),
                                         flat.begin() + static_cast<ptrdiff_t>(next + args[i].items().size()));
                next += items.size();
                cotangents.push_back(Value::list(std::move(items)));
            } else if (operand && (args[i].is_tensor() || args[i].is_number())) {
                cotangents.push_back(flat[next++]);
            } else {
                cotangents.emplace_back();
            }
        }
        return cotangents;
    }
    std::vector<Value> douts = result.is_list() ? cotangent.items() : std::vector<Value>{cotangent};
    uint64_t present = 0;
    std::vector<Value> given;
    for (size_t j = 0; j < douts.size(); ++j)
        if (!douts[j].is_nil()) {
            present |= uint64_t{1} << j;
            given.push_back(douts[j]);
        }
    auto pullback = is_number_call(op) ? autodiff::number_pullback(op, active)
                                       : autodiff::pullback(op, args, result, active, present);
    auto inputs = pullback_inputs(pullback->saved, pullback->saved_item, args, result, given);
    return GraphRun(*pullback->graph, inputs).result().items();
}

}  // namespace lunaria::testing
