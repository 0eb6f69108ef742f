#include <unordered_map>

#include "core/tensor/byte_key.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

constexpr int64_t kSmallConstant = 16;

// Adds the identity of an operand to the key. False: the operand cannot be compared.
bool append_operand(std::string& key, const Value& v) {
    if (!v.is_node()) return false;
    const ir::Node* node = v.node();
    // Small constants are identified by their elements, all else by its source.
    const bool small = node->kind == ir::NodeKind::constant && node->constant.is_tensor() &&
                       node->constant.tensor().size() <= kSmallConstant && node->constant.tensor().is_contiguous() &&
                       !node->constant.tensor().parameter();
    append_bytes(key, small);
    if (!small) {
        append_bytes(key, node);
        return true;
    }
    const Tensor t = node->constant.tensor().to_host();
    append_bytes(key, t.dtype());
    append_bytes(key, t.rank());
    for (int64_t d : t.shape()) append_bytes(key, d);
    key.append(t.data<char>(), t.nbytes());
    return true;
}

}  // namespace

bool share_common_subexpressions(ir::Graph& graph) {
    std::unordered_map<std::string, ir::Node*> known;
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder&) -> Value {
        if (has_effect(node)) {
            // A write may change the content of any view or variable.
            if (node.op->writes()) known.clear();
            return {};
        }
        std::string key;
        append_bytes(key, node.op);
        append_bytes(key, node.index);
        for (const Value& arg : node.args)
            if (!append_value(key, arg, append_operand)) return {};
        auto [at, is_new] = known.try_emplace(std::move(key), &node);
        return is_new ? Value() : Value(at->second);
    });
}

}  // namespace lunaria::graph
