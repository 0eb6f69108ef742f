#include "core/batching.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace lunaria {

namespace {

using Rule = Value (*)(const BatchCall&, const Types&);

bool is_operand(const BatchCall& c, size_t i) { return is_tensor_type(c.op.signature.params[i].type) && c.has(i); }

Value emit(const BatchCall& c, std::vector<Value> args) { return c.builder.emit(c.op, args); }

// The arguments with their operands spread.
std::vector<Value> spread_all(const BatchCall& c) {
    std::vector<Value> args(c.args.begin(), c.args.end());
    for (size_t i = 0; i < args.size(); ++i)
        if (is_operand(c, i)) args[i] = c.spread(i).value();
    return args;
}

bool only_first(const BatchCall& c) {
    for (size_t i = 1; i < c.args.size(); ++i)
        if (c.is_batched(i)) return false;
    return true;
}

std::vector<int64_t> shifted(const Shape& axes) {
    std::vector<int64_t> list(axes.dims().begin(), axes.dims().end());
    for (int64_t& a : list) ++a;
    return list;
}

Expr result_shape(const BatchCall& c, Value result, const TensorType& type) {
    Expr y(c.builder, std::move(result));
    const Shape wanted = c.with_batch(type.shape);
    return y.shape() == wanted ? y : y.reshape(wanted);
}

// Operators that broadcast and work element by element.
Value elementwise(const BatchCall& c, const Types&) {
    int rank = 0;
    for (size_t i = 0; i < c.args.size(); ++i)
        if (is_operand(c, i)) rank = std::max(rank, c.rank(i));
    std::vector<Value> args(c.args.begin(), c.args.end());
    for (size_t i = 0; i < args.size(); ++i)
        if (is_operand(c, i)) args[i] = c.aligned(i, rank).value();
    return emit(c, std::move(args));
}

// What works on the last axes alone, whatever is in front of them.
template <int least = 0>
Value last_axes(const BatchCall& c, const Types&) {
    for (size_t i = 0; i < c.args.size(); ++i)
        if (is_operand(c, i) && c.rank(i) < least) return {};
    return emit(c, spread_all(c));
}

// The same where only the first operand may differ from sample to sample.
Value of_first(const BatchCall& c, const Types&) {
    if (!only_first(c)) return {};
    std::vector<Value> args(c.args.begin(), c.args.end());
    args[0] = c.operand(0).value();
    return emit(c, std::move(args));
}

// All operands have one rank and the operator works along an axis, parameter `at`.
template <size_t at>
Value along(const BatchCall& c, const Types&) {
    for (size_t i = 0; i < c.args.size(); ++i)
        if (is_operand(c, i) && (c.args[i].is_list() || c.rank(i) == 0 || c.rank(i) != c.rank(0))) return {};
    std::vector<Value> args = spread_all(c);
    if (c.args[at].is_list())
        args[at] = Value::ints(shifted(c.axes(at, 0)));
    else
        args[at] = c.has(at) ? Value(static_cast<int64_t>(c.axis(at, 0)) + 1) : Value(int64_t{-1});
    return emit(c, std::move(args));
}

// Reductions: nil stands for all axes.
template <size_t at>
Value reduction(const BatchCall& c, const Types& types) {
    std::vector<Value> args(c.args.begin(), c.args.end());
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

// Reductions by one axis: nil stands for the elements in a row.
Value reduction_by_one(const BatchCall& c, const Types& types) {
    std::vector<Value> args(c.args.begin(), c.args.end());
    Expr x = c.operand(0);
    if (!c.has(1) || c.rank(0) == 0) {
        if (types.size() != 1) return {};
        const int64_t count = c.shape(0).size();
        x = x.reshape({c.size, count});
        // With an axis these two give indices, too.
        if (c.name() == "max" || c.name() == "min")
            return result_shape(c, c.call(str("a", c.name()), {x, int64_t{1}}).value(), types[0]).value();
        args[0] = x.value();
        args[1] = Value(int64_t{1});
        return result_shape(c, emit(c, std::move(args)), types[0]).value();
    }
    args[0] = x.value();
    args[1] = Value(static_cast<int64_t>(c.axis(1, 0)) + 1);
    return emit(c, std::move(args));
}

Value reshaped(const BatchCall& c, const Types& types) {
    return c.operand(0).reshape(c.with_batch(types[0].shape)).value();
}

// Which axis of the sample each axis of the result is: found by the types where the sizes differ, by the parameters
// otherwise.
Value transposed(const BatchCall& c, const Types&) {
    const std::string_view name = c.name();
    const int rank = c.rank(0);
    std::vector<int64_t> order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    auto normal = [&](int64_t a) { return a < 0 ? a + rank : a; };
    if (name == "swapaxes") {
        std::swap(order[static_cast<size_t>(c.axis(1, 0))], order[static_cast<size_t>(c.axis(2, 0))]);
    } else if (name == "movedim") {
        const auto from = c.ints(1), to = c.ints(2);
        std::vector<int64_t> rest, moved(order.size(), -1);
        for (size_t k = 0; k < from.size(); ++k) moved[static_cast<size_t>(normal(to[k]))] = normal(from[k]);
        for (int64_t a : order)
            if (std::ranges::none_of(from, [&](int64_t f) { return normal(f) == a; })) rest.push_back(a);
        size_t next = 0;
        for (int64_t& a : moved)
            if (a < 0) a = rest[next++];
        order = moved;
    } else if (name != "t" && c.has(1)) {
        order = c.ints(1);
        for (int64_t& a : order) a = normal(a);
    } else {
        std::ranges::reverse(order);
    }
    Shape all{0};
    for (int64_t a : order) all.push_back(a + 1);
    return c.operand(0).transpose(all).value();
}

Value broadcast(const BatchCall& c, const Types& types) {
    return c.aligned(0, types[0].shape.rank()).broadcast_to(c.with_batch(types[0].shape)).value();
}

Value joined(const BatchCall& c, const Types&) {
    std::vector<Expr> items;
    for (size_t k = 0; k < c.args[0].items().size(); ++k)
        items.push_back(c.spread_of(c.args[0].items()[k], c.batched[0].items()[k]));
    const int64_t axis = c.integer(1);
    return c.builder.call(c.name(), {c.builder.list(items), axis < 0 ? axis : axis + 1}).value();
}

std::vector<int64_t> in_front(int64_t first, std::vector<int64_t> list) {
    list.insert(list.begin(), first);
    return list;
}

Value sliced(const BatchCall& c, const Types&) {
    return c.builder
        .call(c.name(), {c.operand(0), Value::ints(in_front(0, c.ints(1))), Value::ints(in_front(c.size, c.ints(2)))})
        .value();
}

// begin, end, strides and masks of strided_slice and slice_assign from parameter `at` on, for the whole batch first.
std::vector<Value> strided(const BatchCall& c, size_t at, std::vector<Value> args) {
    const std::vector<int64_t> begin = c.ints(at), end = c.ints(at + 1);
    std::vector<int64_t> strides = c.has(at + 2) ? c.ints(at + 2) : std::vector<int64_t>(begin.size(), 1);
    args[at] = Value::ints(in_front(0, begin));
    args[at + 1] = Value::ints(in_front(c.size, end));
    args[at + 2] = Value::ints(in_front(1, std::move(strides)));
    for (size_t k = 0; k < 5; ++k) args[at + 3 + k] = Value(c.integer(at + 3 + k) << 1);
    return args;
}

Value strided_slice(const BatchCall& c, const Types&) {
    std::vector<Value> args(c.args.begin(), c.args.end());
    args[0] = c.operand(0).value();
    return emit(c, strided(c, 1, std::move(args)));
}

Value slice_assign(const BatchCall& c, const Types&) {
    static const Op& part = registry().get("strided_slice");
    std::vector<Value> args(c.args.begin(), c.args.end());
    std::vector<Value> reads = args;
    reads.erase(reads.begin() + 1);
    const Shape region = part.infer_fn(Call(part, reads, c.dtype))[0].shape;
    args[0] = c.spread(0).value();
    args[1] = c.aligned(1, region.rank()).value();
    return emit(c, strided(c, 2, std::move(args)));
}

// Matrix products: vectors become matrices with one row or column, so that all leading axes broadcast.
Expr product(const BatchCall& c, const Expr& a, const Shape& a_shape, bool a_batched, const Expr& b,
             const Shape& b_shape, bool b_batched, const Shape& result) {
    const int ra = a_shape.rank(), rb = b_shape.rank();
    // Rows that all meet one matrix are one product.
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
    // Of one column and one row it is no sum: a product of elements writes long rows as fast as memory takes them.
    constexpr int64_t kLongRow = 256;
    const bool outer = left.shape()[left.rank() - 1] == 1 && right.shape()[right.rank() - 1] >= kLongRow;
    return (outer ? left * right : c.call("matmul", {left, right})).reshape(c.with_batch(result));
}

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

// The first axis of every operand is a batch already: both become one.
Value merge(const BatchCall& c, const Types& types, std::vector<Value> args) {
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
Value merged(const BatchCall& c, const Types& types) { return merge(c, types, {c.args.begin(), c.args.end()}); }

// The same for the first operand and others that all samples share.
Value merged_first(const BatchCall& c, const Types& types, std::vector<Value> args) {
    if (!only_first(c)) return {};
    Shape shape = c.shape(0);
    if (shape.rank() == 0) return {};
    shape[0] *= c.size;
    args[0] = c.operand(0).reshape(shape).value();
    return result_shape(c, emit(c, std::move(args)), types[0]).value();
}

Value shared_weights(const BatchCall& c, const Types& types) {
    return merged_first(c, types, {c.args.begin(), c.args.end()});
}

Value convolution(const BatchCall& c, const Types& types) {
    return c.rank(0) == c.rank(1) ? shared_weights(c, types) : Value();
}

Value conv_input_grad(const BatchCall& c, const Types& types) {
    std::vector<Value> args(c.args.begin(), c.args.end());
    std::vector<int64_t> size = c.ints(2);
    if (static_cast<int>(size.size()) != c.rank(0)) return {};
    size[0] *= c.size;
    args[2] = Value::ints(size);
    return merged_first(c, types, std::move(args));
}

// Samples become groups of channels.
Value conv_weight_grad(const BatchCall& c, const Types& types) {
    std::vector<Value> args(c.args.begin(), c.args.end());
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

// Indices of sample b count from b * count on; negative ones stay negative where `keep`, and count from the end
// otherwise.
Expr offset_indices(const BatchCall& c, const Expr& indices, int64_t count, bool keep) {
    Shape column{c.size};
    while (column.rank() < indices.rank()) column.push_back(1);
    const Expr first = c.call("arange", {int64_t{0}, c.size * count, count, Value(DType::i64)}).reshape(column);
    const Expr below = c.call("less", {indices, int64_t{0}});
    if (keep) return c.call("where", {below, indices, indices + first});
    return c.call("where", {below, indices + Expr(c.builder, Value(count)), indices}) + first;
}

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
    // One table of all samples, one row for each index.
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

Value layer_norm(const BatchCall& c, const Types& types) {
    if (only_first(c)) return of_first(c, types);
    Expr y = c.call("layer_norm", {c.spread(0), c.args[1], Value(), Value(), c.args[4]});
    if (c.has(2)) y = y * c.aligned(2, c.rank(0));
    if (c.has(3)) y = y + c.aligned(3, c.rank(0));
    return y.value();
}

// The gradients of weight and bias are sums over the rows of one sample each.
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

Value one_hot(const BatchCall& c, const Types&) {
    if (!only_first(c)) return {};
    std::vector<Value> args(c.args.begin(), c.args.end());
    args[0] = c.operand(0).value();
    const int64_t axis = c.integer(4);
    args[4] = Value(axis < 0 ? axis : axis + 1);
    return emit(c, std::move(args));
}

Value diagonal(const BatchCall& c, const Types&) {
    if (!only_first(c)) return {};
    std::vector<Value> args(c.args.begin(), c.args.end());
    args[0] = c.operand(0).value();
    for (size_t i : {2, 3}) args[i] = Value(static_cast<int64_t>(c.axis(i, 0)) + 1);
    return emit(c, std::move(args));
}

Value index_add(const BatchCall& c, const Types&) {
    if (c.is_batched(1)) return {};
    return c.call("index_add", {c.spread(0), c.in(1), c.spread(2), c.axis(3, 0) + 1, {"alpha", c.args[4]}}).value();
}

Value solved(const BatchCall& c, const Types&) {
    if (c.rank(0) < 2 || c.rank(0) != c.rank(1)) return {};
    return emit(c, spread_all(c));
}

const std::unordered_map<std::string_view, Rule>& rules() {
    static const std::unordered_map<std::string_view, Rule> table{
        {"bernoulli_cross_entropy", last_axes<0>},
        {"sigmoid_cross_entropy", last_axes<0>},
        {"cast", of_first},
        {"identity", of_first},
        {"stop_gradient", of_first},
        {"valid_labels", of_first},
        {"view_as_real", of_first},
        {"view_as_complex", of_first},
        {"tril", last_axes<2>},
        {"triu", last_axes<2>},
        {"inverse", last_axes<2>},
        {"det", last_axes<2>},
        {"cofactor", last_axes<2>},
        {"slogdet", last_axes<2>},
        {"cholesky", last_axes<2>},
        {"qr", last_axes<2>},
        {"eigh", last_axes<2>},
        {"svd_factors", last_axes<2>},
        {"pinv", last_axes<2>},
        {"matrix_exp", last_axes<2>},
        {"matrix_solve", solved},
        {"softmax", along<1>},
        {"log_softmax", along<1>},
        {"softmax_grad", along<2>},
        {"log_softmax_grad", along<2>},
        {"cumsum", along<1>},
        {"cumprod", along<1>},
        {"logcumsumexp", along<1>},
        {"cummax", along<1>},
        {"cummin", along<1>},
        {"linear_recurrence", along<2>},
        {"sort", along<1>},
        {"argsort", along<1>},
        {"topk", along<2>},
        {"median", along<1>},
        {"nanmedian", along<1>},
        {"kthvalue", along<2>},
        {"flip", along<1>},
        {"narrow", along<1>},
        {"split", along<2>},
        {"chunk", along<2>},
        {"unbind", along<1>},
        {"tensor_split", along<2>},
        {"gather_elements", along<1>},
        {"tensor_scatter_elements", along<3>},
        {"sum", reduction<1>},
        {"mean", reduction<1>},
        {"prod", reduction<1>},
        {"amax", reduction<1>},
        {"amin", reduction<1>},
        {"all", reduction<1>},
        {"any", reduction<1>},
        {"var", reduction<1>},
        {"std", reduction<1>},
        {"logsumexp", reduction<1>},
        {"vector_norm", reduction<2>},
        {"max", reduction_by_one},
        {"min", reduction_by_one},
        {"argmax", reduction_by_one},
        {"argmin", reduction_by_one},
        {"reshape", reshaped},
        {"squeeze", reshaped},
        {"expand_dims", reshaped},
        {"transpose", transposed},
        {"permute", transposed},
        {"swapaxes", transposed},
        {"movedim", transposed},
        {"t", transposed},
        {"broadcast_to", broadcast},
        {"expand_as", broadcast},
        {"concat", joined},
        {"slice", sliced},
        {"strided_slice", strided_slice},
        {"slice_assign", slice_assign},
        {"diagonal", diagonal},
        {"matmul", matrix_product},
        {"mm", matrix_product},
        {"bmm", matrix_product},
        {"mv", matrix_product},
        {"dense", dense},
        {"conv1d", convolution},
        {"conv2d", convolution},
        {"conv3d", convolution},
        {"conv_input_grad", conv_input_grad},
        {"conv_weight_grad", conv_weight_grad},
        {"max_window", last_axes<1>},
        {"argmax_window", last_axes<1>},
        {"max_window_grad", last_axes<1>},
        {"plane_gather", last_axes<1>},
        {"plane_scatter", last_axes<1>},
        {"avg_pool1d", merged},
        {"avg_pool2d", merged},
        {"avg_pool3d", merged},
        {"avg_pool_grad", last_axes<1>},
        {"adaptive_argmax", last_axes<1>},
        {"attention", merged},
        {"attention_grad", merged},
        {"gather", gather},
        {"unsorted_segment_sum", segment_sum},
        {"index_add", index_add},
        {"one_hot", one_hot},
        {"layer_norm", layer_norm},
        {"layer_norm_grad", layer_norm_grad},
        {"rms_norm", of_first},
        {"group_norm", shared_weights},
        {"dft", along<2>},
        {"dft_real", along<2>},
    };
    return table;
}

}  // namespace

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

bool has_batch_rule(const Op& op) {
    return op.host_fn || op.is_elementwise || op.batch_rule == Batching::elementwise || rules().contains(op.name());
}

Value apply_batch_rule(const BatchCall& call, const Types& types) {
    if (call.op.is_elementwise || call.op.batch_rule == Batching::elementwise) return elementwise(call, types);
    const auto found = rules().find(call.op.name());
    return found == rules().end() ? Value() : found->second(call, types);
}

}  // namespace lunaria
