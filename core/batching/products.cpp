// Rules of vmap: products of matrices, linear systems, convolutions.
#include <algorithm>

#include "core/batching/helpers.h"

namespace lunaria::batch {

namespace {

// Matrix products: vectors become matrices with one row or column, so that all leading axes broadcast.
Expr product(const BatchCall& c, const Expr& a, const Shape& a_shape, bool a_batched, const Expr& b,
             const Shape& b_shape, bool b_batched, const Shape& result) {
    const int ra = a_shape.rank(), rb = b_shape.rank();
    // Rows that all meet the same matrix are one product.
    if (!b_batched && rb == 2) return c.call("matmul", {a, b}).reshape(c.with_batch(result));
    if (!a_batched && ra == 2 && rb == 1)
        return c.call("matmul", {b, a.transpose({1, 0})}).reshape(c.with_batch(result));
    const int leading = std::max(std::max(ra, rb) - 2, 0);
    auto matrices = [&](const Expr& x, const Shape& shape, bool batched, bool row) {
        Shape m = shape;
        if (shape.rank() == 1) m = row ? Shape{1, shape[0]} : Shape{shape[0], 1};
        Shape full;
        if (batched) {
            full.push_back(c.size);
            for (int k = m.rank() - 2; k < leading; ++k) full.push_back(1);
        }
        for (int64_t n : m.dims()) full.push_back(n);
        return x.shape() == full ? x : x.reshape(full);
    };
    const Expr left = matrices(a, a_shape, a_batched, true), right = matrices(b, b_shape, b_batched, false);
    // A product of one column and one row sums nothing: as an elementwise product it writes long rows as fast as memory
    // takes them.
    constexpr int64_t kLongRow = 256;
    const bool outer = left.shape()[left.rank() - 1] == 1 && right.shape()[right.rank() - 1] >= kLongRow;
    return (outer ? left * right : c.call("matmul", {left, right})).reshape(c.with_batch(result));
}

}  // namespace

Value matrix_product(const BatchCall& c, const Types& types) {
    return product(c, c.operand(0), c.shape(0), c.is_batched(0), c.operand(1), c.shape(1), c.is_batched(1),
                   types[0].shape)
        .value();
}

Value dense(const BatchCall& c, const Types& types) {
    if (only_first(c)) return of_first(c, types);
    const Shape w = c.shape(1);
    if (w.rank() != 2) return {};
    Expr weight = c.is_batched(1) ? c.operand(1).transpose({0, 2, 1}) : c.operand(1).transpose({1, 0});
    Expr y = product(c, c.spread(0), c.shape(0), true, weight, {w[1], w[0]}, c.is_batched(1), types[0].shape);
    if (c.has(2)) y = y + c.aligned(2, types[0].shape.rank());
    return y.value();
}

Value solved(const BatchCall& c, const Types&) {
    if (c.rank(0) < 2 || (c.rank(0) != c.rank(1) && c.rank(0) - 1 != c.rank(1))) return {};
    return emit(c, spread_all(c));
}

Value convolution(const BatchCall& c, const Types& types) {
    return c.rank(0) == c.rank(1) ? shared_weights(c, types) : Value();
}

Value conv_input_grad(const BatchCall& c, const Types& types) {
    std::vector<Value> args = arguments(c);
    std::vector<int64_t> size = c.ints(2);
    if (static_cast<int>(size.size()) != c.rank(0)) return {};
    size[0] *= c.size;
    args[2] = Value::ints(size);
    return merged_first(c, types, std::move(args));
}

// Samples become groups of channels.
Value conv_weight_grad(const BatchCall& c, const Types& types) {
    std::vector<Value> args = arguments(c);
    for (size_t i : {0, 1}) {
        Shape shape = c.shape(i), order{1, 0};
        for (int k = 2; k <= shape.rank(); ++k) order.push_back(k);
        shape[1] *= c.size;
        args[i] = c.spread(i).transpose(order).reshape(shape).value();
    }
    std::vector<int64_t> size = c.ints(2);
    size[0] *= c.size;
    args[2] = Value::ints(size);
    args[6] = Value(c.integer(6) * c.size);
    return result_shape(c, emit(c, std::move(args)), types[0]).value();
}

}  // namespace lunaria::batch
