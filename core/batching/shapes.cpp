// Rules of vmap: order and shape of axes, parts and joints.
#include <algorithm>
#include <numeric>

#include "core/batching/helpers.h"

namespace lunaria::batch {

namespace {

// The first operand with its axes in another order, which is that of one sample.
Value in_order(const BatchCall& c, std::span<const int64_t> order) {
    Shape all{0};
    for (int64_t a : order) all.push_back(a + 1);
    return c.operand(0).transpose(all).value();
}

std::vector<int64_t> all_axes(const BatchCall& c) {
    std::vector<int64_t> order(static_cast<size_t>(c.rank(0)));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

std::vector<int64_t> in_front(int64_t first, std::vector<int64_t> list) {
    list.insert(list.begin(), first);
    return list;
}

// The arguments begin, end, strides and masks of strided_slice and slice_assign, from parameter `at` on, with the whole
// batch in front.
std::vector<Value> strided(const BatchCall& c, size_t at, std::vector<Value> args) {
    const std::vector<int64_t> begin = c.ints(at), end = c.ints(at + 1);
    std::vector<int64_t> strides = c.has(at + 2) ? c.ints(at + 2) : std::vector<int64_t>(begin.size(), 1);
    args[at] = Value::ints(in_front(0, begin));
    args[at + 1] = Value::ints(in_front(c.size, end));
    args[at + 2] = Value::ints(in_front(1, std::move(strides)));
    for (size_t k = 0; k < 5; ++k) args[at + 3 + k] = Value(c.integer(at + 3 + k) << 1);
    return args;
}

}  // namespace

Value transposed(const BatchCall& c, const Types&) {
    std::vector<int64_t> order = all_axes(c);
    if (c.args.size() > 2 && c.has(2)) {
        std::swap(order[static_cast<size_t>(normal_axis(c.name(), c.ints(1).at(0), c.rank(0), "dims"))],
                  order[static_cast<size_t>(c.axis(2, 0))]);
    } else if (c.args.size() > 1 && c.has(1)) {
        order = c.ints(1);
        for (int64_t& a : order) a += a < 0 ? c.rank(0) : 0;
    } else {
        std::ranges::reverse(order);
    }
    return in_order(c, order);
}

Value axes_swapped(const BatchCall& c, const Types&) {
    std::vector<int64_t> order = all_axes(c);
    std::swap(order[static_cast<size_t>(c.axis(1, 0))], order[static_cast<size_t>(c.axis(2, 0))]);
    return in_order(c, order);
}

Value axes_moved(const BatchCall& c, const Types&) {
    const int rank = c.rank(0);
    auto normal = [&](int64_t a) { return a < 0 ? a + rank : a; };
    const auto from = c.ints(1), to = c.ints(2);
    std::vector<int64_t> rest, moved(static_cast<size_t>(rank), -1);
    for (size_t k = 0; k < from.size(); ++k) moved[static_cast<size_t>(normal(to[k]))] = normal(from[k]);
    for (int64_t a : all_axes(c))
        if (std::ranges::none_of(from, [&](int64_t f) { return normal(f) == a; })) rest.push_back(a);
    size_t next = 0;
    for (int64_t& a : moved)
        if (a < 0) a = rest[next++];
    return in_order(c, moved);
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

Value sliced(const BatchCall& c, const Types&) {
    return c.builder
        .call(c.name(), {c.operand(0), Value::ints(in_front(0, c.ints(1))), Value::ints(in_front(c.size, c.ints(2)))})
        .value();
}

Value strided_slice(const BatchCall& c, const Types&) {
    std::vector<Value> args = arguments(c);
    args[0] = c.operand(0).value();
    return emit(c, strided(c, 1, std::move(args)));
}

Value slice_assign(const BatchCall& c, const Types&) {
    static const Op& part = registry().get("strided_slice");
    std::vector<Value> args = arguments(c);
    std::vector<Value> reads = args;
    reads.erase(reads.begin() + 1);
    const Shape region = part.infer_fn(Call(part, reads, c.dtype))[0].shape;
    args[0] = c.spread(0).value();
    args[1] = c.aligned(1, region.rank()).value();
    return emit(c, strided(c, 2, std::move(args)));
}

Value diagonal(const BatchCall& c, const Types&) {
    if (!only_first(c)) return {};
    std::vector<Value> args = arguments(c);
    args[0] = c.operand(0).value();
    for (size_t i : {2, 3}) args[i] = Value(static_cast<int64_t>(c.axis(i, 0)) + 1);
    return emit(c, std::move(args));
}

}  // namespace lunaria::batch
