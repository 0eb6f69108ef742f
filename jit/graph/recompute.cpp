// The pass that computes values a second time instead of keeping them. The backward half of a training step needs
// values of the forward half, many of which are quickly recomputed from values that are kept anyway (an activation from
// its operand, a normalised value from its operand). Kept, such a value would live through the time of most memory.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "jit/graph/layout.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

constexpr size_t kLeastPeak = 8u << 20;    // below it everything stays in a cache
constexpr size_t kLeastBytes = 64u << 10;  // of a value
constexpr size_t kLeastGap = 16;           // operators between two uses
constexpr int kMostValues = 256;

// Operators that cost little more than reading the value.
bool is_cheap(const ir::Node& node) {
    constexpr int kMostCost = 8;
    if (!node.op || has_effect(node) || node.type.kind != ir::NodeType::Kind::tensor) return false;
    const Op& op = *node.op;
    return op.is_elementwise || (op.fuses_as == Fusion::row_pass && op.element_cost <= kMostCost);
}

using Nodes = std::unordered_set<const ir::Node*>;

bool reads_any(const ir::Node& node, const Nodes& nodes) {
    bool any = false;
    for (const Value& arg : node.args) ir::for_each_node(arg, [&](const ir::Node* n) { any |= nodes.contains(n); });
    return any;
}

class Recomputer {
  public:
    Recomputer(ir::Graph& graph, Nodes& refused, Nodes& again)
        : graph_(graph), refused_(refused), again_(again), arrangements_(graph), order_(graph.body()) {}

    // Removes one value from the time of most memory; false: none is left.
    bool run() {
        find_lives();
        const size_t peak = find_peak();
        if (peak_bytes_ < kLeastPeak) return false;
        const ir::Node* best = nullptr;
        size_t use = 0;
        for (ir::Node* node : order_) {
            auto found = lives_.find(node);
            if (found == lives_.end() || refused_.contains(node) || !is_cheap(*node)) continue;
            const Life& life = found->second;
            if (life.bytes < std::max(kLeastBytes, best ? lives_.at(best).bytes + 1 : 0)) continue;
            const auto next = std::upper_bound(life.uses.begin(), life.uses.end(), peak);
            if (next == life.uses.end() || life.uses.back() == order_.size()) continue;
            const size_t before = next == life.uses.begin() ? life.made : *(next - 1);
            if (before >= peak || *next - before < kLeastGap || !has_operands_at(*node, *next)) continue;
            best = node;
            use = *next;
        }
        if (!best) return false;
        if (!make_again(*best, use)) refused_.insert(best);
        return true;
    }

  private:
    struct Life {
        size_t made = 0, bytes = 0;
        std::vector<size_t> uses;  // uses of the value or of its views; the end of the body for results
    };

    const ir::Node* root_of(const ir::Node* node) const {
        const Arrangement* a = arrangements_.find(node);
        return a ? a->root : node;
    }
    bool is_step(const ir::Node& node) const {
        return node.kind != ir::NodeKind::item && !arrangements_.is_view(&node);
    }

    void find_lives() {
        for (size_t i = 0; i < order_.size(); ++i) {
            const ir::Node* node = order_[i];
            if (arrangements_.is_view(node)) continue;
            if (is_step(*node))
                for (const Value& arg : node->args) ir::for_each_node(arg, [&](const ir::Node* n) { use(n, i); });
            if (node->type.kind != ir::NodeType::Kind::tensor || !node->type.tensor.shape.known()) continue;
            Life& life = lives_[node];
            life.made = i;
            life.bytes = static_cast<size_t>(node->type.tensor.shape.size()) * size_of(node->type.tensor.dtype);
        }
        ir::for_each_node(graph_.result, [&](const ir::Node* n) { use(n, order_.size()); });
    }
    void use(const ir::Node* node, size_t at) {
        auto found = lives_.find(root_of(node));
        if (found == lives_.end()) return;
        std::vector<size_t>& uses = found->second.uses;
        if (uses.empty() || uses.back() != at) uses.push_back(at);
    }

    size_t find_peak() {
        std::vector<int64_t> change(order_.size() + 2, 0);
        for (const auto& [node, life] : lives_) {
            change[life.made] += static_cast<int64_t>(life.bytes);
            change[(life.uses.empty() ? life.made : life.uses.back()) + 1] -= static_cast<int64_t>(life.bytes);
        }
        int64_t now = 0, most = 0;
        size_t peak = 0;
        for (size_t i = 0; i < order_.size(); ++i) {
            now += change[i];
            if (now <= most) continue;
            most = now;
            peak = i;
        }
        peak_bytes_ = static_cast<size_t>(most);
        return peak;
    }

    // Whether all operands are kept until then in any case.
    bool has_operands_at(const ir::Node& node, size_t at) const {
        bool kept = true;
        for (const Value& arg : node.args)
            ir::for_each_node(arg, [&](const ir::Node* n) {
                const ir::Node* root = root_of(n);
                if (root->kind == ir::NodeKind::parameter || root->kind == ir::NodeKind::constant) return;
                auto found = lives_.find(root);
                kept &= found != lives_.end() && !found->second.uses.empty() && found->second.uses.back() >= at;
            });
        return kept;
    }

    // The new form of an operand; nil if there is none.
    Value replaced(const Value& v, const ir::Node& root, ir::Node& again) {
        if (v.is_list()) {
            std::vector<Value> items;
            for (const Value& item : v.items()) {
                items.push_back(replaced(item, root, again));
                if (items.back().is_nil() && !item.is_nil()) return {};
            }
            return Value::list(std::move(items));
        }
        if (!v.is_node() || root_of(v.node()) != &root) return v;
        ir::Node* node = v.node();
        if (node == &root) return Value(&again);
        if (auto known = views_.find(node); known != views_.end()) return Value(known->second);
        if (node->kind != ir::NodeKind::call || node->type.kind != ir::NodeType::Kind::tensor) return {};
        std::vector<Value> args = node->args;
        args[0] = replaced(args[0], root, again);
        if (args[0].is_nil()) return {};
        ir::Node* view = graph_.add_call(*node->op, std::move(args), node->type);
        view->span = node->span;
        view_order_.push_back(view);
        views_[node] = view;
        return Value(view);
    }

    // Lets the nodes from `at` on use the recomputed value.
    bool make_again(const ir::Node& root, size_t at) {
        ir::Node* again = graph_.add_call(*root.op, root.args, root.type);
        again->span = root.span;
        again->name = root.name;
        std::vector<std::pair<ir::Node*, std::vector<Value>>> changes;
        bool possible = true;
        for (size_t i = at; i < order_.size() && possible; ++i) {
            if (!is_step(*order_[i])) continue;
            std::vector<Value> args;
            bool uses = false;
            for (const Value& arg : order_[i]->args) {
                bool here = false;
                ir::for_each_node(arg, [&](const ir::Node* n) { here |= root_of(n) == &root; });
                uses |= here;
                args.push_back(here ? replaced(arg, root, *again) : arg);
                possible &= !here || !args.back().is_nil();
            }
            if (uses) changes.emplace_back(order_[i], std::move(args));
        }
        if (possible) {
            for (auto& [node, args] : changes) node->args = std::move(args);
            place(root, *again, at);
            again_.insert(again);
        }
        graph_.reorder_body(order_);
        return possible;
    }

    // Whether both are elementwise and read one value, so that they become one kernel: an activation and its
    // derivative.
    bool is_sibling(const ir::Node& root, const ir::Node& node) const {
        if (!root.op->is_elementwise || !node.op || !node.op->is_elementwise || !(node.type == root.type)) return false;
        Nodes read;
        for (const Value& arg : root.args) ir::for_each_node(arg, [&](const ir::Node* n) { read.insert(n); });
        return reads_any(node, read);
    }

    // Places it before its first use, or right before a sibling a little later, in which case the uses move behind
    // that.
    void place(const ir::Node& root, ir::Node& again, size_t at) {
        Nodes waiting{&again};
        waiting.insert(view_order_.begin(), view_order_.end());
        std::vector<ir::Node*> others, users;
        size_t sibling = at;
        for (; sibling < std::min(order_.size(), at + kLeastGap); ++sibling) {
            ir::Node* node = order_[sibling];
            const bool waits = reads_any(*node, waiting);
            if (waits && has_effect(*node)) break;
            if (!waits && is_sibling(root, *node)) {
                place_around(again, at, sibling, others, users);
                return;
            }
            if (waits) waiting.insert(node);
            (waits ? users : others).push_back(node);
        }
        place_around(again, at, SIZE_MAX, {}, {});
    }
    void place_around(ir::Node& again, size_t at, size_t sibling, const std::vector<ir::Node*>& others,
                      const std::vector<ir::Node*>& users) {
        std::vector<ir::Node*> order(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(at));
        order.insert(order.end(), others.begin(), others.end());
        order.push_back(&again);
        size_t rest = at;
        if (sibling != SIZE_MAX) {
            order.push_back(order_[sibling]);
            rest = sibling + 1;
        }
        order.insert(order.end(), view_order_.begin(), view_order_.end());
        order.insert(order.end(), users.begin(), users.end());
        order.insert(order.end(), order_.begin() + static_cast<ptrdiff_t>(rest), order_.end());
        order_ = std::move(order);
    }

    ir::Graph& graph_;
    Nodes &refused_, &again_;
    const Arrangements arrangements_;
    std::vector<ir::Node*> order_;
    std::unordered_map<const ir::Node*, Life> lives_;
    size_t peak_bytes_ = 0;
    std::unordered_map<const ir::Node*, ir::Node*> views_;  // from views of the value to those of the recomputed one
    std::vector<ir::Node*> view_order_;
};

}  // namespace

std::unordered_set<const ir::Node*> recompute_cheap_values(ir::Graph& graph) {
    size_t bytes = 0;
    for (const ir::Node* node : graph.body()) {
        // A variable that is written may have another value later.
        if (node->op && node->op->writes()) return {};
        if (node->type.kind == ir::NodeType::Kind::tensor && node->type.tensor.shape.known())
            bytes += static_cast<size_t>(node->type.tensor.shape.size()) * size_of(node->type.tensor.dtype);
    }
    if (bytes < kLeastPeak) return {};
    Nodes refused, again;
    for (int i = 0; i < kMostValues && Recomputer(graph, refused, again).run(); ++i) {
    }
    // Views of the kept values are unused now.
    if (!again.empty()) remove_dead_code(graph);
    return again;
}

}  // namespace lunaria::graph
