// The pass that computes products and convolutions of rounded operands in integers. A graph rounds numbers to the steps
// of an integer format by fake_quantize_element; where both operands of a product are such numbers and the weight is a
// constant, the integers themselves are multiplied. What lies between two such products and does not depend on the
// distance of numbers - rectifiers, largest elements of windows, views - is done on integers as well, and the end of
// the first product rounds to the format that the second one reads.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include "core/lite/kernels/blocks.h"
#include "core/lite/kernels/integer.h"
#include "core/ops/pool.h"
#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"
#include "jit/lite/operands.h"
#include "jit/lite/operators.h"
#include "jit/lite/passes.h"

namespace lunaria::lite {

namespace {

using Operand = lunaria::Value;
using graph::is_call;
using graph::node_of;
using graph::static_type;

const ir::Node* rounding(const Operand& v) {
    static const Op& op = registry().get("fake_quantize_element");
    const ir::Node* node = node_of(v);
    return is_call(node, op) && node->type.tensor.dtype == DType::f32 ? node : nullptr;
}

// A format of 8 bits, and the limits within it that a tensor keeps.
struct Format {
    double scale = 1;
    int64_t zero = 0, low = -128, high = 127;
    DType dtype = DType::i8;
    auto key() const { return std::tuple(scale, zero, low, high, dtype); }
};

std::optional<Format> format_of(const Operand& v) {
    const ir::Node* node = rounding(v);
    if (!node) return {};
    const auto scale = graph::constant_number(node->args[1]), zero = graph::constant_number(node->args[2]);
    const auto low = graph::constant_number(node->args[3]), high = graph::constant_number(node->args[4]);
    if (!scale || !zero || !low || !high || !(*scale > 0) || *zero != std::nearbyint(*zero)) return {};
    Format f{*scale, static_cast<int64_t>(*zero), static_cast<int64_t>(*low), static_cast<int64_t>(*high), DType::i8};
    if (f.low < -128 || f.high > 127) f.dtype = DType::u8;
    if (f.dtype == DType::u8 && (f.low < 0 || f.high > 255)) return {};
    const int64_t least = f.dtype == DType::u8 ? 0 : -128;
    return f.zero >= least && f.zero <= least + 255 ? std::optional(f) : std::nullopt;
}

// The integers of a constant weight, and the scale of each of its outputs.
struct Weight {
    Shape shape;
    std::vector<int8_t> integers;
    std::vector<double> scales;
};

// The number for each element of `like` in a tensor that broadcasts against it.
std::vector<double> spread(const Operand& v, const Shape& like) {
    if (const auto one = graph::constant_number(v)) return std::vector<double>(static_cast<size_t>(like.size()), *one);
    const Tensor* t = constant_of(v);
    if (!t || t->rank() > like.rank()) return {};
    Strides strides;
    for (int i = 0; i < like.rank(); ++i) strides.push_back(0);
    int64_t stride = 1;
    for (int i = t->rank() - 1, axis = like.rank() - 1; i >= 0; --i, --axis) {
        if (t->dim(i) != 1 && t->dim(i) != like[axis]) return {};
        if (t->dim(i) != 1) strides[axis] = stride;
        stride *= t->dim(i);
    }
    const Tensor whole = t->contiguous().view(like, strides, 0).contiguous();
    std::vector<double> numbers(static_cast<size_t>(like.size()));
    for (int64_t i = 0; i < like.size(); ++i) numbers[static_cast<size_t>(i)] = whole.at(i);
    return numbers;
}

// The integers that a rounded constant stands for, its scales one for each element.
struct Integers {
    std::vector<int64_t> values;
    std::vector<double> scales;
};
std::optional<Integers> integers_of(const ir::Node& node) {
    const Tensor* w = constant_of(node.args[0]);
    const auto low = graph::constant_number(node.args[3]), high = graph::constant_number(node.args[4]);
    if (!w || w->dtype() != DType::f32 || !low || !high) return {};
    Integers made{{}, spread(node.args[1], w->shape())};
    const std::vector<double> zeros = spread(node.args[2], w->shape());
    if (made.scales.empty() || zeros.empty()) return {};
    const Tensor dense = w->contiguous();
    for (size_t i = 0; i < made.scales.size(); ++i) {
        const float steps = dense.data<float>()[i] / static_cast<float>(made.scales[i]);
        const double level = std::nearbyint(steps) + zeros[i];
        made.values.push_back(static_cast<int64_t>(std::clamp(level, *low, *high) - zeros[i]));
    }
    return made;
}

// `outputs`: the axis of the outputs.
std::optional<Weight> weight_of(const Operand& v, int outputs) {
    const ir::Node* node = rounding(v);
    const auto integers = node ? integers_of(*node) : std::nullopt;
    if (!integers) return {};
    Weight w{node->type.tensor.shape, {}, {}};
    int64_t inner = 1;
    for (int i = outputs + 1; i < w.shape.rank(); ++i) inner *= w.shape[i];
    w.scales.assign(static_cast<size_t>(w.shape[outputs]), 0.0);
    for (size_t i = 0; i < integers->values.size(); ++i) {
        if (integers->values[i] < -128 || integers->values[i] > 127 || !(integers->scales[i] > 0)) return {};
        w.integers.push_back(static_cast<int8_t>(integers->values[i]));
        double& scale = w.scales[i / static_cast<size_t>(inner) % w.scales.size()];
        if (scale != 0.0 && scale != integers->scales[i]) return {};
        scale = integers->scales[i];
    }
    return w;
}

class Quantised {
  public:
    explicit Quantised(const ir::Graph& graph) : uses_(uses_of(graph)) {}

    Operand replaced(ir::Node& node, ir::GraphBuilder& builder) {
        builder_ = &builder;
        if (!node.op || !node.op->belongs_to(registry()) || node.type.kind != ir::NodeType::Kind::tensor) return {};
        Operand made;
        const auto& ops = graph::ops();
        if (is_call(&node, ops.dense) || is_call(&node, ops.matmul))
            made = product(node, is_call(&node, ops.dense));
        else if (known().is_convolution(node.op))
            made = convolution(node);
        else if (is_call(&node, ops.relu))
            made = rectified(node);
        else if (is_call(&node, ops.add))
            made = shifted(node);
        if (made.is_node()) uses_[made.node()] = uses_[&node];
        return made;
    }

  private:
    // A product or convolution with a float result, from which one with an integer result can be made.
    struct Layer {
        const Op* op = nullptr;
        std::vector<Operand> args;  // of the call
        double x_scale = 1;
        std::vector<double> scales;  // of the outputs
        std::vector<float> bias;     // empty: none
        bool is_rectified = false;
        bool is_picture = false;
    };
    // A tensor of integers; pictures have their channels last.
    struct Found {
        Operand value;
        int64_t channels = 0;  // of a picture that was flattened: its elements are ordered by pixels, then channels
    };

    Operand emit(const Op& op, const std::vector<Operand>& args) { return builder_->emit(op, args); }
    Operand constant(Tensor t) { return Operand(builder_->graph().add_constant(Operand(std::move(t)))); }
    template <class T, class From>
    Operand numbers(DType dtype, const std::vector<From>& list) {
        Tensor t = Tensor::empty(dtype, Shape{static_cast<int64_t>(list.size())});
        std::copy(list.begin(), list.end(), t.data<T>());
        return constant(std::move(t));
    }
    Operand reshaped(const Operand& v, const Shape& shape) {
        return shape_of(v) == shape ? v : emit(graph::ops().reshape, {v, Operand::ints(shape)});
    }
    bool is_single(const ir::Node* node) {
        const auto found = uses_.find(node);
        return found != uses_.end() && found->second == 1;
    }

    // Positions of arguments.
    enum : size_t {
        kXAt,
        kWeightAt,
        kBiasAt,
        kMultiplier,
        kResidualAt,
        kTable,
        kFloatBias,
        kActivationAt,
        kXZero,
        kZero,
        kLow,
        kHigh
    };

    // Of a layer that gives floats; `others`: those of its operator alone.
    std::vector<Operand> arguments(const Operand& x, const Tensor& weight, const Format& f,
                                   std::initializer_list<Operand> others) {
        std::vector<Operand> args(kHigh + 1);
        args[kXAt] = x;
        args[kWeightAt] = constant(weight);
        args[kActivationAt] = Operand("none");
        args[kXZero] = Operand(f.zero);
        args[kZero] = Operand(int64_t{0});
        args[kLow] = Operand(int64_t{-128});
        args[kHigh] = Operand(int64_t{127});
        args.insert(args.end(), others.begin(), others.end());
        return args;
    }

    // The call of a layer that gives floats.
    Operand with_floats(const Layer& layer) {
        std::vector<Operand> args = layer.args;
        std::vector<float> multiplier;
        for (const double s : layer.scales) multiplier.push_back(static_cast<float>(layer.x_scale * s));
        args[kMultiplier] = numbers<float>(DType::f32, multiplier);
        if (!layer.bias.empty()) args[kFloatBias] = numbers<float>(DType::f32, layer.bias);
        args[kActivationAt] = Operand(layer.is_rectified ? "relu" : "none");
        Operand made = emit(*layer.op, args);
        if (layer.is_picture)
            made = emit(graph::ops().transpose, {made, Operand::ints(to_front(shape_of(made).rank())), Operand()});
        layers_[made.node()] = layer;
        return made;
    }
    // The call that gives integers of the format; nil if a bias is too large for them.
    Operand with_integers(const Layer& layer, Format f) {
        std::vector<Operand> args = layer.args;
        std::vector<float> multiplier;
        std::vector<int32_t> bias;
        for (size_t j = 0; j < layer.scales.size(); ++j) {
            multiplier.push_back(static_cast<float>(layer.x_scale * layer.scales[j] / f.scale));
            if (layer.bias.empty()) continue;
            const double b = std::nearbyint(static_cast<double>(layer.bias[j]) / (layer.x_scale * layer.scales[j]));
            if (!(std::abs(b) < 1 << 30)) return {};
            bias.push_back(static_cast<int32_t>(b));
        }
        if (layer.is_rectified) f.low = std::max(f.low, f.zero);
        args[kMultiplier] = numbers<float>(DType::f32, multiplier);
        if (!bias.empty()) args[kBiasAt] = numbers<int32_t>(DType::i32, bias);
        args[kZero] = Operand(f.zero);
        args[kLow] = Operand(f.low);
        args[kHigh] = Operand(f.high);
        args[layer.is_picture ? args.size() - 2 : args.size() - 1] = Operand(f.dtype);
        return emit(*layer.op, args);
    }

    // The numbers of v in the format: as they come from before, or rounded here. Of a picture the channels come last.
    Found integers(const Operand& v, const Format& f, bool is_picture) {
        const auto key = std::tuple(v.node(), f.key(), is_picture);
        if (const auto known = found_.find(key); known != found_.end()) return known->second;
        Found found = from_before(v, f, is_picture);
        if (found.value.is_nil()) {
            Operand x = v;
            // The kernel's limits are those of the type.
            auto real = [&](int64_t level) { return Operand(static_cast<double>(level - f.zero) * f.scale); };
            if (f.high - f.low != 255) x = emit(graph::ops().clamp, {x, real(f.low), real(f.high)});
            if (is_picture)
                x = emit(graph::ops().transpose, {x, Operand::ints(to_last(shape_of(v).rank())), Operand()});
            found.value = emit(integer().quantize, {x, Operand(f.scale), Operand(f.zero), Operand(f.dtype)});
        }
        return found_[key] = found;
    }
    Found from_before(const Operand& v, const Format& f, bool is_picture) {
        const ir::Node* node = node_of(v);
        if (!node || !is_single(node)) return {};
        if (const auto layer = layers_.find(node); layer != layers_.end()) {
            if (layer->second.is_picture != is_picture) return {};
            return {with_integers(layer->second, f)};
        }
        if (!reaches_layer(v)) return {};
        const Operand& from = node->args[0];
        if (is_call(node, graph::ops().relu)) {
            Format bounded = f;
            bounded.low = std::max(f.low, f.zero);
            return integers(from, bounded, is_picture);
        }
        const Shape shape = shape_of(v);
        if (is_call(node, graph::ops().max_window)) {
            const Window w = max_window_of(Call(*node->op, node->args, DType::f32));
            const int rank = w.axes + 2;
            if (shape.rank() != rank || !is_picture) return {};
            return {emit(light().max_pool, {integers(from, f, true).value, Operand::ints(w.kernel),
                                            Operand::ints(w.stride), Operand::ints(w.dilation), Operand::ints(w.before),
                                            Operand::ints(turned(shape, to_last(rank)))})};
        }
        const Shape before = shape_of(from);
        if (is_picture || before.rank() < 3 || shape.rank() != 2 || shape[0] != before[0]) return {};
        return {reshaped(integers(from, f, true).value, shape), before[1]};
    }
    // Whether rounding moves up to a layer from there.
    bool reaches_layer(const Operand& v) {
        const ir::Node* node = node_of(v);
        if (!node || !is_single(node)) return false;
        if (layers_.contains(node)) return true;
        const auto& ops = graph::ops();
        const bool passes = is_call(node, ops.relu) || is_call(node, ops.max_window) || is_call(node, ops.reshape);
        return passes && reaches_layer(node->args[0]);
    }

    std::vector<float> bias_of(const Operand& v, int64_t n, bool& is_fit) {
        if (v.is_nil()) return {};
        const Tensor* t = constant_of(v);
        is_fit = t && t->size() == n && t->dtype() == DType::f32;
        if (!is_fit) return {};
        const Tensor dense = t->contiguous();
        return {dense.data<float>(), dense.data<float>() + n};
    }

    Operand product(const ir::Node& node, bool is_dense) {
        const Operand& x = node.args[0];
        Operand w = node.args[1], bias = is_dense ? node.args[2] : Operand();
        if (shape_of(w).rank() != 2 || node.type.tensor.shape.size() == 0) return {};
        // A weight that is turned over has its outputs in front.
        if (!is_dense && is_call(node_of(w), graph::ops().transpose)) {
            w = node_of(w)->args[0];
            is_dense = true;
        }
        if (is_dense)
            if (const Operand made = of_blocks(x, w, bias); !made.is_nil()) return made;
        const auto format = format_of(x);
        if (!format || shape_of(x).rank() < 2) return {};
        const auto weight = weight_of(w, is_dense ? 0 : 1);
        if (!weight) return {};
        const int64_t n = weight->shape[is_dense ? 0 : 1], k = weight->shape[is_dense ? 1 : 0];
        bool is_fit = true;
        Layer layer{&integer().product, {}, format->scale, weight->scales, {}};
        layer.bias = bias_of(bias, n, is_fit);
        if (!is_fit || k == 0) return {};
        const Found from = integers(rounding(x)->args[0], *format, false);
        std::vector<int8_t> plain = weight->integers;
        int64_t k_step = is_dense ? 1 : n, n_step = is_dense ? k : 1;
        if (from.channels) {
            // (channel, pixel) of the weight's rows becomes (pixel, channel).
            const int64_t pixels = k / from.channels;
            std::vector<int8_t> other(plain.size());
            for (int64_t j = 0; j < n; ++j)
                for (int64_t c = 0; c < from.channels; ++c)
                    for (int64_t p = 0; p < pixels; ++p)
                        other[static_cast<size_t>(j * k + p * from.channels + c)] =
                            plain[static_cast<size_t>(j * n_step + (c * pixels + p) * k_step)];
            plain = std::move(other);
            k_step = 1;
            n_step = k;
        }
        Tensor packed = Tensor::zeros(DType::u8, Shape{kernels::integer_weight_bytes(k, n)});
        kernels::pack_integer_weight(k, n, plain.data(), k_step, n_step, packed.data<uint8_t>());
        layer.args = arguments(from.value, packed, *format, {Operand(k), Operand(n), Operand(DType::f32)});
        return with_floats(layer);
    }

    Operand convolution(const ir::Node& node) {
        const Operand& x = node.args[0];
        const auto format = format_of(x);
        const auto weight = format ? weight_of(node.args[1], 0) : std::nullopt;
        if (!weight || node.type.tensor.shape.size() == 0) return {};
        const Convolution c = convolution_of(Call(*node.op, node.args, DType::f32));
        const Window& window = c.window;
        const int rank = window.axes + 2;
        bool is_fit = shape_of(x).rank() == rank;
        Layer layer{
            &integer().convolution, {}, format->scale, weight->scales, bias_of(node.args[2], c.out_channels, is_fit)};
        if (!is_fit) return {};
        layer.is_picture = true;
        const kernels::ConvolutionShape s = convolution_shape(c);
        const int64_t bytes = kernels::integer_convolution_weight_bytes(s);
        if (bytes == 0) return {};
        Tensor packed = Tensor::zeros(DType::u8, Shape{bytes});
        if (!kernels::pack_integer_convolution(s, weight->integers.data(), packed.data<uint8_t>())) return {};
        const Found from = integers(rounding(x)->args[0], *format, true);
        layer.args =
            arguments(from.value, packed, *format,
                      {Operand::ints(window.kernel), Operand::ints(window.stride), Operand::ints(window.dilation),
                       Operand::ints(window.before), Operand(c.groups), Operand(c.in_channels), Operand(c.out_channels),
                       Operand(DType::f32), Operand::ints(turned(node.type.tensor.shape, to_last(rank)))});
        return with_floats(layer);
    }

    // The layer whose float result only this node reads; it is made again as another one.
    Layer* layer_before(const Operand& v) {
        const ir::Node* node = node_of(v);
        const auto found = node ? layers_.find(node) : layers_.end();
        return found != layers_.end() && is_single(node) ? &found->second : nullptr;
    }
    Operand rectified(const ir::Node& node) {
        const Layer* before = layer_before(node.args[0]);
        if (!before || before->is_rectified) return {};
        Layer layer = *before;
        layer.is_rectified = true;
        return with_floats(layer);
    }
    // A sum with one number for each output.
    Operand shifted(const ir::Node& node) {
        for (const size_t i : {0, 1}) {
            const Layer* before = layer_before(node.args[i]);
            const Tensor* t = constant_of(node.args[1 - i]);
            if (!before || before->is_rectified || before->is_picture || !before->bias.empty() || !t) continue;
            bool is_fit = t->rank() >= 1 && t->shape().back() == t->size();
            Layer layer = *before;
            layer.bias = bias_of(node.args[1 - i], static_cast<int64_t>(layer.scales.size()), is_fit);
            if (is_fit) return with_floats(layer);
        }
        return {};
    }

    static void write_block(const std::array<int64_t, kernels::kBlock>& block, bool is_q4, float scale, uint8_t* to) {
        const uint16_t half = float_to_half(scale);
        std::memcpy(to, &half, 2);
        const size_t middle = block.size() / 2;
        for (size_t i = 0; i < (is_q4 ? middle : block.size()); ++i)
            to[2 + i] = static_cast<uint8_t>(is_q4 ? (block[i] + 8) | (block[i + middle] + 8) << 4 : block[i]);
    }

    // A weight whose rows are rounded in blocks of 32, or as a whole to 8 bits, by floats: the weight stays in the
    // blocks of GGUF files.
    Operand of_blocks(const Operand& x, const Operand& w, const Operand& bias) {
        const ir::Node* rounded = rounding(w);
        if (!rounded || rounding(x)) return {};
        const Shape shape = static_type(w)->shape;
        const int64_t n = shape[0], k = shape.back();
        const auto type = static_type(x);
        if (k == 0 || !x.is_node() || type->dtype != DType::f32) return {};
        bool is_fit = true;
        bias_of(bias, n, is_fit);
        const auto integers = is_fit ? integers_of(*rounded) : std::nullopt;
        if (!integers) return {};
        const auto [least, most] = std::minmax_element(integers->values.begin(), integers->values.end());
        const bool is_q4 = *least >= -8 && *most <= 7;
        if (*least < -128 || *most > 127) return {};
        // The last block of a row may be filled up, with zeros.
        const int64_t row = (k + kernels::kBlock - 1) / kernels::kBlock;
        const int64_t bytes = is_q4 ? kernels::kBytesQ4 : kernels::kBytesQ8;
        Tensor blocks = Tensor::empty(DType::u8, Shape{n * row * bytes});
        for (int64_t b = 0; b < n * row; ++b) {
            std::array<int64_t, kernels::kBlock> block{};
            const auto from = static_cast<size_t>(b / row * k + b % row * kernels::kBlock);
            const auto count = static_cast<size_t>(std::min(kernels::kBlock, k - b % row * kernels::kBlock));
            for (size_t i = 0; i < count; ++i) {
                block[i] = integers->values[from + i];
                if (integers->scales[from + i] != integers->scales[from]) return {};
            }
            write_block(block, is_q4, static_cast<float>(integers->scales[from]), blocks.data<uint8_t>() + b * bytes);
        }
        Operand padded = x;
        if (k != row * kernels::kBlock) {
            Shape zeros = shape_of(x);
            zeros[zeros.rank() - 1] = row * kernels::kBlock - k;
            padded = emit(graph::ops().concat, {Operand::list({x, constant(Tensor::zeros(DType::f32, zeros))}),
                                                Operand(int64_t{zeros.rank() - 1})});
        }
        return emit(light().product,
                    {padded, constant(blocks), bias, Operand(), Operand(), Operand("none"), Operand(0.0), Operand(0.0),
                     Operand(false), Operand(row * kernels::kBlock), Operand(n), Operand(is_q4 ? "q4_0" : "q8_0")});
    }

    Uses uses_;
    ir::GraphBuilder* builder_ = nullptr;
    std::unordered_map<const ir::Node*, Layer> layers_;  // by their float results
    std::map<std::tuple<const ir::Node*, decltype(Format().key()), bool>, Found> found_;
};

}  // namespace

bool use_integer_kernels(ir::Graph& graph) {
    Quantised quantised(graph);
    return graph::rewrite(graph,
                          [&](ir::Node& node, ir::GraphBuilder& builder) { return quantised.replaced(node, builder); });
}

}  // namespace lunaria::lite
