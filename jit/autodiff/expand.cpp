// Composite operators within a rule's graph, replaced by what they are made of: a rule may call an operator that has a
// kernel for the first derivative and none of its own for further ones.
#include <algorithm>
#include <unordered_map>

#include "jit/autodiff/pullback.h"
#include "jit/language.h"

namespace lunaria::autodiff {

namespace {

bool is_composite(const ir::Node& node) {
    return node.op && !node.op->belongs_to(lua::language()) && needs_expansion(*node.op);
}

// A tensor of that type without elements of its own: expansions look at types only.
Value stand_in(const TensorType& type) {
    Strides strides;
    strides.resize(type.shape.rank(), 0);
    return Value(Tensor::zeros(type.dtype, {}).view(type.shape, strides));
}

class Expander {
  public:
    explicit Expander(const ir::Graph& graph) : graph_(graph), copy_(std::make_unique<ir::Graph>(graph.name)) {}

    std::unique_ptr<ir::Graph> run() {
        copy_->span = graph_.span;
        copy_->captures = graph_.captures;
        copy_->variadic = graph_.variadic;
        for (const ir::Node* p : graph_.parameters()) map_[p] = Value(copy_->add_parameter(p->name, p->type));
        for (const ir::Node* node : graph_.body()) map_[node] = is_composite(*node) ? expand(*node) : copy(*node);
        copy_->result = tr(graph_.result);
        return std::move(copy_);
    }

  private:
    Value copy(const ir::Node& node) {
        ir::Node* made = nullptr;
        if (node.kind == ir::NodeKind::item) {
            const Value source = tr(node.args[0]);
            if (source.is_list()) return source.items().at(node.index);
            made = copy_->add_item(*source.node(), node.index);
        } else {
            std::vector<Value> args;
            for (const Value& arg : node.args) args.push_back(tr(arg));
            made = copy_->add_call(*node.op, std::move(args), node.type);
        }
        made->type = node.type;
        made->span = node.span;
        return Value(made);
    }

    Value expand(const ir::Node& node) {
        std::vector<Value> types, operands;
        auto add = [&](const Value& arg) {
            if (arg.is_node()) operands.push_back(tr(arg));
            return arg.is_node() ? stand_in(arg.node()->tensor_type()) : arg;
        };
        for (size_t i = 0; i < node.args.size(); ++i) {
            const Value& arg = node.args[i];
            if (arg.is_list() && is_tensor_type(node.op->signature.params[i].type)) {
                std::vector<Value> items;
                for (const Value& item : arg.items()) items.push_back(add(item));
                types.push_back(Value::list(std::move(items)));
                continue;
            }
            types.push_back(add(arg));
            if (!arg.is_node() && arg.is_number() && is_tensor_type(node.op->signature.params[i].type))
                operands.push_back(arg);
        }
        const std::shared_ptr<const ir::Graph> inner = expansion(*node.op, types);
        std::unordered_map<const ir::Node*, Value> outer = std::exchange(map_, {});
        for (size_t i = 0; i < operands.size(); ++i) map_[inner->parameters().at(i)] = operands[i];
        for (const ir::Node* n : inner->body()) map_[n] = is_composite(*n) ? expand(*n) : copy(*n);
        Value result = tr(inner->result);
        map_ = std::move(outer);
        return result;
    }

    Value tr(const Value& v) {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(tr(item));
            return Value::list(std::move(items));
        }
        if (!v.is_node()) return v;
        const ir::Node& node = *v.node();
        if (node.kind != ir::NodeKind::constant) return map_.at(&node);
        Value& copied = map_[&node];
        if (copied.is_nil()) copied = Value(copy_->add_constant(node.constant));
        return copied;
    }

    const ir::Graph& graph_;
    std::unique_ptr<ir::Graph> copy_;
    std::unordered_map<const ir::Node*, Value> map_;
};

}  // namespace

std::unique_ptr<ir::Graph> without_composites(const ir::Graph& graph) {
    if (!std::any_of(graph.body().begin(), graph.body().end(), [](const ir::Node* n) { return is_composite(*n); }))
        return nullptr;
    return Expander(graph).run();
}

}  // namespace lunaria::autodiff
