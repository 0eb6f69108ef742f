// The operators that passes look for and build, by address.
#pragma once

#include <initializer_list>

#include "core/ir/builder.h"

namespace lunaria::graph {

struct Operators {
    const Op& add = registry().get("add");
    const Op& sub = registry().get("sub");
    const Op& mul = registry().get("mul");
    const Op& div = registry().get("div");
    const Op& neg = registry().get("neg");
    const Op& pow = registry().get("pow");
    const Op& abs = registry().get("abs");
    const Op& sqrt = registry().get("sqrt");
    const Op& square = registry().get("square");
    const Op& reciprocal = registry().get("reciprocal");
    const Op& floor = registry().get("floor");
    const Op& ceil = registry().get("ceil");
    const Op& trunc = registry().get("trunc");
    const Op& round_to_even = registry().get("round_to_even");
    const Op& sign = registry().get("sign");
    const Op& maximum = registry().get("maximum");
    const Op& minimum = registry().get("minimum");
    const Op& clamp = registry().get("clamp");
    const Op& relu = registry().get("relu");
    const Op& equal = registry().get("equal");
    const Op& where = registry().get("where");
    const Op& logical_not = registry().get("logical_not");
    const Op& invert = registry().get("invert");
    const Op& cast = registry().get("cast");
    const Op& full = registry().get("full");
    const Op& full_like = registry().get("full_like");
    const Op& reshape = registry().get("reshape");
    const Op& transpose = registry().get("transpose");
    const Op& broadcast_to = registry().get("broadcast_to");
    const Op& narrow = registry().get("narrow");
    const Op& concat = registry().get("concat");
    const Op& sum = registry().get("sum");
    const Op& mean = registry().get("mean");
    const Op& softmax = registry().get("softmax");
    const Op& matmul = registry().get("matmul");
    const Op& dense = registry().get("dense");
    const Op& affine = registry().get("affine");
    const Op& attention = registry().get("attention");
    const Op& conv2d = registry().get("conv2d");
    const Op& conv2d_relu = registry().get("conv2d_relu");
    const Op& conv2d_last = registry().get("conv2d_last");
    const Op& conv_input_grad = registry().get("conv_input_grad");
    const Op& conv_weight_grad = registry().get("conv_weight_grad");
    const Op& max_window = registry().get("max_window");
    const Op& max_window_last = registry().get("max_window_last");
    const Op& max_window_grad = registry().get("max_window_grad");
};
inline const Operators& ops() {
    static const Operators operators;
    return operators;
}

inline bool is_call(const ir::Node* node, const Op& op) { return node && node->op == &op; }
inline const ir::Node* node_of(const Value& v) { return v.is_node() ? v.node() : nullptr; }
// The node, if it is a call of the operator; otherwise null.
inline const ir::Node* call_of(const Value& v, const Op& op) {
    const ir::Node* node = node_of(v);
    return is_call(node, op) ? node : nullptr;
}
inline Value emit(ir::GraphBuilder& builder, const Op& op, std::initializer_list<Value> args) {
    return builder.emit(op, std::span<const Value>(args.begin(), args.size()));
}
inline bool has_kernel(const Op& op) {
    size_t count = 0;
    op.kernels(*current_device(), count);
    return count > 0;
}

}  // namespace lunaria::graph
