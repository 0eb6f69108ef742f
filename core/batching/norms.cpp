// Rules of vmap: normalisation.
#include "core/batching/helpers.h"

namespace lunaria::batch {

Value layer_norm(const BatchCall& c, const Types& types) {
    if (only_first(c)) return of_first(c, types);
    Expr y = c.call("layer_norm", {c.spread(0), c.args[1], Value(), Value(), c.args[4]});
    if (c.has(2)) y = y * c.aligned(2, c.rank(0));
    if (c.has(3)) y = y + c.aligned(3, c.rank(0));
    return y.value();
}

// The gradients of weight and bias are sums over the rows of one sample.
Value layer_norm_grad(const BatchCall& c, const Types& types) {
    if (c.is_batched(2)) return {};
    const Expr dy = c.spread(0), x = c.spread(1);
    const Expr all = c.call("layer_norm_grad", {dy, x, c.in(2), c.args[3], c.args[4]});
    const int rank = c.rank(1), kept = types[1].shape.rank();
    if (kept > rank || types[2].shape.rank() != kept) return {};
    Shape sizes = c.shape(1), normalized, rows;
    for (int64_t k = rank - c.integer(3); k < rank; ++k) normalized.push_back(sizes[static_cast<int>(k)]);
    for (int k = 0; k < rank - kept; ++k) rows.push_back(k + 1);
    const Expr scaled = c.call("layer_norm", {x, normalized, Value(), Value(), c.args[4]}) * dy;
    auto sum = [&](const Expr& e, const TensorType& type) {
        return (rows.rank() > 0 ? e.sum(rows) : e).reshape(c.with_batch(type.shape)).value();
    };
    return Value::list({all[0].value(), sum(scaled, types[1]), sum(dy, types[2])});
}

}  // namespace lunaria::batch
