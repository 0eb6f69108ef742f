#include "core/parallel/laid_views.h"

#include <algorithm>
#include <functional>

#include "core/operator/expr.h"
#include "core/operator/op.h"

namespace lunaria::parallel {

namespace {

// A view as a block of its base, its axes in another order and repeated axes.
struct Parts {
    std::vector<int64_t> begin, size;  // of the block, for each axis of the base
    std::vector<int> order;            // the axes of the base in the order in which the view has them
};

// False where the view has steps or merges axes of the base.
bool find_parts(const Tensor& view, const Shape& base, Parts& parts) {
    const Strides strides = contiguous_strides(base);
    const int rank = base.rank();
    parts.begin.assign(static_cast<size_t>(rank), 0);
    parts.size.assign(static_cast<size_t>(rank), 1);
    int64_t offset = view.offset();
    for (int k = 0; k < rank; ++k) {
        if (base[k] <= 1) continue;
        parts.begin[static_cast<size_t>(k)] = offset / strides[k];
        offset %= strides[k];
    }
    std::vector<bool> used(static_cast<size_t>(rank), false);
    for (int a = 0; a < view.rank(); ++a) {
        if (view.dim(a) == 1 || view.strides()[a] == 0) continue;
        int found = -1;
        for (int k = 0; k < rank && found < 0; ++k)
            if (!used[static_cast<size_t>(k)] && base[k] > 1 && strides[k] == view.strides()[a]) found = k;
        if (found < 0 || parts.begin[static_cast<size_t>(found)] + view.dim(a) > base[found]) return false;
        used[static_cast<size_t>(found)] = true;
        parts.size[static_cast<size_t>(found)] = view.dim(a);
        parts.order.push_back(found);
    }
    for (int k = 0; k < rank; ++k)
        if (!used[static_cast<size_t>(k)]) parts.order.push_back(k);
    return true;
}

Tensor call_operator(std::string_view name, std::initializer_list<Arg> args) {
    return eager_builder().call(name, args).value().tensor();
}

// The axes of a view of all elements of its base, in the order of memory; empty where it is no such view.
std::vector<int> dense_order(const Tensor& view, const Shape& base) {
    if (view.size() != base.size() || view.offset() != 0) return {};
    std::vector<int> order;
    for (int a = 0; a < view.rank(); ++a)
        if (view.dim(a) != 1) order.push_back(a);
    std::ranges::sort(order, std::greater(), [&](int a) { return view.strides()[a]; });
    int64_t stride = 1;
    for (size_t k = order.size(); k-- > 0;) {
        if (view.strides()[order[k]] != stride) return {};
        stride *= view.dim(order[k]);
    }
    return order;
}

// A view that splits or merges axes of its base, which may be in another order.
Tensor rearranged(const Tensor& view, const Tensor& base, const std::vector<int>& order) {
    Shape split, places(std::vector<int64_t>(order.size()));
    for (size_t k = 0; k < order.size(); ++k) {
        split.push_back(view.dim(order[k]));
        const auto before = std::ranges::count_if(order, [&](int a) { return a < order[k]; });
        places[static_cast<int>(before)] = static_cast<int64_t>(k);
    }
    Tensor t = call_operator("reshape", {Value(base), Value::ints(split)});
    t = call_operator("permute", {Value(t), Value::ints(places)});
    return call_operator("reshape", {Value(t), Value::ints(view.shape())});
}

}  // namespace

Laid content_of_view(const Tensor& view, const Tensor& base) {
    const Shape& from = base.shape();
    Parts parts;
    const bool has_parts = view.size() > 0 && find_parts(view, from, parts);
    if (!has_parts && view.size() > 0)
        if (const std::vector<int> order = dense_order(view, from); !order.empty())
            return content(rearranged(view, base, order));
    if (!has_parts) {
        const Tensor all = whole(content(base));
        return {nullptr, view.dtype(), view.shape(), {all.view(view.shape(), view.strides(), view.offset()).copy()}};
    }
    Tensor t = base;
    for (int k = 0; k < from.rank(); ++k) {
        const auto at = static_cast<size_t>(k);
        if (parts.size[at] != from[k])
            t = call_operator("narrow", {Value(t), Value(int64_t{k}), Value(parts.begin[at]), Value(parts.size[at])});
    }
    if (!std::ranges::is_sorted(parts.order)) {
        Shape order;
        for (int k : parts.order) order.push_back(k);
        t = call_operator("permute", {Value(t), Value::ints(order)});
    }
    Shape shape = view.shape();
    for (int a = 0; a < shape.rank(); ++a)
        if (view.strides()[a] == 0) shape[a] = 1;
    if (!(t.shape() == shape)) t = call_operator("reshape", {Value(t), Value::ints(shape)});
    if (!(shape == view.shape())) t = call_operator("broadcast_to", {Value(t), Value::ints(view.shape())});
    return content(t);
}

Laid converted(Laid given, DType dtype, const Shape& shape) {
    if (given.dtype != dtype)
        given = content(call_operator("cast", {Value(tensor_of(std::move(given))), Value(dtype)}));
    if (!(given.shape == shape))
        given = content(call_operator("reshape", {Value(tensor_of(std::move(given))), Value::ints(shape)}));
    return given;
}

}  // namespace lunaria::parallel
