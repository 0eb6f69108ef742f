// The pass that replaces products, convolutions and pools by the light runtime's kernels. Their weights are arranged
// here, and pictures are kept channels-last: a value has a twin of shape (batch, height, width, channels), of which the
// value is a view for all operators that do not work on twins themselves.
#include <algorithm>
#include <unordered_map>

#include "core/lite/format/model.h"
#include "core/lite/kernels/names.h"
#include "core/ops/pool.h"
#include "jit/graph/operators.h"
#include "jit/graph/rewrite.h"
#include "jit/lite/operands.h"
#include "jit/lite/operators.h"
#include "jit/lite/passes.h"

namespace lunaria::lite {

namespace {

using LayerOperand = lunaria::Value;
using graph::is_call;
using graph::node_of;
using graph::static_type;

bool is_float_tensor(const LayerOperand& v) {
    const auto t = static_type(v);
    return v.is_node() && t && t->dtype == DType::f32 && t->shape.known();
}

Call call_of(const ir::Node& node) { return Call(*node.op, node.args, promoted_dtype(*node.op, node.args)); }

kernels::WeightType type_named(std::string_view name) {
    kernels::WeightType type{};
    kernels::read_name(kernels::kWeightTypes, name, type);
    return type;
}
bool is_in_blocks(std::string_view type) { return type.starts_with("q"); }
std::string_view name_of(kernels::ConvolutionMethod method) {
    return kernels::kConvolutionMethods[static_cast<size_t>(method)];
}

class Layers {
  public:
    explicit Layers(const PassOptions& options) : options_(options) {}

    LayerOperand replaced(ir::Node& node, ir::GraphBuilder& builder) {
        builder_ = &builder;
        if (!node.op || !node.op->belongs_to(registry()) || node.type.kind != ir::NodeType::Kind::tensor) return {};
        const auto& ops = graph::ops();
        if (node.op == &ops.matmul) return matmul(node);
        if (node.op == &ops.dense) return dense(node);
        if (known().is_convolution(node.op) || node.op == &ops.conv_input_grad) return convolution(node);
        if (node.op == &ops.max_window || known().is_average_pool(node.op)) return pool(node);
        if (node.op == &known().gather) return gather(node);
        if (node.op == &ops.transpose) note_twin(node);
        if (node.op->is_elementwise || node.op == &ops.cast) return elementwise(node);
        if (node.op == &ops.concat) return concat(node);
        if (node.op == &ops.sum || node.op == &ops.mean) return pixel_sum(node);
        return {};
    }

  private:
    LayerOperand emit(const Op& op, const std::vector<LayerOperand>& args) { return builder_->emit(op, args); }
    LayerOperand constant(Tensor t) { return LayerOperand(builder_->graph().add_constant(LayerOperand(std::move(t)))); }
    LayerOperand reshaped(const LayerOperand& v, const Shape& shape) {
        return shape_of(v) == shape ? v : emit(graph::ops().reshape, {v, LayerOperand::ints(shape)});
    }

    // The pass before this one has put channels last, too.
    void note_twin(const ir::Node& node) {
        const ir::Node* from = node_of(node.args[0]);
        if (!from || !from->op || from->op->belongs_to(registry())) return;
        const int rank = shape_of(node.args[0]).rank();
        if (rank > 2 && same_value(node.args[1], LayerOperand::ints(to_front(rank)))) twins_[&node] = node.args[0];
    }

    bool has_twin(const LayerOperand& v) const { return v.is_node() && twins_.contains(v.node()); }
    // The value with its channels last; `rank`: of the pictures with which it is broadcast.
    LayerOperand last(const LayerOperand& v, int rank) {
        if (!v.is_node()) return v;
        if (const auto found = twins_.find(v.node()); found != twins_.end()) return found->second;
        const auto type = static_type(v);
        if (!type || type->shape.rank() == 0) return v;
        Shape shape = type->shape;
        while (shape.rank() < rank) shape.insert(0, 1);
        return emit(graph::ops().transpose, {reshaped(v, shape), LayerOperand::ints(to_last(rank)), LayerOperand()});
    }
    LayerOperand front(const LayerOperand& twin) {
        const LayerOperand made =
            emit(graph::ops().transpose, {twin, LayerOperand::ints(to_front(shape_of(twin).rank())), LayerOperand()});
        twins_[made.node()] = twin;
        return made;
    }

    // The product with a weight whose element (i, j) is at i * k_step + j * n_step.
    LayerOperand product(const LayerOperand& x, const Tensor& weight, const LayerOperand& bias, int64_t k, int64_t n,
                         int64_t k_step, int64_t n_step) {
        const std::string name = is_in_blocks(options_.weights) && k % kBlock != 0 ? "f32" : options_.weights;
        const auto type = type_named(name);
        Tensor made = Tensor::zeros(DType::u8, Shape{kernels::weight_bytes(type, k, n)});
        kernels::pack_weight(type, k, n, weight.contiguous().data<float>(), k_step, n_step, made.data<uint8_t>());
        return emit(light().product,
                    {x, constant(made), bias, LayerOperand(), LayerOperand(), LayerOperand("none"), LayerOperand(0.0),
                     LayerOperand(0.0), LayerOperand(false), LayerOperand(k), LayerOperand(n), LayerOperand(name)});
    }

    LayerOperand matmul(const ir::Node& node) {
        const LayerOperand &a = node.args[0], &b = node.args[1];
        if (!is_float_tensor(a) || !is_float_tensor(b) || node.type.tensor.shape.size() == 0) return {};
        const Shape left = shape_of(a), right = shape_of(b);
        if (left.back() == 0) return {};
        const Shape wanted = node.type.tensor.shape;
        if (const Tensor* w = constant_of(b); w && right.rank() == 2) {
            const int64_t k = right[0], n = right[1];
            return reshaped(product(a, *w, LayerOperand(), k, n, n, 1), wanted);
        }
        // Both with the leading axes of the result.
        Shape lead = wanted;
        const int64_t m = left.rank() > 1 ? left[left.rank() - 2] : 1, n = right.rank() > 1 ? right.back() : 1;
        const int64_t k = left.back();
        for (int i = 0; i < (left.rank() > 1) + (right.rank() > 1); ++i) lead.erase(lead.rank() - 1);
        auto whole = [&](const LayerOperand& v, Shape matrix, bool is_vector) {
            Shape shape = shape_of(v), full = lead;
            if (is_vector) shape = matrix;
            for (const int64_t size : matrix) full.push_back(size);
            const LayerOperand made = reshaped(v, shape);
            return shape == full ? made : emit(graph::ops().broadcast_to, {made, LayerOperand::ints(full)});
        };
        const LayerOperand made = batched(whole(a, {m, k}, left.rank() == 1), whole(b, {k, n}, right.rank() == 1));
        return reshaped(made, wanted);
    }
    LayerOperand batched(const LayerOperand& a, const LayerOperand& b) {
        return emit(light().batched_product,
                    {a, b, LayerOperand(1.0), LayerOperand("none"), LayerOperand(0.0), LayerOperand(0.0)});
    }

    LayerOperand dense(const ir::Node& node) {
        const LayerOperand &x = node.args[0], &w = node.args[1], &bias = node.args[2];
        if (!is_float_tensor(x) || !is_float_tensor(w) || (!bias.is_nil() && !is_float_tensor(bias))) return {};
        const Shape shape = shape_of(w);
        if (node.type.tensor.shape.size() == 0 || shape.rank() != 2 || shape[1] == 0) return {};
        if (const Tensor* weight = constant_of(w)) {
            const int64_t k = shape[1], n = shape[0];
            // The channels of a flattened picture come last in its twin: the weight is put into that order instead.
            if (const LayerOperand twin = flattened(x); !twin.is_nil()) {
                const Shape s = shape_of(twin);
                const int64_t pixels = k / s.back();
                const Tensor turned_weight =
                    weight->contiguous().view(Shape{n, pixels, s.back()}, Strides{k, 1, pixels}, 0).contiguous();
                return product(reshaped(twin, {s[0], k}), turned_weight, bias, k, n, 1, k);
            }
            return product(x, *weight, bias, k, n, 1, k);
        }
        const Shape across{1, 0};
        const LayerOperand turned_weight =
            emit(graph::ops().transpose, {w, LayerOperand::ints(across), LayerOperand()});
        Shape flat = shape_of(x);
        const LayerOperand rows = reshaped(x, {shape_of(x).size() / flat.back(), flat.back()});
        LayerOperand made = batched(rows, turned_weight);
        made = reshaped(made, node.type.tensor.shape);
        return bias.is_nil() ? made : emit(graph::ops().add, {made, bias});
    }
    // The twin of a picture that x is a flat view of; nil for other values.
    LayerOperand flattened(const LayerOperand& x) const {
        const ir::Node* node = graph::call_of(x, graph::ops().reshape);
        if (!node || !has_twin(node->args[0])) return {};
        const LayerOperand& twin = twins_.at(node->args[0].node());
        const Shape s = shape_of(twin), flat = shape_of(x);
        return flat.rank() == 2 && flat[0] == s[0] && s[0] > 0 ? twin : LayerOperand();
    }

    static LayerOperand three(const Window::Sizes& sizes) { return LayerOperand::ints(sizes); }

    // Weights that a program computes are arranged by each run.
    LayerOperand arranged_weight(const LayerOperand& weight, const kernels::ConvolutionShape& s, const Window& window,
                                 kernels::ConvolutionMethod method, const std::string& type) {
        const int64_t bytes = kernels::convolution_weight_bytes(s, method, type_named(type));
        const Tensor* w = constant_of(weight);
        if (!w)
            return emit(
                light().pack_convolution,
                {weight, three(window.kernel), three(window.stride), three(window.dilation), LayerOperand(s.groups),
                 LayerOperand(s.channels), LayerOperand(s.out_channels), LayerOperand(name_of(method)),
                 LayerOperand(type), LayerOperand(s.transposed), LayerOperand::ints(Shape{bytes})});
        const Tensor dense = w->contiguous();
        Tensor made = Tensor::zeros(DType::u8, Shape{bytes});
        kernels::pack_convolution(s, method, type_named(type), dense.data<float>(), made.data<uint8_t>());
        return constant(made);
    }

    LayerOperand convolution(const ir::Node& node) {
        const bool transposed = is_call(&node, graph::ops().conv_input_grad);
        const LayerOperand &x = node.args[0], &weight = node.args[1];
        const Tensor* w = constant_of(weight);
        const LayerOperand bias = transposed ? LayerOperand() : node.args[2];
        if (!is_float_tensor(x) || !is_float_tensor(weight) || node.type.tensor.shape.size() == 0) return {};
        const Call call = call_of(node);
        const Convolution c = transposed ? convolution_of_input_grad(call) : convolution_of(call);
        const Window& window = c.window;
        const int rank = window.axes + 2;
        if (shape_of(x).size() == 0) return {};
        const kernels::ConvolutionShape s = convolution_shape(c, transposed);
        const std::string type = w && !is_in_blocks(options_.weights) ? options_.weights : "f32";
        const auto method = w ? kernels::convolution_method(s) : kernels::ConvolutionMethod::direct;
        const LayerOperand arranged = arranged_weight(weight, s, window, method, type);
        const Shape wanted = node.type.tensor.shape;
        // A picture without a batch gets one.
        const bool is_single = shape_of(x).rank() == rank - 1;
        Shape picture = shape_of(x), result = wanted;
        if (is_single) {
            picture.insert(0, 1);
            result.insert(0, 1);
        }
        const LayerOperand twin = emit(light().convolution, {last(reshaped(x, picture), rank),
                                                             arranged,
                                                             bias,
                                                             LayerOperand(),
                                                             LayerOperand(),
                                                             LayerOperand("none"),
                                                             LayerOperand(0.0),
                                                             LayerOperand(0.0),
                                                             LayerOperand(false),
                                                             three(window.kernel),
                                                             three(window.stride),
                                                             three(window.dilation),
                                                             three(window.before),
                                                             LayerOperand(c.groups),
                                                             LayerOperand(s.channels),
                                                             LayerOperand(s.out_channels),
                                                             LayerOperand(name_of(method)),
                                                             LayerOperand(type),
                                                             LayerOperand(transposed),
                                                             LayerOperand::ints(turned(result, to_last(rank)))});
        const LayerOperand value = front(twin);
        return is_single ? reshaped(value, wanted) : value;
    }

    LayerOperand pool(const ir::Node& node) {
        const LayerOperand& x = node.args[0];
        if (!is_float_tensor(x) || node.type.tensor.shape.size() == 0) return {};
        const bool largest = is_call(&node, graph::ops().max_window);
        const Call call = call_of(node);
        const Window w = largest ? max_window_of(call) : avg_window_of(call, shape_of(x), 1);
        const int rank = w.axes + 2;
        if (shape_of(x).rank() != rank) return {};
        const LayerOperand size = LayerOperand::ints(turned(node.type.tensor.shape, to_last(rank)));
        const LayerOperand from = last(x, rank);
        if (largest)
            return front(emit(light().max_pool,
                              {from, three(w.kernel), three(w.stride), three(w.dilation), three(w.before), size}));
        const int64_t divisor = node.args[6].is_nil() ? 0 : node.args[6].integer();
        return front(emit(light().average_pool,
                          {from, three(w.kernel), three(w.stride), three(w.dilation), three(w.before), three(w.after),
                           LayerOperand(node.args[5].boolean()), LayerOperand(divisor), size}));
    }

    LayerOperand elementwise(const ir::Node& node) {
        const Shape shape = node.type.tensor.shape;
        bool any = false;
        for (const LayerOperand& arg : node.args) {
            if (arg.is_list()) return {};
            any |= has_twin(arg) && shape_of(arg) == shape;
            if (has_twin(arg) && !(shape_of(arg) == shape)) return {};
        }
        if (!any) return {};
        std::vector<LayerOperand> args;
        for (const LayerOperand& arg : node.args) args.push_back(last(arg, shape.rank()));
        return front(emit(*node.op, args));
    }

    LayerOperand concat(const ir::Node& node) {
        const int rank = node.type.tensor.shape.rank();
        const int64_t axis = node.args[1].integer();
        if (rank < 3 || (axis != 1 && axis != 1 - rank) || !node.args[0].is_list()) return {};
        std::vector<LayerOperand> items;
        for (const LayerOperand& item : node.args[0].items()) {
            if (!has_twin(item)) return {};
            items.push_back(last(item, rank));
        }
        return front(emit(*node.op, {LayerOperand::list(std::move(items)), LayerOperand(int64_t{rank - 1})}));
    }

    // Rows of a large table, which is stored in halves where weights are.
    LayerOperand gather(const ir::Node& node) {
        const Tensor* table = constant_of(node.args[0]);
        const bool halves = options_.weights == "f16" || options_.weights == "bf16";
        if (!halves || !table || table->dtype() != DType::f32 || table->size() < 1024) return {};
        const PlaceScope host(nullptr);
        const DType type = options_.weights == "f16" ? DType::f16 : DType::bf16;
        std::vector<LayerOperand> args = node.args;
        args[0] = constant(run(graph::ops().cast, {LayerOperand(*table), LayerOperand(type)}).tensor());
        return emit(graph::ops().cast, {emit(*node.op, args), LayerOperand(DType::f32)});
    }

    // A sum or mean over all pixels.
    LayerOperand pixel_sum(const ir::Node& node) {
        const LayerOperand& x = node.args[0];
        if (!has_twin(x) || node.type.tensor.dtype != DType::f32) return {};
        const Shape shape = shape_of(x);
        const Call call = call_of(node);
        const Shape axes = call.axes(1, 0);
        uint32_t mask = 0;
        for (const int64_t a : axes) mask |= 1u << a;
        if (mask != (1u << shape.rank()) - 4) return {};
        Shape pixels;
        int64_t count = 1;
        for (int i = 1; i < shape.rank() - 1; ++i) {
            pixels.push_back(i);
            count *= shape[i + 1];
        }
        LayerOperand sum = emit(
            graph::ops().sum, {last(x, shape.rank()), LayerOperand::ints(pixels), LayerOperand(false), LayerOperand()});
        // Not a quotient, which becomes a product for some numbers only: a model that is resized has one form.
        if (is_call(&node, graph::ops().mean))
            sum = emit(graph::ops().mul, {sum, LayerOperand(1.0 / static_cast<double>(count))});
        return reshaped(sum, node.type.tensor.shape);
    }

    const PassOptions& options_;
    ir::GraphBuilder* builder_ = nullptr;
    std::unordered_map<const ir::Node*, LayerOperand> twins_;  // by the view that stands for the value
};

}  // namespace

bool use_light_kernels(ir::Graph& graph, const PassOptions& options) {
    Layers layers(options);
    return graph::rewrite(graph,
                          [&](ir::Node& node, ir::GraphBuilder& builder) { return layers.replaced(node, builder); });
}

}  // namespace lunaria::lite
