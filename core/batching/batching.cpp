#include "core/batching/batching.h"

#include <algorithm>

#include "core/batching/rules.h"
#include "core/ir/graph.h"

namespace lunaria {

namespace {

bool is_listed(const Value& results) {
    return results.is_list() || (results.is_node() && results.node()->type.kind == ir::NodeType::Kind::list);
}

// Whether the results of a rule have the right types: an operator on whole batches may infer others.
bool fits(const BatchCall& call, const Value& results, const Types& types) {
    const std::vector<Value> items = separate_results(call.builder, results);
    return std::ranges::equal(items, types, [&](const Value& v, const TensorType& type) {
        if (!v.is_tensor() && !v.is_node()) return false;
        const TensorType given = type_of(v);
        return given.dtype == type.dtype && given.shape == call.with_batch(type.shape);
    });
}

// The argument of sample number i.
Value sample_of(const BatchCall& call, const Value& arg, const Value& batched, int64_t i) {
    if (batched.is_nil()) return arg;
    if (batched.is_list()) {
        std::vector<Value> items;
        for (size_t k = 0; k < arg.items().size(); ++k)
            items.push_back(sample_of(call, arg.items()[k], batched.items()[k], i));
        return Value::list(std::move(items));
    }
    return call.call("narrow", {Expr(call.builder, batched), int64_t{0}, i, int64_t{1}})
        .reshape(arg.tensor().shape())
        .value();
}

}  // namespace

bool BatchCall::is_batched(size_t i) const {
    const Value& v = batched[i];
    return v.is_list() ? std::ranges::any_of(v.items(), [](const Value& item) { return !item.is_nil(); }) : !v.is_nil();
}

Shape BatchCall::with_batch(const Shape& sample) const {
    Shape shape = sample;
    shape.insert(0, size);
    return shape;
}

Expr BatchCall::spread_of(const Value& sample, const Value& batch) const {
    if (!batch.is_nil()) return {builder, batch};
    if (!sample.is_tensor() && !sample.is_node()) return {builder, sample};
    return Expr(builder, sample).broadcast_to(with_batch(type_of(sample).shape));
}

Expr BatchCall::aligned_of(const Value& sample, const Value& batch, int rank) const {
    if (batch.is_nil()) return {builder, sample};
    const Shape& own = sample.tensor().shape();
    if (own.rank() >= rank) return {builder, batch};
    Shape shape{size};
    for (int k = own.rank(); k < rank; ++k) shape.push_back(1);
    for (int64_t n : own.dims()) shape.push_back(n);
    return Expr(builder, batch).reshape(shape);
}

Value apply_batch_rule(const BatchCall& call, const Types& types) {
    if (call.op.batch_fn) return call.op.batch_fn(call, types);
    return call.op.is_elementwise ? batch::elementwise(call, types) : Value();
}

std::vector<Value> separate_results(Builder& b, const Value& results) {
    if (results.is_list()) return results.items();
    if (!is_listed(results)) return {results};
    std::vector<Value> items;
    for (size_t i = 0; i < results.node()->type.items.size(); ++i) items.push_back(b.item(results, i));
    return items;
}

Value batched_results(const BatchCall& call) {
    const bool pure = call.op.is_repeatable();
    if (pure && call.op.infer_fn && has_batch_rule(call.op)) {
        const Types types = call.op.infer_fn(call);
        Value results = apply_batch_rule(call, types);
        if (!results.is_nil() && fits(call, results, types)) return results;
    }
    return pure && call.op.expand_fn ? Value() : one_by_one(call);
}

Value one_by_one(const BatchCall& call) {
    std::vector<std::vector<Expr>> columns;
    bool several = false;
    for (int64_t i = 0; i < call.size; ++i) {
        std::vector<Value> own;
        for (size_t k = 0; k < call.args.size(); ++k) own.push_back(sample_of(call, call.args[k], call.batched[k], i));
        const Value given = call.builder.emit(call.op, own);
        const std::vector<Value> results = separate_results(call.builder, given);
        several = is_listed(given);
        if (i == 0) columns.resize(results.size());
        if (results.size() != columns.size())
            throw state_error(call.op.name(), "the samples of a batch give different numbers of results");
        for (size_t k = 0; k < results.size(); ++k) columns[k].emplace_back(call.builder, results[k]);
    }
    std::vector<Value> stacked;
    for (const auto& column : columns)
        stacked.push_back(call.call("stack", {call.builder.list(column), int64_t{0}}).value());
    return several ? Value::list(std::move(stacked)) : stacked.at(0);
}

}  // namespace lunaria
