#include "jit/parallel/tape.h"

#include <algorithm>
#include <cstring>

#include "core/operator/expansion.h"
#include "jit/autodiff/pullback.h"

namespace lunaria::parallel {

namespace {

template <class F>
void for_each_tensor(const Value& v, const F& f) {
    if (v.is_tensor() && v.tensor()) f(v.tensor());
    if (v.is_list())
        for (const Value& item : v.items()) for_each_tensor(item, f);
}

}  // namespace

Tensor blank(DType dtype, const Shape& shape) {
    constexpr size_t kSmall = 64 * 1024;
    const Tensor t = Tensor::empty(dtype, shape);
    if (t.nbytes() <= kSmall) std::memset(t.raw(), 0, t.nbytes());
    return t;
}

Value Tape::emit(const Op& op, std::span<const Value> args) {
    const bool is_active = std::ranges::any_of(args, [&](const Value& v) { return touches(v); });
    if (is_active && autodiff::needs_expansion(op)) {
        const DType dtype = promoted_dtype(op, args);
        return expand(ExpandCall(Call(op, expansion_args(op, args, dtype), dtype), *this));
    }
    Value result = run(op, args);
    if (is_active) note({&op, {args.begin(), args.end()}, result, {}});
    return result;
}

void Tape::note(TapeEntry entry) {
    for_each_tensor(entry.result, [&](const Tensor& t) {
        if (is_float(t.dtype())) activate(t);
    });
    entries[at].push_back(std::move(entry));
}

bool Tape::touches(const Value& v) const {
    bool found = false;
    for_each_tensor(v, [&](const Tensor& t) { found = found || is_active(t); });
    return found;
}

Value run_rule(const ir::Graph& graph, std::vector<Value> given) {
    std::map<const ir::Node*, Value> values;
    for (size_t i = 0; i < graph.parameters().size(); ++i) values[graph.parameters()[i]] = std::move(given[i]);
    std::function<Value(const Value&)> value_of = [&](const Value& v) -> Value {
        if (v.is_node()) return v.node()->kind == ir::NodeKind::constant ? v.node()->constant : values.at(v.node());
        if (!v.is_list()) return v;
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(value_of(item));
        return Value::list(std::move(items));
    };
    for (const ir::Node* node : graph.body()) {
        if (node->kind == ir::NodeKind::item) {
            values[node] = value_of(node->args[0]).items().at(node->index);
            continue;
        }
        std::vector<Value> args;
        for (const Value& v : node->args) args.push_back(value_of(v));
        values[node] = run(*node->op, args);
    }
    return value_of(graph.result);
}

}  // namespace lunaria::parallel
