#include "jit/batch/transform.h"

#include <unordered_set>

#include "core/batching/batching.h"
#include "core/ir/builder.h"
#include "core/ir/substitution.h"

namespace lunaria::batch {

namespace {

class Transformation {
  public:
    Transformation(const ir::Graph& from, int64_t size)
        : from_(from), size_(size), to_(std::make_unique<ir::Graph>(from.name)), builder_(*to_), values_(to_.get()) {
        to_->span = from.span;
        builder_.expands = true;
    }

    std::unique_ptr<ir::Graph> run(const std::vector<bool>& mapped) {
        for (size_t i = 0; i < from_.parameters().size(); ++i) {
            const ir::Node* p = from_.parameters()[i];
            TensorType type = p->tensor_type();
            if (mapped[i]) type.shape.insert(0, size_);
            set(p, Value(to_->add_parameter(p->name, ir::NodeType::of(std::move(type)))), mapped[i]);
        }
        for (const ir::Node* node : from_.body())
            if (!add(*node)) return nullptr;
        std::vector<Value> results;
        for (const Value& v : from_.result.items()) results.push_back(result(v));
        to_->result = Value::list(std::move(results));
        return std::move(to_);
    }

  private:
    void set(const ir::Node* node, Value v, bool differs) {
        values_[node] = std::move(v);
        if (differs) differing_.insert(node);
    }
    bool differs(const Value& v) const {
        bool found = false;
        ir::for_each_node(v, [&](ir::Node* node) { found |= differing_.contains(node); });
        return found;
    }
    // An argument as a rule sees it: where it differs between samples, a tensor of a sample's type without elements of
    // its own; otherwise its value for all samples.
    Value sample(const Value& v) {
        if (!v.is_list()) return differs(v) ? type_alone(type_of(v)) : values_(v);
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(sample(item));
        return Value::list(std::move(items));
    }
    static Value type_alone(const TensorType& type) {
        const Shape strides(std::vector<int64_t>(static_cast<size_t>(type.shape.rank())));
        return Value(Tensor::zeros(type.dtype, {}).view(type.shape, strides));
    }
    // The tensors of the batch; nil for values that all samples share.
    Value whole(const Value& v) {
        if (!differs(v)) return {};
        if (!v.is_list()) return values_(v);
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(whole(item));
        return Value::list(std::move(items));
    }

    bool add(const ir::Node& node) {
        if (!differs(Value::list(node.args))) {
            values_[&node] = values_.copy(node);
            return true;
        }
        if (!node.op) {
            set(&node, values_(node.args[0]).items().at(node.index), true);
            return true;
        }
        if (node.op->host_fn || registry().find(node.op->name()) != node.op) return false;
        std::vector<Value> samples, wholes;
        for (const Value& v : node.args) {
            samples.push_back(sample(v));
            wholes.push_back(whole(v));
        }
        builder_.span = node.span;
        const Call call(*node.op, samples, promoted_dtype(*node.op, samples));
        const Value results = batched_results(BatchCall(call, builder_, wholes, size_));
        if (results.is_nil()) return false;
        const bool listed = node.type.kind == ir::NodeType::Kind::list;
        set(&node, listed ? Value::list(separate_results(builder_, results)) : results, true);
        return true;
    }

    Value result(const Value& v) {
        if (differs(v)) return values_(v);
        Shape shape = type_of(v).shape;
        shape.insert(0, size_);
        const Value same = values_(v);
        return Expr(builder_, same.is_node() ? same : Value(to_->add_constant(same))).broadcast_to(shape).value();
    }

    const ir::Graph& from_;
    const int64_t size_;
    std::unique_ptr<ir::Graph> to_;
    ir::GraphBuilder builder_;
    ir::Substitution values_;
    std::unordered_set<const ir::Node*> differing_;
};

}  // namespace

std::unique_ptr<ir::Graph> transform(const ir::Graph& graph, const std::vector<bool>& mapped, int64_t size) {
    return Transformation(graph, size).run(mapped);
}

}  // namespace lunaria::batch
