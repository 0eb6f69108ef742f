#include "interpreter/workers/row_program.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/ir/substitution.h"
#include "core/operator/expansion.h"
#include "core/run/placement.h"
#include "jit/autodiff/batched.h"
#include "jit/graph/passes.h"

namespace lunaria {

namespace {

// Of numbers of rows for which there is a program of its own.
constexpr size_t kMostSizes = 4;

// Generated code rounds a product and a sum behind it once, and a kernel twice: here every operator has its kernel.
constexpr bool kGenerate = false;

// Whether an element of the result is the same whatever else is in the tensor: sums and products of matrices add up in
// another order for other shapes.
bool is_exact(const ir::Node& node) {
    if (!node.op) return true;
    const Op& op = *node.op;
    return op.side_effect == Effect::none &&
           (op.is_elementwise || op.only_moves || op.view_fn || op.reads_type_only || op.fuses_as == Fusion::cast);
}

bool holds_constants_alone(const Value& v) {
    bool constant = true;
    ir::for_each_node(v, [&](ir::Node* node) { constant &= node->kind == ir::NodeKind::constant; });
    return constant;
}

std::unique_ptr<ir::Graph> copy_of(const ir::Graph& graph) {
    auto copy = std::make_unique<ir::Graph>(graph.name);
    ir::Substitution copied(copy.get());
    for (const ir::Node* p : graph.parameters()) copied[p] = Value(copy->add_parameter(p->name, p->type));
    for (const ir::Node* node : graph.body()) copied[node] = copied.copy(*node);
    copy->result = copied(graph.result);
    return copy;
}

// The graph for so many rows, each with an axis more in front; null where an operator has no rule.
class TogetherBuilder {
  public:
    TogetherBuilder(const ir::Graph& from, int64_t rows) : from_(from), rows_(rows), values_(to_.get()) {}

    std::unique_ptr<ir::Graph> build() {
        for (const ir::Node* p : from_.parameters()) {
            TensorType type = p->type.tensor;
            type.shape.insert(0, rows_);
            set(p, Value(to_->add_parameter(p->name, ir::NodeType::of(std::move(type)))), true);
        }
        for (const ir::Node* node : from_.body())
            if (!add(*node)) return nullptr;
        std::vector<Value> results;
        for (const Value& v : from_.result.items()) {
            if (!v.is_node() || !differs(v)) return nullptr;
            results.push_back(values_(v));
        }
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
    // A tensor of the type of a row's value, for rules, which look at no elements.
    Value stand_in(const Value& v) {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) items.push_back(stand_in(item));
            return Value::list(std::move(items));
        }
        if (!v.is_node()) return v;
        const ir::Node* node = v.node();
        if (node->kind == ir::NodeKind::constant) return node->constant;
        const TensorType& type = node->tensor_type();
        const Shape strides(std::vector<int64_t>(static_cast<size_t>(type.shape.rank())));
        const Value made(Tensor::zeros(type.dtype, {}).view(type.shape, strides));
        if (differing_.contains(node)) batched_.insert(made.tensor().body());
        stand_ins_.push_back(made);
        return made;
    }
    bool add(const ir::Node& node) {
        const Value args = Value::list(node.args);
        if (!differs(args)) {
            values_[&node] = values_.copy(node);
            return true;
        }
        if (!node.op) {
            const Value& from = whole_[node.args[0].node()];
            set(&node, from.items().at(node.index), true);
            return true;
        }
        std::vector<Value> samples;
        for (const Value& v : node.args) samples.push_back(stand_in(v));
        const auto rule = autodiff::batched(
            *node.op, samples, [&](const Value& v) { return v.is_tensor() && batched_.contains(v.tensor().body()); },
            rows_);
        if (!rule) return false;
        std::vector<Value> operands;
        for (size_t i = 0; i < node.args.size(); ++i) {
            if (autodiff::is_fixed(*node.op, samples, i)) continue;
            if (node.args[i].is_list())
                for (const Value& item : node.args[i].items()) operands.push_back(operand(item));
            else
                operands.push_back(operand(node.args[i]));
        }
        if (operands.size() != rule->parameters().size()) return false;
        for (size_t i = 0; i < operands.size(); ++i) {
            if (operands[i].is_number())
                operands[i] =
                    Value(to_->add_constant(number_as_tensor(operands[i], rule->parameters()[i]->tensor_type().dtype)));
            else if (!(type_of(operands[i]) == rule->parameters()[i]->tensor_type()))
                return false;
        }
        ir::Substitution inside(to_.get());
        for (size_t i = 0; i < operands.size(); ++i) inside[rule->parameters()[i]] = operands[i];
        for (const ir::Node* part : rule->body()) {
            if (part->op && registry().find(part->op->name()) != part->op) return false;
            inside[part] = inside.copy(*part);
        }
        const Value results = inside(rule->result);
        whole_[&node] = results;
        set(&node, node.type.kind == ir::NodeType::Kind::list ? results : results.items().at(0), true);
        return true;
    }
    Value operand(const Value& v) {
        const Value made = values_(v);
        return made.is_tensor() ? Value(to_->add_constant(made)) : made;
    }

    const ir::Graph& from_;
    const int64_t rows_;
    std::unique_ptr<ir::Graph> to_ = std::make_unique<ir::Graph>("rows");
    ir::Substitution values_;
    std::unordered_set<const ir::Node*> differing_;
    std::unordered_set<const TensorBody*> batched_;
    std::unordered_map<const ir::Node*, Value> whole_;  // the results of a call, as a list
    std::vector<Value> stand_ins_;                      // so that no other tensor gets the body of one of them
};

std::vector<Tensor> tensors_of(std::span<const Value> values) {
    std::vector<Tensor> tensors;
    tensors.reserve(values.size());
    for (const Value& v : values) tensors.push_back(v.tensor());
    return tensors;
}

// Rows on top of each other.
Tensor stacked(std::span<const data::Row> rows, size_t column, const TensorType& type) {
    Shape shape = type.shape;
    shape.insert(0, static_cast<int64_t>(rows.size()));
    Tensor whole = Tensor::empty(type.dtype, shape);
    char* to = whole.data<char>();
    for (const data::Row& row : rows) {
        const Tensor dense = row[column].tensor().contiguous();
        if (dense.nbytes() > 0) std::memcpy(to, dense.raw(), dense.nbytes());
        to += dense.nbytes();
    }
    return whole;
}

}  // namespace

RowProgram::RowProgram(std::unique_ptr<ir::Graph> graph) : graph_(std::move(graph)) {
    for (const ir::Node* p : graph_->parameters()) types_.push_back(p->tensor_type());
    const PlaceScope host(nullptr);
    bool batchable = true;
    for (const Value& v : graph_->result.items()) {
        const TensorType type = type_of(v);
        shapes_.push_back(type.shape);
        batchable &= !holds_constants_alone(v) && type.shape.rank() < kMaxRank;
    }
    expanded_ = copy_of(*graph_);
    graph::expand_composites(*expanded_);
    if (expanded_->body().empty() ||
        !std::ranges::all_of(expanded_->body(), [](const ir::Node* node) { return is_exact(*node); }))
        return;
    compiled_ = graph::compile(*expanded_, {.generate = kGenerate});
    batchable_ = batchable &&
                 std::ranges::all_of(types_, [](const TensorType& t) { return t.shape.rank() < kMaxRank; }) &&
                 TogetherBuilder(*expanded_, 2).build() != nullptr;
}

bool RowProgram::takes(std::span<const Value> in) const {
    if (in.size() != types_.size()) return false;
    for (size_t i = 0; i < in.size(); ++i) {
        if (!in[i].is_tensor()) return false;
        const Tensor& t = in[i].tensor();
        if (t.dtype() != types_[i].dtype || !(t.shape() == types_[i].shape)) return false;
    }
    return true;
}

data::Row RowProgram::run(std::span<const Value> in) const {
    if (compiled_) {
        const std::vector<Tensor> inputs = tensors_of(in);
        std::vector<Tensor> outputs(results());
        compiled_->run(inputs, outputs);
        return {outputs.begin(), outputs.end()};
    }
    const Value made = ir::replay(
        *graph_, in, [](const Op& op, const std::vector<Value>& args) { return lunaria::run(op, args); },
        [](const Value& list, size_t i) { return list.items().at(i); });
    return made.items();
}

const graph::Executable* RowProgram::for_rows(size_t count) const {
    const std::lock_guard lock(mutex_);
    if (const auto found = together_.find(count); found != together_.end()) return found->second.get();
    if (together_.size() >= kMostSizes) return nullptr;
    const PlaceScope host(nullptr);
    auto graph = TogetherBuilder(*expanded_, static_cast<int64_t>(count)).build();
    return (together_[count] = graph ? graph::compile(*graph, {.generate = kGenerate}) : nullptr).get();
}

bool RowProgram::run_together(std::span<const data::Row> in, std::span<data::Row> out) const {
    const graph::Executable* program = batchable_ && in.size() > 1 ? for_rows(in.size()) : nullptr;
    if (!program) return false;
    std::vector<Tensor> inputs, outputs(results());
    for (size_t i = 0; i < types_.size(); ++i) inputs.push_back(stacked(in, i, types_[i]));
    program->run(inputs, outputs);
    for (size_t k = 0; k < outputs.size(); ++k) {
        const Tensor whole = outputs[k].contiguous();
        Strides strides = whole.strides();
        strides.erase(0);
        for (size_t i = 0; i < in.size(); ++i)
            out[i].emplace_back(whole.view(shapes_[k], strides, static_cast<int64_t>(i) * shapes_[k].size()));
    }
    return true;
}

}  // namespace lunaria
