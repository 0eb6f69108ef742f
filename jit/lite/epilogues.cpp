// The passes that make what follows a product or a convolution a part of it: factors and sums of channels before the
// weights are arranged, activations and residuals behind it.
#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"
#include "jit/lite/operands.h"
#include "jit/lite/operators.h"
#include "jit/lite/passes.h"

namespace lunaria::lite {

namespace {

using Operand = lunaria::Value;
using graph::call_of;
using graph::is_call;
using graph::node_of;
using graph::static_type;

bool is_constant(const Operand& v) { return v.is_number() || constant_of(v); }

// Factors and sums of the channels of a layer with a constant weight become part of its weight and bias.
class Scales {
  public:
    explicit Scales(const ir::Graph& graph) : uses_(uses_of(graph)) {}

    Operand replaced(ir::Node& node, ir::GraphBuilder& builder) {
        const auto& ops = graph::ops();
        const bool sums = is_call(&node, ops.add) || is_call(&node, ops.sub);
        const bool scales = is_call(&node, ops.mul) || (is_call(&node, ops.div) && node.args[2].is_nil());
        if (!sums && !scales) return {};
        const bool may_turn = is_call(&node, ops.add) || is_call(&node, ops.mul);
        for (const size_t i : {0, 1}) {
            if (i == 1 && !may_turn) break;
            const ir::Node* layer = node_of(node.args[i]);
            const Operand& other = node.args[1 - i];
            if (!layer || !layer->op || uses_[layer] != 1 || !is_constant(other)) continue;
            if (!(layer->type.tensor == node.type.tensor) || node.type.tensor.dtype != DType::f32) continue;
            const Operand made = merged(*layer, other, node, builder);
            if (made.is_node()) uses_[made.node()] = uses_[&node];
            if (!made.is_nil()) return made;
        }
        return {};
    }

  private:
    // The number of each channel; nil where it is not one per channel.
    static Operand per_channel(const Operand& v, int axis, const Shape& shape, ir::GraphBuilder& b) {
        const int64_t channels = shape[axis];
        if (v.is_number()) {
            const std::array<int64_t, 1> size{channels};
            return emit(b, graph::ops().full, {Operand::ints(size), v, Operand(DType::f32)});
        }
        const auto type = static_type(v);
        if (!type || type->dtype != DType::f32) return {};
        if (type->shape.size() == 1)
            return graph::emit(
                b, graph::ops().broadcast_to,
                {graph::emit(b, graph::ops().reshape, {v, Operand::ints(Shape{1})}), Operand::ints(Shape{channels})});
        const int at = axis - (shape.rank() - type->shape.rank());
        if (at < 0 || type->shape.size() != channels || type->shape[at] != channels) return {};
        return graph::emit(b, graph::ops().reshape, {v, Operand::ints(Shape{channels})});
    }
    static Operand emit(ir::GraphBuilder& b, const Op& op, std::initializer_list<Operand> args) {
        return graph::emit(b, op, args);
    }

    static Operand scaled(const ir::Node& node, const Operand& v, const Operand& by, ir::GraphBuilder& b) {
        const auto& ops = graph::ops();
        return is_call(&node, ops.div) ? emit(b, ops.div, {v, by, Operand()}) : emit(b, ops.mul, {v, by});
    }
    static Operand summed(const ir::Node& node, const Operand& bias, const Operand& by, ir::GraphBuilder& b) {
        const auto& ops = graph::ops();
        const bool minus = is_call(&node, ops.sub);
        if (bias.is_nil()) return minus ? emit(b, ops.neg, {by}) : by;
        return emit(b, minus ? ops.sub : ops.add, {bias, by});
    }

    Operand merged(const ir::Node& layer, const Operand& other, const ir::Node& node, ir::GraphBuilder& b) const {
        const auto& ops = graph::ops();
        const bool is_convolution = known().is_convolution(layer.op);
        const bool is_dense = is_call(&layer, ops.dense), is_product = is_call(&layer, ops.matmul);
        if ((!is_convolution && !is_dense && !is_product) || !is_constant(layer.args[1])) return {};
        const Shape shape = layer.type.tensor.shape, weight = static_type(layer.args[1])->shape;
        if (static_type(layer.args[1])->dtype != DType::f32 || (is_product && weight.rank() != 2)) return {};
        const int spatial = weight.rank() - 2;
        const int axis = is_convolution ? shape.rank() - 1 - spatial : shape.rank() - 1;
        const Operand bias = is_product ? Operand() : layer.args[2];
        if (!bias.is_nil() && !is_constant(bias)) return {};
        const Operand channel = per_channel(other, axis, shape, b);
        if (channel.is_nil()) return {};
        Operand new_weight = layer.args[1], new_bias = bias;
        if (is_call(&node, ops.mul) || is_call(&node, ops.div)) {
            Shape spread = weight;
            for (int i = 0; i < spread.rank(); ++i) spread[i] = 1;
            spread[is_product ? 1 : 0] = shape[axis];
            new_weight = scaled(node, new_weight, emit(b, ops.reshape, {channel, Operand::ints(spread)}), b);
            if (!bias.is_nil()) new_bias = scaled(node, bias, channel, b);
        } else {
            new_bias = summed(node, bias, channel, b);
        }
        if (is_product) {
            if (new_bias.is_nil()) return emit(b, ops.matmul, {layer.args[0], new_weight});
            const Operand across = emit(b, ops.transpose, {new_weight, Operand::ints(Shape{1, 0}), Operand()});
            return emit(b, ops.dense, {layer.args[0], across, new_bias});
        }
        std::vector<Operand> args = layer.args;
        args[1] = new_weight;
        args[2] = new_bias;
        return b.emit(*layer.op, args);
    }

    Uses uses_;
};

// Dense layers of one input whose results are only looked at in parts, as the three of attention, become one.
class Joined {
  public:
    explicit Joined(const ir::Graph& graph) {
        std::unordered_set<const ir::Node*> computed;
        for (const ir::Node* node : graph.body())
            if (!node->op || !node->op->view_fn)
                for (const Operand& arg : node->args)
                    ir::for_each_node(arg, [&](const ir::Node* n) { computed.insert(n); });
        ir::for_each_node(graph.result, [&](const ir::Node* n) { computed.insert(n); });
        for (const ir::Node* node : graph.body())
            if (is_call(node, graph::ops().dense) && !computed.contains(node) && fits(*node))
                layers_[node->args[0].node()].push_back(node);
    }

    Operand replaced(ir::Node& node, ir::GraphBuilder& b) {
        if (!is_call(&node, graph::ops().dense)) return {};
        const auto group = layers_.find(node_of(node.args[0]));
        if (group == layers_.end() || group->second.size() < 2) return {};
        const auto at = std::ranges::find(group->second, &node);
        if (at == group->second.end()) return {};
        const auto& ops = graph::ops();
        std::vector<Operand> weights, biases;
        int64_t first = 0;
        for (const ir::Node* layer : group->second) {
            if (layer == &node)
                for (const Operand& w : weights) first += static_type(w)->shape[0];
            weights.push_back(layer->args[1]);
            biases.push_back(layer->args[2]);
        }
        Operand& whole = wholes_[group->first];
        if (whole.is_nil())
            whole =
                graph::emit(b, ops.dense,
                            {node.args[0], graph::emit(b, ops.concat, {Operand::list(weights), Operand(int64_t{0})}),
                             graph::emit(b, ops.concat, {Operand::list(biases), Operand(int64_t{0})})});
        return graph::emit(b, ops.narrow,
                           {whole, Operand(int64_t{-1}), Operand(first), Operand(node.type.tensor.shape.back())});
    }

  private:
    static bool fits(const ir::Node& node) {
        if (!node.args[0].is_node() || !is_constant(node.args[1]) || !is_constant(node.args[2])) return false;
        const auto type = static_type(node.args[1]);
        return type->dtype == DType::f32 && type->shape.rank() == 2 && type->shape[0] % 16 == 0 &&
               node.type.tensor.dtype == DType::f32;
    }
    std::unordered_map<const ir::Node*, std::vector<const ir::Node*>> layers_;  // by their input
    std::unordered_map<const ir::Node*, Operand> wholes_;
};

struct Activation {
    std::string_view name;
    double alpha = 0, beta = 0;
};

// What the operator does to each element, if the kernels can.
std::optional<Activation> activation_of(const ir::Node& node) {
    struct Row {
        std::string_view op, kernel;
    };
    static constexpr std::array kRows{
        Row{"relu", "relu"},
        Row{"relu6", "relu6"},
        Row{"sigmoid", "sigmoid"},
        Row{"silu", "silu"},
        Row{"gelu_erf", "gelu"},
        Row{"gelu_tanh", "gelu_tanh"},
        Row{"tanh", "tanh"},
        Row{"hardsigmoid", "hard_sigmoid"},
        Row{"hardswish", "hard_swish"},
        Row{"mish", "mish"},
    };
    const std::string_view name = node.op->name();
    for (const Row& row : kRows)
        if (row.op == name) return Activation{row.kernel};
    auto number = [&](size_t i) { return graph::constant_number(node.args[i]); };
    if (node.op == &known().leaky_relu && number(1)) return Activation{"leaky_relu", *number(1), 0};
    if (node.op == &known().elu && number(1)) return Activation{"elu", *number(1), 0};
    if (node.op == &graph::ops().clamp && node.args.size() >= 3 && number(1) && number(2))
        return Activation{"clip", *number(1), *number(2)};
    return {};
}

class Endings {
  public:
    explicit Endings(const ir::Graph& graph) : uses_(uses_of(graph)) {}

    Operand replaced(ir::Node& node, ir::GraphBuilder& builder) {
        if (!node.op || node.type.kind != ir::NodeType::Kind::tensor || node.type.tensor.dtype != DType::f32) return {};
        Operand made;
        if (is_call(&node, graph::ops().add))
            made = with_residual(node, builder);
        else if (node.op->is_elementwise)
            made = activated(node, builder);
        if (made.is_node()) uses_[made.node()] = uses_[&node];
        return made;
    }

  private:
    static bool is_layer(const ir::Node* node) {
        return is_call(node, light().product) || is_call(node, light().convolution);
    }
    const ir::Node* layer_of(const ir::Node& node, const Operand& v) {
        const ir::Node* layer = node_of(v);
        if (!is_layer(layer) || uses_[layer] != 1 || !(layer->type.tensor.shape == node.type.tensor.shape))
            return nullptr;
        return layer;
    }

    Operand activated(const ir::Node& node, ir::GraphBuilder& builder) {
        const auto activation = activation_of(node);
        if (!activation) return {};
        const ir::Node* layer = layer_of(node, node.args[0]);
        if (!layer || layer->args[kActivation].string() != "none") return {};
        if (!layer->args[kResidual].is_nil() && layer->args[kResidualLast].boolean()) return {};
        std::vector<Operand> args = layer->args;
        args[kActivation] = Operand(activation->name);
        args[kAlpha] = Operand(activation->alpha);
        args[kBeta] = Operand(activation->beta);
        return builder.emit(*layer->op, args);
    }

    Operand with_residual(const ir::Node& node, ir::GraphBuilder& builder) {
        for (const size_t i : {1, 0}) {
            const ir::Node* layer = layer_of(node, node.args[i]);
            const auto other = static_type(node.args[1 - i]);
            if (!layer || !layer->args[kResidual].is_nil() || !other || !node.args[1 - i].is_node()) continue;
            if (!(other->shape == node.type.tensor.shape) || other->dtype != DType::f32) continue;
            std::vector<Operand> args = layer->args;
            args[kResidual] = node.args[1 - i];
            args[kResidualLast] = Operand(layer->args[kActivation].string() != "none");
            return builder.emit(*layer->op, args);
        }
        return {};
    }

    Uses uses_;
};

}  // namespace

bool merge_scales(ir::Graph& graph) {
    Scales scales(graph);
    return graph::rewrite(graph,
                          [&](ir::Node& node, ir::GraphBuilder& builder) { return scales.replaced(node, builder); });
}

bool join_layers(ir::Graph& graph) {
    Joined joined(graph);
    return graph::rewrite(graph,
                          [&](ir::Node& node, ir::GraphBuilder& builder) { return joined.replaced(node, builder); });
}

bool fuse_endings(ir::Graph& graph) {
    Endings endings(graph);
    return graph::rewrite(graph,
                          [&](ir::Node& node, ir::GraphBuilder& builder) { return endings.replaced(node, builder); });
}

}  // namespace lunaria::lite
