#include "jit/graph/layout.h"

#include <sys/mman.h>

#include <algorithm>

#include "core/base/error.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

size_t arena_bytes_of(const TensorType& type) { return static_cast<size_t>(type.shape.size()) * size_of(type.dtype); }

bool is_static_tensor(const ir::Node& node) {
    return node.type.kind == ir::NodeType::Kind::tensor && node.type.tensor.shape.known();
}

}  // namespace

bool Arrangement::is_dense() const {
    Strides dense = contiguous_strides(type.shape);
    for (int i = 0; i < type.shape.rank(); ++i)
        if (type.shape[i] != 1 && strides[i] != dense[i]) return false;
    return true;
}

bool Arrangement::covers_root() const {
    return offset == 0 && type.dtype == root->type.tensor.dtype &&
           type.shape.size() == root->type.tensor.shape.size() && is_dense();
}

// Zeros without memory: view functions run on such tensors to show what they do to strides. Those that copy may read
// the zeros.
class Arrangements::Zeros {
  public:
    Zeros() = default;
    ~Zeros() { forget(); }
    Zeros(const Zeros&) = delete;

    Tensor tensor(const TensorType& type) {
        const size_t bytes = std::max<size_t>(arena_bytes_of(type), 1);
        if (bytes > bytes_) {
            forget();
            void* at = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (at == MAP_FAILED)
                throw Error(ErrorKind::memory, "compile", str("no address space for a tensor of ", bytes, " bytes"));
            at_ = at;
            bytes_ = bytes;
        }
        return Tensor::over(
            at_, type.dtype, type.shape, [](Storage&) {}, nullptr);
    }

  private:
    void forget() {
        if (at_) munmap(at_, bytes_);
        at_ = nullptr;
        bytes_ = 0;
    }
    void* at_ = nullptr;
    size_t bytes_ = 0;
};

Arrangements::Arrangements(const ir::Graph& graph) {
    Zeros zeros;
    find_written(graph);
    for (const ir::Node* p : graph.parameters()) add_root(*p);
    auto constant = [&](const ir::Node* n) {
        if (n->kind == ir::NodeKind::constant && !known_.contains(n)) add_root(*n);
    };
    ir::for_each_node(graph.result, constant);
    for (const ir::Node* node : graph.body()) {
        for (const Value& arg : node->args) ir::for_each_node(arg, constant);
        if (!add_view(*node, zeros)) add_root(*node);
    }
}

void Arrangements::find_written(const ir::Graph& graph) {
    for (const ir::Node* node : graph.body()) {
        if (!node->op || !node->op->writes()) continue;
        for (const Value& arg : node->args) ir::for_each_node(arg, [&](const ir::Node* n) { written_.insert(n); });
    }
}

void Arrangements::add_root(const ir::Node& node) {
    if (!is_static_tensor(node)) return;
    const TensorType& type = node.type.tensor;
    known_[&node] = {&node, type, contiguous_strides(type.shape), 0};
}

bool Arrangements::add_view(const ir::Node& node, Zeros& zeros) {
    if (node.kind == ir::NodeKind::item) {
        auto found = lists_.find(node.args[0].node());
        if (found == lists_.end()) return false;
        known_[&node] = found->second.at(node.index);
        return true;
    }
    if (!node.op || !node.op->view_fn || has_effect(node) || !has_static_shape(node.type)) return false;
    if (node.args.empty() || !node.args[0].is_node()) return false;
    const Arrangement* from = find(node.args[0].node());
    if (!from || written_.contains(from->root)) return false;
    Tensor whole = zeros.tensor(from->root->type.tensor);
    std::vector<Value> args = node.args;
    args[0] = Value(whole.view(from->type.shape, from->strides, from->offset));
    Value result = node.op->view_fn(Call(*node.op, args, promoted_dtype(*node.op, args)));
    // A single part is no list in a graph.
    if (result.is_list() && node.type.kind == ir::NodeType::Kind::tensor) {
        const Value alone = result.items().at(0);
        result = alone;
    }
    auto arranged = [&](const Tensor& t) -> Arrangement {
        return {from->root, {t.dtype(), t.shape()}, t.strides(), t.offset()};
    };
    if (result.is_tensor()) {
        if (!result.tensor().shares_storage(whole)) return false;
        known_[&node] = arranged(result.tensor());
        return true;
    }
    std::vector<Arrangement> parts;
    for (const Value& part : result.items()) {
        if (!part.is_tensor() || !part.tensor().shares_storage(whole)) return false;
        parts.push_back(arranged(part.tensor()));
    }
    lists_[&node] = std::move(parts);
    return true;
}

const Arrangement* Arrangements::find(const ir::Node* node) const {
    auto found = known_.find(node);
    return found == known_.end() ? nullptr : &found->second;
}

bool Arrangements::is_view(const ir::Node* node) const {
    if (lists_.contains(node)) return true;
    const Arrangement* a = find(node);
    return a && a->root != node;
}

bool simplify_views(ir::Graph& graph) {
    const Arrangements arrangements(graph);
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        if (!arrangements.is_view(&node)) return {};
        const Arrangement* a = arrangements.find(&node);
        if (!a || !a->covers_root()) return {};
        // The root is only read; a graph refers to its nodes by plain pointers.
        Value root(const_cast<ir::Node*>(a->root));
        if (a->type.shape == a->root->type.tensor.shape) return root;
        bool is_plain = is_call(&node, ops().reshape) && node.args[0].node() == a->root;
        if (is_plain) return {};
        std::vector<Value> args{root, Value::ints(a->type.shape)};
        return builder.emit(ops().reshape, args);
    });
}

}  // namespace lunaria::graph
