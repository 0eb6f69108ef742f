#include <cstring>
#include <unordered_map>

#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

constexpr int64_t kSmallConstant = 16;

template <class T>
void append(std::string& key, const T& bits) {
    key.append(reinterpret_cast<const char*>(&bits), sizeof bits);
}

// What tells an operand from others, byte by byte. False: it can't be compared.
bool describe(std::string& key, const Value& v) {
    append(key, v.kind());
    switch (v.kind()) {
        case Value::Kind::nil:
            return true;
        case Value::Kind::boolean:
        case Value::Kind::integer:
            append(key, v.integer());
            return true;
        case Value::Kind::number:
            append(key, v.number());
            return true;
        case Value::Kind::dtype:
            append(key, v.dtype());
            return true;
        case Value::Kind::string:
            append(key, v.string().size());
            key += v.string();
            return true;
        case Value::Kind::list:
            append(key, v.items().size());
            for (const Value& item : v.items())
                if (!describe(key, item)) return false;
            return true;
        case Value::Kind::node: {
            const ir::Node* node = v.node();
            // Small constants are told apart by their elements, everything else by where it comes from.
            bool small = node->kind == ir::NodeKind::constant && node->constant.is_tensor() &&
                         node->constant.tensor().size() <= kSmallConstant && node->constant.tensor().is_contiguous() &&
                         !node->constant.tensor().parameter();
            append(key, small);
            if (!small) {
                append(key, node);
                return true;
            }
            const Tensor& t = node->constant.tensor();
            append(key, t.dtype());
            append(key, t.rank());
            for (int64_t d : t.shape()) append(key, d);
            key.append(t.data<char>(), t.nbytes());
            return true;
        }
        default:
            return false;
    }
}

}  // namespace

bool share_common_subexpressions(ir::Graph& graph) {
    std::unordered_map<std::string, ir::Node*> known;
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder&) -> Value {
        if (has_effect(node)) {
            // A write may change what any view or variable holds.
            if (node.op->side_effect == Effect::state) known.clear();
            return {};
        }
        std::string key;
        append(key, node.op);
        append(key, node.index);
        for (const Value& arg : node.args)
            if (!describe(key, arg)) return {};
        auto [at, is_new] = known.try_emplace(std::move(key), &node);
        return is_new ? Value() : Value(at->second);
    });
}

}  // namespace lunaria::graph
