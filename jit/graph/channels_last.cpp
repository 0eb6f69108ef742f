// The pass that keeps the channels of a pixel side by side, the order in which libraries compute, in consecutive
// convolutions and in the operators between them, so that nothing is reordered in between.
//
// A value kept in that order has a twin of shape (batch, height, width, channels); for all other nodes the value is a
// view of that twin. A node that cannot read a view gets a copy in the usual order.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/conv.h"
#include "jit/graph/layout.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

const Shape kToFront{0, 3, 1, 2}, kToBack{0, 2, 3, 1};

const TensorType* images_of(const ir::Node* node) {
    if (!node || node->type.kind != ir::NodeType::Kind::tensor) return nullptr;
    const TensorType& t = node->type.tensor;
    return t.shape.known() && t.shape.rank() == 4 && t.shape.size() > 0 ? &t : nullptr;
}

Call as_call(const ir::Node& node) { return Call(*node.op, node.args, promoted_dtype(*node.op, node.args)); }

// With few channels registers are half empty in this order. A convolution of each channel by itself has no sums over
// channels and is as fast in either order.
bool is_wide_convolution(const ir::Node& node) {
    if (!is_call(&node, ops().conv2d)) return false;
    const TensorType *x = images_of(node_of(node.args[0])), *y = images_of(&node);
    if (!x || !y || x->dtype != DType::f32 || y->dtype != DType::f32) return false;
    const int64_t in = x->shape[1], out = y->shape[1], groups = node.args[7].integer();
    if (groups != 1) return groups == in && groups == out && out % 8 == 0;
    return out % 8 == 0 && (in % 8 == 0 || out >= 32);
}

// Gradients read the operands of convolutions in an order of their own.
bool is_inference(const ir::Graph& graph) {
    for (const ir::Node* node : graph.body()) {
        if (!node->op) return false;
        if (node->op->writes()) return false;
        for (const Op* gradient : {&ops().conv_input_grad, &ops().conv_weight_grad, &ops().max_window_grad})
            if (node->op == gradient) return false;
    }
    return true;
}

// The choice of the nodes with twins.
class Choice {
  public:
    explicit Choice(const ir::Graph& graph) : arrangements_(graph) {
        int kept = 0;
        for (const ir::Node* node : graph.body()) {
            if (!joins(*node)) continue;
            chosen_.insert(node);
            if (is_wide_convolution(*node) && contains(node_of(node->args[0]))) ++kept;
        }
        std::unordered_set<const ir::Node*> given_back;
        for (const ir::Node* node : graph.body()) {
            if (is_pixel_sum(*node)) pixel_sums_.insert(node);
            for (const Value& arg : node->args)
                ir::for_each_node(arg, [&](const ir::Node* n) {
                    if (!contains(n)) return;
                    ++uses_[n];
                    if (!contains(node) && !adds_pixels(node)) given_back.insert(n);
                });
        }
        ir::for_each_node(graph.result, [&](const ir::Node* n) {
            ++uses_[n];
            if (contains(n)) given_back.insert(n);
        });
        if (kept <= static_cast<int>(given_back.size())) chosen_.clear();
    }

    bool is_empty() const { return chosen_.empty(); }
    bool contains(const ir::Node* node) const { return node && chosen_.contains(node); }
    bool has_one_use(const ir::Node* node) const { return uses_.at(node) == 1; }

    // A sum or mean over height and width of a chosen value, whose result is no image.
    bool adds_pixels(const ir::Node* node) const { return pixel_sums_.contains(node); }

  private:
    bool is_pixel_sum(const ir::Node& node) const {
        if (!is_call(&node, ops().sum) && !is_call(&node, ops().mean)) return false;
        const TensorType* x = images_of(node_of(node.args[0]));
        if (!x || !contains(node_of(node.args[0])) || node.type.tensor.dtype != x->dtype) return false;
        const Shape axes = as_call(node).axes(1, 0);
        return axes.rank() == 2 && ((axes[0] == 2 && axes[1] == 3) || (axes[0] == 3 && axes[1] == 2));
    }

    bool joins(const ir::Node& node) const {
        if (is_wide_convolution(node)) return true;
        const TensorType* y = images_of(&node);
        if (!y || !node.op || has_effect(node) || arrangements_.is_view(&node)) return false;
        if (is_call(&node, ops().max_window)) {
            const Value& size = node.args[1];
            return contains(node_of(node.args[0])) && size.is_list() && size.items().size() == 2;
        }
        if (!node.op->is_elementwise) return false;
        bool any = false;
        for (const Value& arg : node.args) {
            const ir::Node* n = node_of(arg);
            if (!n) {
                if (arg.is_list()) return false;
                continue;
            }
            if (contains(n)) {
                if (!(n->type.tensor.shape == y->shape)) return false;
                any = true;
            } else if (!is_small(*n, y->shape)) {
                return false;
            }
        }
        return any;
    }

    // One value, or one for each channel (and image), which is cheap to read in another order.
    static bool is_small(const ir::Node& node, const Shape& images) {
        if (node.type.kind != ir::NodeType::Kind::tensor) return false;
        const Shape& s = node.type.tensor.shape;
        if (!s.known() || s.rank() > 4) return false;
        if (s.size() == 1) return true;
        if (s.rank() < 3 || s[s.rank() - 1] != 1 || s[s.rank() - 2] != 1) return false;
        return s.size() * 4 <= images.size();
    }

    const Arrangements arrangements_;
    std::unordered_set<const ir::Node*> chosen_, pixel_sums_;
    std::unordered_map<const ir::Node*, int> uses_;
};

class Turner {
  public:
    explicit Turner(const Choice& choice) : choice_(choice) {}

    Value turn(ir::Node& node, ir::GraphBuilder& builder) {
        builder_ = &builder;
        if (!choice_.contains(&node)) return choice_.adds_pixels(&node) ? pixel_sum(node) : give_back(node);
        const Value twin = twin_of(node);
        const Value front = emit(ops().transpose, {twin, Value::ints(kToFront), Value()});
        twins_[front.node()] = twin;
        originals_[front.node()] = &node;
        return front;
    }

    // The result of the graph in the usual order.
    Value finished(const Value& v, ir::GraphBuilder& builder) {
        builder_ = &builder;
        if (!v.is_list()) return dense(v);
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(finished(item, builder));
        return Value::list(std::move(items));
    }

  private:
    Value emit(const Op& op, const std::vector<Value>& args) { return builder_->emit(op, args); }

    bool has_twin(const Value& v) const { return v.is_node() && twins_.contains(v.node()); }
    // The value in the order of the twins.
    Value last(const Value& v) {
        if (!v.is_node()) return v;
        if (auto found = twins_.find(v.node()); found != twins_.end()) return found->second;
        Shape s = v.node()->type.tensor.shape;
        if (s.rank() == 0) return v;
        Value four = v;
        if (s.rank() < 4) {
            Shape wide;
            for (int i = s.rank(); i < 4; ++i) wide.push_back(1);
            for (int64_t n : s) wide.push_back(n);
            four = emit(ops().reshape, {v, Value::ints(wide)});
        }
        return emit(ops().transpose, {four, Value::ints(kToBack), Value()});
    }

    Value twin_of(const ir::Node& node) {
        if (is_call(&node, ops().conv2d)) {
            const Window w = convolution_of(as_call(node)).window;
            return emit(ops().conv2d_last,
                        {last(node.args[0]), node.args[1], node.args[2], Value::ints(w.attribute(w.stride)),
                         Value::ints(w.padding()), Value::ints(w.attribute(w.dilation)), node.args[7]});
        }
        if (is_call(&node, ops().max_window)) return largest(node);
        std::vector<Value> args;
        for (const Value& arg : node.args) args.push_back(last(arg));
        return emit(*node.op, args);
    }

    // The largest of relu's results is relu of the largest, and there are fewer of those.
    Value largest(const ir::Node& node) {
        std::vector<Value> args = node.args;
        const Value x = last(args[0]);
        const ir::Node* before = originals_.at(args[0].node());
        const bool cut = is_call(x.node(), ops().relu) && choice_.has_one_use(before);
        args[0] = cut ? x.node()->args[0] : x;
        const Value most = emit(ops().max_window_last, args);
        return cut ? emit(ops().relu, {most}) : most;
    }

    Value pixel_sum(const ir::Node& node) {
        const Shape& shape = node.args[0].node()->type.tensor.shape;
        const Value x = last(node.args[0]);
        Value sum = emit(ops().sum, {x, Value::ints({1, 2}), Value(false), Value()});
        if (is_call(&node, ops().mean))
            sum = emit(ops().div, {sum, Value(static_cast<double>(shape[2] * shape[3])), Value()});
        const Shape& wanted = node.type.tensor.shape;
        return wanted.rank() == 2 ? sum : emit(ops().reshape, {sum, Value::ints(wanted)});
    }

    Value dense(const Value& v) {
        if (!has_twin(v)) return v;
        Value& copy = copies_[v.node()];
        if (copy.is_nil()) {
            const Shape& shape = v.node()->type.tensor.shape;
            // A reshape that is no view copies the elements in their order.
            copy = emit(ops().reshape, {emit(ops().reshape, {v, Value::ints({shape.size()})}), Value::ints(shape)});
        }
        return copy;
    }

    Value give_back(ir::Node& node) {
        if (!node.op || node.op->takes_strides || node.op->is_elementwise) return {};
        for (Value& arg : node.args) {
            if (!arg.is_list()) {
                arg = dense(arg);
                continue;
            }
            std::vector<Value> items;
            for (const Value& item : arg.items()) items.push_back(dense(item));
            arg = Value::list(std::move(items));
        }
        return {};
    }

    const Choice& choice_;
    ir::GraphBuilder* builder_ = nullptr;
    std::unordered_map<const ir::Node*, Value> twins_, copies_;       // by the view that stands for the value
    std::unordered_map<const ir::Node*, const ir::Node*> originals_;  // the node that the view stands for
};

}  // namespace

bool keep_channels_last(ir::Graph& graph) {
    // Most graphs have no such convolutions; they skip the rest.
    const auto& body = graph.body();
    if (std::count_if(body.begin(), body.end(), [](const ir::Node* n) { return is_wide_convolution(*n); }) < 2)
        return false;
    if (!has_kernel(ops().conv2d_last) || !has_kernel(ops().max_window_last) || !is_inference(graph)) return false;
    const Choice choice(graph);
    if (choice.is_empty()) return false;
    Turner turner(choice);
    rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) { return turner.turn(node, builder); });
    ir::GraphBuilder builder(graph);
    graph.result = turner.finished(graph.result, builder);
    return true;
}

}  // namespace lunaria::graph
