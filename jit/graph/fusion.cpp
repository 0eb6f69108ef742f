#include "jit/graph/fusion.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "jit/graph/loop_builder.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

// A kernel of more operators gains nothing and takes long to generate.
constexpr size_t kMostNodes = 96;

struct Unit {
    Piece piece;
    std::unordered_set<size_t> needs;  // units that run before; may name units that were merged into others
    size_t joined_into = SIZE_MAX;
    int epoch = 0;  // the number of writes before it
    bool is_open = false;
};

void start(Piece& piece, const ir::Node& node, Part part) {
    if (part == Part::none) return;
    if (part == Part::element || part == Part::product) {
        piece.domain = node.type.tensor.shape;
    } else {
        piece.domain = static_type(node.args[0])->shape;
        if (part != Part::sum) piece.rows = row_axes(node);
        piece.has_sums = part == Part::sum;
    }
    piece.generated = part == Part::row || part == Part::product;
}

class Cutter {
  public:
    Cutter(const ir::Graph& graph, const Arrangements& arrangements, const Nodes& late, const Nodes& alone)
        : graph_(graph), arrangements_(arrangements), late_(late), alone_(alone) {}

    std::vector<Piece> run(bool generate) {
        int epoch = 0;
        size_t last_effect = SIZE_MAX;
        for (const ir::Node* node : graph_.body()) {
            if (arrangements_.is_view(node) || node->kind == ir::NodeKind::item) continue;
            const bool effect = has_effect(*node);
            if (effect && node->op->writes()) ++epoch;
            const bool may_join = generate && !alone_.contains(node);
            Part part = may_join ? part_of(*node, arrangements_) : Part::none;
            std::unordered_set<size_t> needs = producers(*node);
            const bool joins = part != Part::none && !late_.contains(node);
            size_t home = joins ? find_home(*node, part, needs, epoch) : SIZE_MAX;
            if (joins && home == SIZE_MAX && part == Part::element) home = find_sibling(*node, needs, epoch);
            if (home == SIZE_MAX) {
                home = units_.size();
                Unit unit;
                unit.epoch = epoch;
                start(unit.piece, *node, part);
                unit.is_open = part != Part::none;
                units_.push_back(std::move(unit));
            }
            Unit& unit = units_[home];
            unit.piece.nodes.push_back(node);
            for (size_t n : needs)
                if (find(n) != home) unit.needs.insert(find(n));
            if (effect) {
                if (last_effect != SIZE_MAX && find(last_effect) != home) unit.needs.insert(find(last_effect));
                last_effect = home;
                if (node->op->writes()) ++epoch;
            }
            unit_of_[node] = home;
        }
        return ordered();
    }

  private:
    size_t find(size_t unit) const {
        while (units_[unit].joined_into != SIZE_MAX) unit = units_[unit].joined_into;
        return unit;
    }

    // The units that produce the operands.
    std::unordered_set<size_t> producers(const ir::Node& node) const {
        std::unordered_set<size_t> units;
        auto add = [&](const ir::Node* n) {
            const Arrangement* a = arrangements_.find(n);
            if (a) n = a->root;
            while (n->kind == ir::NodeKind::item) n = n->args[0].node();
            if (auto found = unit_of_.find(n); found != unit_of_.end()) units.insert(find(found->second));
        };
        for (const Value& arg : node.args) ir::for_each_node(arg, add);
        return units;
    }

    // Whether any of the units, except `except`, depends on `other`.
    bool depends(std::span<const size_t> units, size_t other, size_t except = SIZE_MAX) {
        seen_.resize(units_.size(), 0);
        ++question_;
        open_.clear();
        auto visit = [&](size_t unit) {
            if (seen_[unit] == question_) return;
            seen_[unit] = question_;
            open_.push_back(unit);
        };
        for (size_t unit : units)
            if (unit != other && unit != except) visit(unit);
        while (!open_.empty()) {
            const size_t at = open_.back();
            open_.pop_back();
            if (at == other) return true;
            for (size_t n : units_[at].needs) visit(find(n));
        }
        return false;
    }

    // The piece with the node, in a common domain; none if they do not fit.
    std::optional<Piece> joint(const Piece& piece, const ir::Node& node, Part part) const {
        if (piece.nodes.size() >= kMostNodes) return {};
        Piece wanted;
        start(wanted, node, part);
        Piece result = piece;
        if (wanted.domain == piece.domain) {
            if (wanted.rows >= 0 && piece.rows >= 0 && wanted.rows != piece.rows) return {};
            result.rows = std::max(wanted.rows, piece.rows);
        } else if (!(part == Part::element && piece.rows >= 0 && is_per_row(wanted.domain, piece.domain, piece.rows))) {
            return {};
        }
        result.has_sums |= wanted.has_sums;
        if (result.has_sums && result.rows >= 0) return {};
        result.nodes.push_back(&node);
        result.generated = true;
        return result;
    }

    // A unit that the node may join; other units that feed the node are merged with it if possible.
    size_t find_home(const ir::Node& node, Part part, std::unordered_set<size_t>& needs, int epoch) {
        std::vector<size_t> order(needs.begin(), needs.end());
        std::sort(order.rbegin(), order.rend());
        size_t home = SIZE_MAX;
        for (size_t candidate : order) {
            Unit& unit = units_[candidate];
            if (!unit.is_open || unit.epoch != epoch) continue;
            if (home == SIZE_MAX) {
                auto joined = joint(unit.piece, node, part);
                if (!joined || !refers_well(*joined, node)) continue;
                // The node's other operands must not depend on the unit.
                if (depends(order, candidate)) continue;
                joined->nodes.pop_back();
                unit.piece = std::move(*joined);
                home = candidate;
            } else {
                if (!depends(order, candidate, home)) join(home, candidate, node);
            }
        }
        return home;
    }

    // The previous unit, if it is elementwise too and shares an operand with the node.
    size_t find_sibling(const ir::Node& node, const std::unordered_set<size_t>& needs, int epoch) {
        if (units_.empty()) return SIZE_MAX;
        const size_t last = units_.size() - 1;
        Unit& unit = units_[last];
        if (!unit.is_open || unit.epoch != epoch || unit.joined_into != SIZE_MAX || needs.contains(last))
            return SIZE_MAX;
        std::unordered_set<const ir::Node*> read;
        const auto large = [&](const ir::Node* n) {
            const Arrangement* a = arrangements_.find(n);
            return a && a->type.shape == node.type.tensor.shape;
        };
        for (const ir::Node* other : unit.piece.nodes)
            for (const Value& arg : other->args)
                ir::for_each_node(arg, [&](const ir::Node* n) {
                    if (large(n)) read.insert(n);
                });
        bool shared = false;
        for (const Value& arg : node.args)
            ir::for_each_node(arg, [&](const ir::Node* n) { shared |= read.contains(n); });
        if (!shared) return SIZE_MAX;
        auto joined = joint(unit.piece, node, Part::element);
        const std::vector<size_t> order(needs.begin(), needs.end());
        if (!joined || !(unit.piece.domain == node.type.tensor.shape) || !refers_well(*joined, node) ||
            depends(order, last))
            return SIZE_MAX;
        joined->nodes.pop_back();
        unit.piece = std::move(*joined);
        return last;
    }

    void join(size_t home, size_t other, const ir::Node& node) {
        Piece a = units_[home].piece;
        const Piece& b = units_[other].piece;
        if (!(a.domain == b.domain) || (a.rows >= 0 && b.rows >= 0 && a.rows != b.rows)) return;
        if (a.nodes.size() + b.nodes.size() >= kMostNodes) return;
        if (depends(std::span(&home, 1), other) || depends(std::span(&other, 1), home)) return;
        a.rows = std::max(a.rows, b.rows);
        a.has_sums |= b.has_sums;
        if (a.has_sums && a.rows >= 0) return;
        a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
        a.nodes.push_back(&node);
        if (!refers_well(a, node)) return;
        a.nodes.pop_back();
        a.generated = true;
        units_[home].piece = std::move(a);
        for (size_t n : units_[other].needs) units_[home].needs.insert(find(n));
        units_[other].joined_into = home;
        units_[other].piece.nodes.clear();
    }

    // Whether the values of the piece that the node reads are available where the node is computed.
    bool refers_well(const Piece& piece, const ir::Node& node) const { return can_compute(piece, node, arrangements_); }

    // Ordered operators that give nothing to others.
    Nodes told_to_outside() const {
        Nodes telling;
        for (const ir::Node* node : graph_.body())
            if (node->op && node->op->is_ordered() && !node->op->writes()) telling.insert(node);
        if (telling.empty()) return telling;
        const auto forget = [&](const ir::Node* n) { telling.erase(n); };
        for (const ir::Node* node : graph_.body())
            for (const Value& arg : node->args) ir::for_each_node(arg, forget);
        ir::for_each_node(graph_.result, forget);
        return telling;
    }

    std::vector<Piece> ordered() {
        // In the order of the first node, except where a piece has to wait; epochs keep their order by themselves. What
        // is told to the outside is told as soon as it is known, so that messages leave while the rest is computed.
        const Nodes telling = told_to_outside();
        std::vector<size_t> left(units_.size(), 0);
        std::vector<std::vector<size_t>> waiting(units_.size());
        std::unordered_map<const ir::Node*, size_t> position;
        for (size_t i = 0; i < graph_.body().size(); ++i) position[graph_.body()[i]] = i;
        using Entry = std::tuple<int, size_t, size_t>;  // epoch, first node, unit
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
        auto entry = [&](size_t u) {
            const ir::Node* first = units_[u].piece.nodes[0];
            return Entry{units_[u].epoch, telling.contains(first) ? 0 : position[first] + 1, u};
        };
        for (size_t u = 0; u < units_.size(); ++u) {
            if (units_[u].joined_into != SIZE_MAX) continue;
            auto& nodes = units_[u].piece.nodes;
            std::sort(nodes.begin(), nodes.end(),
                      [&](const ir::Node* a, const ir::Node* b) { return position[a] < position[b]; });
            std::unordered_set<size_t> needs;
            for (size_t n : units_[u].needs)
                if (find(n) != u) needs.insert(find(n));
            left[u] = needs.size();
            for (size_t n : needs) waiting[n].push_back(u);
            if (needs.empty()) ready.push(entry(u));
        }
        std::vector<Piece> pieces;
        while (!ready.empty()) {
            size_t u = std::get<2>(ready.top());
            ready.pop();
            for (size_t w : waiting[u])
                if (--left[w] == 0) ready.push(entry(w));
            pieces.push_back(std::move(units_[u].piece));
        }
        return pieces;
    }

    const ir::Graph& graph_;
    const Arrangements& arrangements_;
    const Nodes& late_;
    const Nodes& alone_;
    std::vector<Unit> units_;
    std::unordered_map<const ir::Node*, size_t> unit_of_;
    // For depends(): the number of the last query that visited each unit.
    std::vector<uint32_t> seen_;
    uint32_t question_ = 0;
    std::vector<size_t> open_;
};

}  // namespace

Piece piece_of(const ir::Node& node, const Arrangements& arrangements) {
    Piece piece;
    start(piece, node, part_of(node, arrangements));
    piece.nodes.push_back(&node);
    piece.generated = true;
    return piece;
}

std::vector<Piece> cut(const ir::Graph& graph, const Arrangements& arrangements, const Nodes& late, const Nodes& alone,
                       bool generate) {
    return Cutter(graph, arrangements, late, alone).run(generate);
}

}  // namespace lunaria::graph
