// Expansion of composite operators within a rule's graph: a rule may call an operator that has a kernel for the first
// derivative and none of its own for further ones.
#include <algorithm>

#include "core/ir/substitution.h"
#include "jit/autodiff/pullback.h"
#include "jit/language.h"

namespace lunaria::autodiff {

namespace {

bool is_composite(const ir::Node& node) {
    return node.op && !node.op->belongs_to(lua::language()) && needs_expansion(*node.op);
}

// A tensor of that type without elements of its own: expansions only look at types.
Value stand_in(const TensorType& type) {
    Strides strides;
    strides.resize(type.shape.rank(), 0);
    return Value(Tensor::zeros(type.dtype, {}).view(type.shape, strides));
}

class Expander {
  public:
    explicit Expander(const ir::Graph& graph)
        : graph_(graph), copy_(std::make_unique<ir::Graph>(graph.name)), values_(copy_.get()) {}

    std::unique_ptr<ir::Graph> run() {
        copy_->span = graph_.span;
        copy_->captures = graph_.captures;
        copy_->variadic = graph_.variadic;
        for (const ir::Node* p : graph_.parameters()) values_[p] = Value(copy_->add_parameter(p->name, p->type));
        for (const ir::Node* node : graph_.body())
            values_[node] = is_composite(*node) ? expand(*node) : values_.copy(*node);
        copy_->result = values_(graph_.result);
        return std::move(copy_);
    }

  private:
    Value expand(const ir::Node& node) {
        std::vector<Value> types, operands;
        auto add = [&](const Value& arg) {
            if (arg.is_node()) operands.push_back(values_(arg));
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
        ir::Substitution outer = std::exchange(values_, ir::Substitution(copy_.get()));
        for (size_t i = 0; i < operands.size(); ++i) values_[inner->parameters().at(i)] = operands[i];
        for (const ir::Node* n : inner->body()) values_[n] = is_composite(*n) ? expand(*n) : values_.copy(*n);
        Value result = values_(inner->result);
        values_ = std::move(outer);
        return result;
    }

    const ir::Graph& graph_;
    std::unique_ptr<ir::Graph> copy_;
    ir::Substitution values_;
};

}  // namespace

std::unique_ptr<ir::Graph> without_composites(const ir::Graph& graph) {
    if (!std::any_of(graph.body().begin(), graph.body().end(), [](const ir::Node* n) { return is_composite(*n); }))
        return nullptr;
    return Expander(graph).run();
}

}  // namespace lunaria::autodiff
