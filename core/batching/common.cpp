#include <algorithm>

#include "core/batching/helpers.h"

namespace lunaria::batch {

namespace {

std::vector<int64_t> shifted(const Shape& axes) {
    std::vector<int64_t> list(axes.dims().begin(), axes.dims().end());
    for (int64_t& a : list) ++a;
    return list;
}

Value reduced_by_one(const BatchCall& c, const Types& types, std::string_view index) {
    std::vector<Value> args = arguments(c);
    Expr x = c.operand(0);
    if (!c.has(1) || c.rank(0) == 0) {
        if (types.size() != 1) return {};
        const int64_t count = c.shape(0).size();
        x = x.reshape({c.size, count});
        if (!index.empty()) return result_shape(c, c.call(index, {x, int64_t{1}}).value(), types[0]).value();
        args[0] = x.value();
        args[1] = Value(int64_t{1});
        return result_shape(c, emit(c, std::move(args)), types[0]).value();
    }
    args[0] = x.value();
    args[1] = Value(static_cast<int64_t>(c.axis(1, 0)) + 1);
    return emit(c, std::move(args));
}

}  // namespace

// As promised in helpers.h: the arguments with their operands spread.
std::vector<Value> spread_all(const BatchCall& c) {
    std::vector<Value> args = arguments(c);
    for (size_t i = 0; i < args.size(); ++i)
        if (is_operand(c, i)) args[i] = c.spread(i).value();
    return args;
}

bool only_first(const BatchCall& c) {
    for (size_t i = 1; i < c.args.size(); ++i)
        if (c.is_batched(i)) return false;
    return true;
}

Expr result_shape(const BatchCall& c, Value result, const TensorType& type) {
    Expr y(c.builder, std::move(result));
    const Shape wanted = c.with_batch(type.shape);
    return y.shape() == wanted ? y : y.reshape(wanted);
}

Value elementwise(const BatchCall& c, const Types&) {
    int rank = 0;
    for (size_t i = 0; i < c.args.size(); ++i)
        if (is_operand(c, i)) rank = std::max(rank, c.rank(i));
    std::vector<Value> args = arguments(c);
    for (size_t i = 0; i < args.size(); ++i)
        if (is_operand(c, i)) args[i] = c.aligned(i, rank).value();
    return emit(c, std::move(args));
}

Value last_axes_of(const BatchCall& c, int least) {
    for (size_t i = 0; i < c.args.size(); ++i)
        if (is_operand(c, i) && c.rank(i) < least) return {};
    return emit(c, spread_all(c));
}

Value of_first(const BatchCall& c, const Types&) {
    if (!only_first(c)) return {};
    std::vector<Value> args = arguments(c);
    args[0] = c.operand(0).value();
    return emit(c, std::move(args));
}

Value along_axis(const BatchCall& c, size_t at) {
    for (size_t i = 0; i < c.args.size(); ++i)
        if (is_operand(c, i) && (c.args[i].is_list() || c.rank(i) == 0 || c.rank(i) != c.rank(0))) return {};
    std::vector<Value> args = spread_all(c);
    if (c.args[at].is_list())
        // No axes means none here, not all as in a reduction.
        args[at] = Value::ints(c.ints(at).empty() ? std::vector<int64_t>() : shifted(c.axes(at, 0)));
    else
        args[at] = c.has(at) ? Value(static_cast<int64_t>(c.axis(at, 0)) + 1) : Value(int64_t{-1});
    return emit(c, std::move(args));
}

Value reduced(const BatchCall& c, const Types& types, size_t at) {
    std::vector<Value> args = arguments(c);
    Expr x = c.operand(0);
    std::vector<int64_t> axes = shifted(c.axes(at, 0));
    if (c.rank(0) == 0) {
        x = x.reshape({c.size, 1});
        axes = {1};
    }
    args[0] = x.value();
    args[at] = Value::ints(axes);
    return result_shape(c, emit(c, std::move(args)), types[0]).value();
}

Value reduction_by_one(const BatchCall& c, const Types& types) { return reduced_by_one(c, types, {}); }
// With an axis these two return indices as well.
Value largest(const BatchCall& c, const Types& types) { return reduced_by_one(c, types, "amax"); }
Value smallest(const BatchCall& c, const Types& types) { return reduced_by_one(c, types, "amin"); }

Value reshaped(const BatchCall& c, const Types& types) {
    return c.operand(0).reshape(c.with_batch(types[0].shape)).value();
}

Value merged(const BatchCall& c, const Types& types) {
    std::vector<Value> args = arguments(c);
    for (size_t i = 0; i < args.size(); ++i) {
        if (!is_operand(c, i)) continue;
        Shape shape = c.shape(i);
        if (shape.rank() == 0) return {};
        shape[0] *= c.size;
        args[i] = c.spread(i).reshape(shape).value();
    }
    const Value results = emit(c, std::move(args));
    if (types.size() == 1 && !results.is_list()) return result_shape(c, results, types[0]).value();
    std::vector<Value> items;
    for (size_t j = 0; j < types.size(); ++j)
        items.push_back(result_shape(c, c.builder.item(results, j), types[j]).value());
    return Value::list(std::move(items));
}

Value merged_first(const BatchCall& c, const Types& types, std::vector<Value> args) {
    if (!only_first(c)) return {};
    Shape shape = c.shape(0);
    if (shape.rank() == 0) return {};
    shape[0] *= c.size;
    args[0] = c.operand(0).reshape(shape).value();
    return result_shape(c, emit(c, std::move(args)), types[0]).value();
}

Value shared_weights(const BatchCall& c, const Types& types) { return merged_first(c, types, arguments(c)); }

}  // namespace lunaria::batch
