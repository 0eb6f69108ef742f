#include "core/insight/ordered_graph.h"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/base/interrupt.h"

namespace lunaria::insight {

uint64_t mixed(uint64_t a, uint64_t b) {
    uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x7f4a7c159e3779b9;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

namespace {

// The edges of all nodes turned round: users from inputs.
void add_users(OrderedGraph& g) {
    g.user_start.assign(g.label.size() + 1, 0);
    for (const Edge& e : g.input_edges) ++g.user_start[e.node + 1];
    std::partial_sum(g.user_start.begin(), g.user_start.end(), g.user_start.begin());
    g.user_edges.resize(g.input_edges.size());
    std::vector<uint32_t> next(g.user_start.begin(), g.user_start.end() - 1);
    for (int32_t v = 0; v < g.size(); ++v)
        for (const Edge& e : g.inputs(v)) g.user_edges[next[e.node]++] = {v, e.code};
}

// Nodes behind all that they depend on, with the length of the longest path to each; those on cycles and behind them
// are missing, their depth is INT_MAX.
std::vector<int32_t> topological(const OrderedGraph& g, std::vector<int32_t>& depth) {
    std::vector<int32_t> missing(g.label.size()), order;
    order.reserve(g.label.size());
    depth.assign(g.label.size(), 0);
    for (int32_t v = 0; v < g.size(); ++v)
        if ((missing[v] = static_cast<int32_t>(g.inputs(v).size())) == 0) order.push_back(v);
    for (size_t i = 0; i < order.size(); ++i)
        for (const Edge& e : g.users(order[i])) {
            depth[e.node] = std::max(depth[e.node], depth[order[i]] + 1);
            if (--missing[e.node] == 0) order.push_back(e.node);
        }
    for (int32_t v = 0; v < g.size(); ++v)
        if (missing[v] > 0) depth[v] = INT_MAX;
    return order;
}

// For each node a hash of all that it depends on, or of all that depends on it, that starts from `seed`. Nodes without
// an order, on cycles or near them, see as far as there are rounds.
template <class Neighbours>
std::vector<uint64_t> swept(const std::vector<uint64_t>& seed, std::span<const int32_t> order,
                            const std::vector<int32_t>& depth, const Neighbours& neighbours) {
    constexpr int kRounds = 4;
    std::vector<uint64_t> hash = seed;
    const auto hash_of = [&](int32_t v) {
        uint64_t sum = 0;
        for (const Edge& e : neighbours(v)) sum += mixed(hash[e.node], static_cast<uint64_t>(e.code) + 1);
        return mixed(seed[v], sum);
    };
    std::vector<int32_t> others;
    for (size_t v = 0; v < depth.size(); ++v)
        if (depth[v] == INT_MAX) others.push_back(static_cast<int32_t>(v));
    std::vector<uint64_t> next(others.size());
    for (int round = 0; round < kRounds && !others.empty(); ++round) {
        for (size_t i = 0; i < others.size(); ++i) next[i] = hash_of(others[i]);
        for (size_t i = 0; i < others.size(); ++i) hash[others[i]] = next[i];
    }
    for (const int32_t v : order) hash[v] = hash_of(v);
    return hash;
}

// Tells nodes apart whose colours are equal, until no two are: nodes get colours that depend on their neighbours' as
// long as that parts any; then, since all nodes of one colour can stand for each other, one of them gets a colour of
// its own, and its neighbours' colours follow. Which one it is does not matter to a result but for names.
class Individuals {
  public:
    // `tied`: nodes by falling preference within each colour, of which there are at least two.
    Individuals(const OrderedGraph& graph, std::vector<uint64_t>& colour, std::span<const int32_t> tied)
        : graph_(graph), colour_(colour), preference_(colour.size(), -1) {
        for (size_t i = 0; i < tied.size(); ++i) {
            preference_[tied[i]] = static_cast<int32_t>(i);
            classes_[colour_[tied[i]]].add(tied[i]);
        }
        part({tied.begin(), tied.end()});
        for (uint64_t count = 0; !classes_.empty();) {
            poll_interrupt();
            const auto first = classes_.begin();
            const int32_t v = first->second.nodes.back();
            first->second.nodes.pop_back();
            if (colour_[v] != first->first) continue;
            leave(first);
            colour_[v] = mixed(mixed(colour_[v], 3), ++count);
            part(tied_neighbours({v}));
        }
    }

  private:
    struct Class {
        std::vector<int32_t> nodes;  // and such that have another colour by now
        size_t size = 0;             // without these

        void add(int32_t v) {
            nodes.push_back(v);
            ++size;
        }
    };
    using Classes = std::map<uint64_t, Class>;  // of at least two nodes each, by colour

    // A node less; what is left alone is told apart.
    void leave(Classes::iterator of) {
        if (--of->second.size < 2) classes_.erase(of);
    }

    std::vector<int32_t> tied_neighbours(const std::vector<int32_t>& nodes) const {
        std::vector<int32_t> found;
        const auto add = [&](const Edge& e) {
            if (preference_[e.node] >= 0 && classes_.contains(colour_[e.node])) found.push_back(e.node);
        };
        for (const int32_t v : nodes) {
            for (const Edge& e : graph_.inputs(v)) add(e);
            for (const Edge& e : graph_.users(v)) add(e);
        }
        std::ranges::sort(found);
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    uint64_t seen_from(int32_t v) const {
        uint64_t sum = 0;
        for (const Edge& e : graph_.inputs(v)) sum += mixed(colour_[e.node], 2 * static_cast<uint64_t>(e.code) + 5);
        for (const Edge& e : graph_.users(v)) sum += mixed(colour_[e.node], 2 * static_cast<uint64_t>(e.code) + 6);
        return mixed(colour_[v], sum);
    }

    // Parts the classes of these nodes by what is seen from them, then those of their neighbours.
    void part(std::vector<int32_t> nodes) {
        struct Seen {
            uint64_t colour, next;
            int32_t preference, node;
            auto operator<=>(const Seen&) const = default;
        };
        while (!nodes.empty()) {
            std::vector<Seen> seen;
            for (const int32_t v : nodes) seen.push_back({colour_[v], seen_from(v), preference_[v], v});
            std::ranges::sort(seen);
            nodes.clear();
            for (auto begin = seen.begin(), end = begin; begin != seen.end(); begin = end) {
                end = std::find_if(begin, seen.end(), [&](const Seen& s) { return s.colour != begin->colour; });
                const auto of = classes_.find(begin->colour);
                if (static_cast<size_t>(end - begin) == of->second.size && begin->next == std::prev(end)->next)
                    continue;
                for (auto at = begin; at != end; ++at) {
                    colour_[at->node] = at->next;
                    classes_[at->next].add(at->node);
                    nodes.push_back(at->node);
                }
                for (auto at = begin; at != end; ++at)
                    if (const auto next = classes_.find(at->next); next != classes_.end() && next->second.size < 2)
                        classes_.erase(next);
                if ((of->second.size -= static_cast<size_t>(end - begin)) < 2) classes_.erase(of);
            }
            nodes = tied_neighbours(nodes);
        }
    }

    const OrderedGraph& graph_;
    std::vector<uint64_t>& colour_;
    std::vector<int32_t> preference_;  // -1: not tied
    Classes classes_;
};

// Puts the nodes in order; `before` decides between nodes that can stand for each other.
template <class Before>
OrderedGraph sorted(const OrderedGraph& raw, const Before& before) {
    std::vector<int32_t> depth;
    const std::vector<int32_t> order = topological(raw, depth);
    const std::vector<int32_t> reversed(order.rbegin(), order.rend());
    std::vector<uint64_t> seed(raw.label.size());
    for (size_t v = 0; v < seed.size(); ++v) seed[v] = mixed(static_cast<uint64_t>(raw.label[v]), 1);
    // The second sweeps carry what the first ones found, so that a node sees its neighbours' other neighbours.
    for (int round = 0; round < 2; ++round) {
        const auto down = swept(seed, order, depth, [&](int32_t v) { return raw.inputs(v); });
        const auto up = swept(seed, reversed, depth, [&](int32_t v) { return raw.users(v); });
        for (size_t v = 0; v < seed.size(); ++v) seed[v] = mixed(down[v], up[v]);
    }
    std::vector<int32_t> rank(raw.label.size()), tied;
    std::iota(rank.begin(), rank.end(), 0);
    const auto by_colour = [&](int32_t a, int32_t b) {
        return depth[a] != depth[b] ? depth[a] < depth[b] : seed[a] < seed[b];
    };
    std::ranges::sort(rank, by_colour);
    for (size_t i = 0, end = 0; i < rank.size(); i = end) {
        while (end < rank.size() && !by_colour(rank[i], rank[end])) ++end;
        if (end - i < 2) continue;
        std::sort(rank.begin() + static_cast<ptrdiff_t>(i), rank.begin() + static_cast<ptrdiff_t>(end),
                  [&](int32_t a, int32_t b) { return before(b, a); });
        tied.insert(tied.end(), rank.begin() + static_cast<ptrdiff_t>(i), rank.begin() + static_cast<ptrdiff_t>(end));
    }
    Individuals(raw, seed, tied);
    std::ranges::sort(rank, by_colour);
    std::vector<int32_t> place(rank.size());
    for (size_t i = 0; i < rank.size(); ++i) place[rank[i]] = static_cast<int32_t>(i);
    OrderedGraph g;
    g.label.reserve(rank.size());
    g.input_start.reserve(rank.size() + 1);
    g.input_start.push_back(0);
    g.input_edges.reserve(raw.input_edges.size());
    for (const int32_t v : rank) {
        g.label.push_back(raw.label[v]);
        for (const Edge& e : raw.inputs(v)) g.input_edges.push_back({place[e.node], e.code});
        g.input_start.push_back(static_cast<uint32_t>(g.input_edges.size()));
    }
    g.origin = std::move(rank);
    add_users(g);
    return g;
}

// A label is a text; of lengths and contents, so that no two lists of parts give one text.
std::string label_text(const OperatorNode& node, Equality equality) {
    std::string text = str(node.type, '\0', node.inputs.size());
    for (const auto& input : node.inputs) text += input.is_control ? 'c' : '.';
    if (equality == Equality::operators) return text;
    const auto add = [&](const std::string& part) { text += str(':', part.size(), ':', part); };
    add(node.result);
    auto attributes = node.attributes;
    std::sort(attributes.begin(), attributes.end());
    for (const auto& [name, value] : attributes) {
        add(name);
        add(value);
    }
    return text;
}

std::vector<int32_t> labels_of(const OperatorGraph& graph, Equality equality) {
    std::unordered_map<std::string, int32_t> known;
    std::vector<int32_t> labels;
    std::vector<const std::string*> texts;
    labels.reserve(graph.nodes.size());
    for (const OperatorNode& node : graph.nodes) {
        const auto [found, is_new] = known.try_emplace(label_text(node, equality), static_cast<int32_t>(texts.size()));
        if (is_new) texts.push_back(&found->first);
        labels.push_back(found->second);
    }
    std::vector<int32_t> by_text(texts.size()), number(texts.size());
    std::iota(by_text.begin(), by_text.end(), 0);
    std::sort(by_text.begin(), by_text.end(), [&](int32_t a, int32_t b) { return *texts[a] < *texts[b]; });
    for (size_t i = 0; i < by_text.size(); ++i) number[by_text[i]] = static_cast<int32_t>(i);
    for (int32_t& label : labels) label = number[label];
    return labels;
}

}  // namespace

OrderedGraph ordered_graph(const OperatorGraph& graph, Equality equality) {
    OrderedGraph raw;
    raw.label = labels_of(graph, equality);
    raw.input_start.push_back(0);
    for (const OperatorNode& node : graph.nodes) {
        for (size_t place = 0; place < node.inputs.size(); ++place)
            if (const auto& input = node.inputs[place]; input.node >= 0)
                raw.input_edges.push_back({input.node, static_cast<int32_t>(2 * place + input.is_control)});
        raw.input_start.push_back(static_cast<uint32_t>(raw.input_edges.size()));
    }
    add_users(raw);
    // Numbers as names are ordered as numbers.
    return sorted(raw, [&](int32_t a, int32_t b) {
        const std::string &x = graph.nodes[a].name, &y = graph.nodes[b].name;
        return x.size() != y.size() ? x.size() < y.size() : x < y;
    });
}

OrderedGraph ordered_part(const OrderedGraph& graph, std::span<const int32_t> nodes) {
    std::unordered_map<int32_t, int32_t> place;
    for (const int32_t v : nodes) place.emplace(v, static_cast<int32_t>(place.size()));
    OrderedGraph raw;
    raw.input_start.push_back(0);
    for (const int32_t v : nodes) {
        raw.label.push_back(graph.label[v]);
        for (const Edge& e : graph.inputs(v))
            if (const auto found = place.find(e.node); found != place.end())
                raw.input_edges.push_back({found->second, e.code});
        raw.input_start.push_back(static_cast<uint32_t>(raw.input_edges.size()));
    }
    add_users(raw);
    return sorted(raw, [](int32_t a, int32_t b) { return a < b; });
}

}  // namespace lunaria::insight
