// Rules of vmap: elements and segments by index.
#include "core/batching/helpers.h"

namespace lunaria::batch {

namespace {

// Moves the indices of sample b by b * count. Negative indices stay negative where `keep`, and count from the end
// otherwise.
Expr offset_indices(const BatchCall& c, const Expr& indices, int64_t count, bool keep) {
    Shape column{c.size};
    while (column.rank() < indices.rank()) column.push_back(1);
    const Expr first = c.call("arange", {int64_t{0}, c.size * count, count, Value(DType::i64)}).reshape(column);
    const Expr below = c.call("less", {indices, int64_t{0}});
    if (keep) return c.call("where", {below, indices, indices + first});
    return c.call("where", {below, indices + Expr(c.builder, Value(count)), indices}) + first;
}

}  // namespace

Value gather(const BatchCall& c, const Types&) {
    const int axis = c.axis(2, 0);
    if (!c.is_batched(1)) return c.call("gather", {c.operand(0), c.in(1), axis + 1}).value();
    const int rank = c.rank(0), places = c.rank(1);
    Expr y;
    if (!c.is_batched(0)) {
        y = c.call("gather", {c.in(0), c.operand(1), axis});
        if (axis == 0) return y.value();
        Shape order{axis};
        for (int k = 0; k < y.rank(); ++k)
            if (k != axis) order.push_back(k);
        return y.transpose(order).value();
    }
    // The tables of all samples become one, with one row for each index.
    Shape front{0, axis + 1};
    for (int k = 1; k <= rank; ++k)
        if (k != axis + 1) front.push_back(k);
    Expr x = c.operand(0).transpose(front);
    const int64_t count = c.shape(0)[axis];
    Shape table{c.size * count};
    for (int k = 2; k < x.rank(); ++k) table.push_back(x.shape()[k]);
    y = c.call("gather", {x.reshape(table), offset_indices(c, c.operand(1), count, false), int64_t{0}});
    Shape order{0};
    for (int k = 0; k < axis; ++k) order.push_back(1 + places + k);
    for (int k = 0; k < places; ++k) order.push_back(1 + k);
    for (int k = axis; k < rank - 1; ++k) order.push_back(1 + places + k);
    return y.transpose(order).value();
}

Value segment_sum(const BatchCall& c, const Types& types) {
    const int64_t count = c.integer(2);
    const Expr ids = offset_indices(c, c.spread(1), count, true);
    Shape flat_ids{ids.shape().size()}, flat{ids.shape().size()};
    for (int k = c.rank(1); k < c.rank(0); ++k) flat.push_back(c.shape(0)[k]);
    Expr y = c.call(c.name(), {c.spread(0).reshape(flat), ids.reshape(flat_ids), count * c.size});
    return y.reshape(c.with_batch(types[0].shape)).value();
}

Value one_hot(const BatchCall& c, const Types&) {
    if (!only_first(c)) return {};
    std::vector<Value> args = arguments(c);
    args[0] = c.operand(0).value();
    const int64_t axis = c.integer(4);
    args[4] = Value(axis < 0 ? axis : axis + 1);
    return emit(c, std::move(args));
}

Value index_add(const BatchCall& c, const Types&) {
    if (c.is_batched(1)) return {};
    return c.call("index_add", {c.spread(0), c.in(1), c.spread(2), c.axis(3, 0) + 1, {"alpha", c.args[4]}}).value();
}

}  // namespace lunaria::batch
