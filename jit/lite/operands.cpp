#include "jit/lite/operands.h"

#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"

namespace lunaria::lite {

const Tensor* constant_of(const lunaria::Value& v) {
    const ir::Node* node = graph::node_of(v);
    return node && node->kind == ir::NodeKind::constant && node->constant.is_tensor() ? &node->constant.tensor()
                                                                                      : nullptr;
}
Shape shape_of(const lunaria::Value& v) { return graph::static_type(v)->shape; }

Shape to_last(int rank) {
    Shape order{0};
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1);
    return order;
}
Shape to_front(int rank) {
    Shape order{0, rank - 1};
    for (int i = 1; i < rank - 1; ++i) order.push_back(i);
    return order;
}
Shape turned(const Shape& shape, const Shape& order) {
    Shape result;
    for (const int64_t axis : order) result.push_back(shape[static_cast<int>(axis)]);
    return result;
}

kernels::ConvolutionShape convolution_shape(const Convolution& c, bool transposed) {
    const Window& window = c.window;
    kernels::ConvolutionShape s;
    s.batch = c.batch;
    s.groups = c.groups;
    s.channels = transposed ? c.out_channels : c.in_channels;
    s.out_channels = transposed ? c.in_channels : c.out_channels;
    s.transposed = transposed;
    for (size_t i = 0; i < 3; ++i) {
        s.in[i] = transposed ? window.out[i] : window.in[i];
        s.out[i] = transposed ? window.in[i] : window.out[i];
        s.kernel[i] = window.kernel[i];
        s.stride[i] = window.stride[i];
        s.dilation[i] = window.dilation[i];
        s.pad[i] = window.before[i];
    }
    return s;
}

Uses uses_of(const ir::Graph& graph) {
    Uses uses;
    for (const ir::Node* node : graph.body())
        for (const lunaria::Value& arg : node->args) ir::for_each_node(arg, [&](const ir::Node* n) { ++uses[n]; });
    ir::for_each_node(graph.result, [&](const ir::Node* n) { ++uses[n]; });
    return uses;
}

}  // namespace lunaria::lite
