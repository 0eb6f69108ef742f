#include "core/batching/batching.h"

#include <algorithm>

#include "core/batching/rules.h"

namespace lunaria {

bool BatchCall::is_batched(size_t i) const {
    const Value& v = batched[i];
    return v.is_list() ? std::ranges::any_of(v.items(), [](const Value& item) { return !item.is_nil(); }) : !v.is_nil();
}

Shape BatchCall::with_batch(const Shape& sample) const {
    Shape shape{size};
    for (int64_t n : sample.dims()) shape.push_back(n);
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

}  // namespace lunaria
