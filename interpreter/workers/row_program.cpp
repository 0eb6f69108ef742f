#include "interpreter/workers/row_program.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/ir/substitution.h"
#include "core/run/placement.h"
#include "jit/batch/transform.h"
#include "jit/graph/passes.h"

namespace lunaria {

namespace {

// How many numbers of rows have a program of their own.
constexpr size_t kMostSizes = 4;

// Generated code rounds a product and a following sum once, kernels twice: here every operator runs as a kernel.
constexpr bool kGenerate = false;

// Whether an element of the result does not depend on the rest of the tensor: sums and products of matrices add up in
// another order for other shapes.
bool is_exact(const ir::Node& node) {
    if (!node.op) return true;
    const Op& op = *node.op;
    return op.is_repeatable() &&
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

std::unique_ptr<ir::Graph> together(const ir::Graph& graph, size_t rows) {
    return batch::transform(graph, std::vector<bool>(graph.parameters().size(), true), static_cast<int64_t>(rows));
}

std::vector<Tensor> tensors_of(std::span<const Value> values) {
    std::vector<Tensor> tensors;
    tensors.reserve(values.size());
    for (const Value& v : values) tensors.push_back(v.tensor());
    return tensors;
}

// Stacks rows to a tensor.
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
                 together(*expanded_, 2) != nullptr;
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
    const auto graph = together(*expanded_, count);
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
