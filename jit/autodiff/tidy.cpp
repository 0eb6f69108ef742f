#include "jit/autodiff/tidy.h"

#include <unordered_set>

namespace lunaria::autodiff {

namespace {

bool is_promoted(const Param& param) { return param.type == ArgType::same || param.type == ArgType::real; }

class Tidier {
  public:
    Tidier(const ir::Graph& raw, const NumberParameters& numbers)
        : raw_(raw), numbers_(numbers), copy_(std::make_unique<ir::Graph>(raw.name)) {}

    std::unique_ptr<ir::Graph> run(const std::vector<bool>& keep, std::vector<size_t>& kept) {
        mark();
        for (size_t i = 0; i < raw_.parameters().size(); ++i) {
            ir::Node* p = raw_.parameters()[i];
            if (!keep[i] && !live_.contains(p)) continue;
            map_[p] = Value(copy_->add_parameter(p->name, p->type));
            kept.push_back(i);
        }
        for (const ir::Node* node : raw_.body())
            if (live_.contains(node)) map_[node] = Value(copy_node(*node));
        copy_->result = copied(raw_.result);
        return std::move(copy_);
    }

  private:
    void mark() {
        auto need = [&](const ir::Node* node) { live_.insert(node); };
        ir::for_each_node(raw_.result, need);
        for (size_t i = raw_.body().size(); i-- > 0;) {
            const ir::Node* node = raw_.body()[i];
            if (node->op && !node->op->is_repeatable()) need(node);
            if (!live_.contains(node)) continue;
            for (const Value& arg : node->args) ir::for_each_node(arg, need);
        }
    }

    ir::Node* copy_node(const ir::Node& node) {
        if (node.kind == ir::NodeKind::item) {
            ir::Node* results = map_.at(node.args[0].node()).node();
            for (ir::Node* other : items_)
                if (other->args[0].node() == results && other->index == node.index) return other;
            items_.push_back(copy_->add_item(*results, node.index));
            return items_.back();
        }
        std::vector<Value> args;
        for (size_t i = 0; i < node.args.size(); ++i)
            args.push_back(adapts(node, i) ? map_.at(node.args[i].node()) : copied(node.args[i]));
        return call(*node.op, std::move(args), node.type, node.span);
    }

    ir::Node* call(const Op& op, std::vector<Value> args, const ir::NodeType& type, const ir::Span& span) {
        bool pure = op.is_repeatable();
        if (pure) {
            auto [first, last] = calls_.equal_range(&op);
            for (; first != last; ++first)
                if (same_arguments(first->second->args, args)) return first->second;
        }
        ir::Node* made = copy_->add_call(op, std::move(args), type);
        made->span = span;
        if (pure) calls_.emplace(&op, made);
        return made;
    }
    static bool same_arguments(const std::vector<Value>& a, const std::vector<Value>& b) {
        for (size_t i = 0; i < a.size(); ++i)
            if (!same_value(a[i], b[i])) return false;
        return true;
    }

    // Whether argument i is a number that may adapt to the operands beside it, which then decide the dtype of the call.
    bool adapts(const ir::Node& node, size_t i) const {
        if (!is_number(node.args[i]) || !is_promoted(node.op->signature.params[i])) return false;
        std::vector<Value> weak = node.args;
        bool beside_tensor = false;
        for (size_t k = 0; k < weak.size(); ++k) {
            if (!is_promoted(node.op->signature.params[k])) continue;
            if (is_number(weak[k]))
                weak[k] = numbers_.at(weak[k].node()) == Value::Kind::integer ? Value(1) : Value(1.0);
            else
                beside_tensor |= weak[k].is_node() || weak[k].is_tensor();
        }
        return beside_tensor && promoted_dtype(*node.op, weak) == promoted_dtype(*node.op, node.args);
    }
    bool is_number(const Value& v) const { return v.is_node() && numbers_.contains(v.node()); }

    Value copied(const Value& v) {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(copied(item));
            return Value::list(std::move(items));
        }
        if (!v.is_node()) return v;
        if (is_number(v)) return tensor_of(*v.node());
        if (v.node()->kind == ir::NodeKind::constant) return constant(*v.node());
        return map_.at(v.node());
    }
    Value constant(const ir::Node& node) {
        auto [found, made] = map_.try_emplace(&node);
        if (!made) return found->second;
        for (ir::Node* other : constants_)
            if (other->constant.is_tensor() && same_value(other->constant, node.constant))
                return found->second = Value(other);
        constants_.push_back(copy_->add_constant(node.constant));
        return found->second = Value(constants_.back());
    }
    // The number times a one of its dtype, which keeps every value and has a gradient.
    Value tensor_of(const ir::Node& number) {
        auto [found, made] = tensors_.try_emplace(&number);
        if (!made) return found->second;
        DType dtype = number.type.tensor.dtype;
        Value one(copy_->add_constant(Value(Tensor::scalar(dtype, 1))));
        return found->second = Value(call(registry().get("mul"), {map_.at(&number), one}, number.type, {}));
    }

    const ir::Graph& raw_;
    const NumberParameters& numbers_;
    std::unique_ptr<ir::Graph> copy_;
    std::unordered_set<const ir::Node*> live_;
    std::unordered_map<const ir::Node*, Value> map_, tensors_;
    std::unordered_multimap<const Op*, ir::Node*> calls_;
    std::vector<ir::Node*> items_, constants_;
};

}  // namespace

std::unique_ptr<ir::Graph> tidy(const ir::Graph& raw, const NumberParameters& numbers, const std::vector<bool>& keep,
                                std::vector<size_t>& kept) {
    return Tidier(raw, numbers).run(keep, kept);
}

}  // namespace lunaria::autodiff
