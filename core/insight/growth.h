// Growth of a pattern: many occurrences of one edge are extended together, a node at a time, as long as the same node
// (by label and by its edges with what each occurrence already has) follows in all of them. Where they part, the
// largest party goes on; the best of the stages on this way is the pattern.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/insight/ordered_graph.h"

namespace lunaria::insight {

// Equal parts of a graph: `count` instances of `size` nodes each, one behind the other, in corresponding order. Each
// node of an instance but the first has an edge with one before it; instances share no nodes.
struct Pattern {
    int32_t size = 0, count = 0;
    std::vector<int32_t> nodes;

    std::span<const int32_t> instance(int32_t i) const {
        return {nodes.data() + static_cast<size_t>(i) * size, static_cast<size_t>(size)};
    }
    // By how many nodes a picture shrinks that shows one instance in full, and a box for each.
    int64_t gain() const { return int64_t{count - 1} * (size - 1) - 1; }
};

// For each node, the pattern that it was found in with the largest gain, and its position there; -1: none.
struct Explained {
    std::vector<int32_t> pattern, position;
    std::vector<int32_t> count;  // of the patterns' instances
};

// Nodes with more users than this are not left by their users: nothing tells which of them belongs to an instance.
constexpr size_t kMostUsers = 64;

class Growth {
  public:
    // `taken`: nodes that no pattern may have.
    Growth(const OrderedGraph& graph, const std::vector<uint8_t>& taken, const Explained& explained);

    struct Seed {
        int32_t user, input;  // the two ends of an edge
    };
    // The seeds' edges have the same labels and the same code, and share no nodes. An empty pattern: there is nothing
    // in common beyond one node.
    Pattern grow(std::span<const Seed> seeds);
    // The seeds of the instances that were left at the end of the last growth.
    std::span<const int32_t> last() const { return alive_ids_; }
    // How many neighbours were looked at, in all growths.
    uint64_t work() const { return work_; }

    // Takes an instance of a pattern as what match() looks for.
    void prepare(std::span<const int32_t> instance);
    // Another instance of it that begins with this edge, into `instance`; `may_use(node)`: whether a node is free.
    template <class MayUse>
    bool match(Seed seed, const MayUse& may_use, std::vector<int32_t>& instance);

  private:
    struct Candidate {
        int32_t instance, node;
    };
    // Nodes with one label that may come next, behind the same edge of different instances.
    struct Extension {
        size_t begin = 0, end = 0;  // in pool_
        bool to_users = false;
    };
    struct Waiting {
        int32_t support, extension;
        bool operator<(const Waiting& other) const {
            return support != other.support ? support < other.support : extension > other.extension;
        }
    };
    using Column = std::vector<Candidate>;  // a position's nodes, by instance: of those that were left then
    struct Found {
        uint64_t signature;
        int32_t instance, node;
    };
    struct Neighbour {
        uint64_t key;
        int32_t instance, node;
    };
    // How a position is reached from one before it.
    struct Step {
        int32_t from, code;
        bool to_users;
        int32_t label;
        uint64_t signature;
    };

    bool is_free(int32_t v) const { return !taken_[v] && (stamp_[v] != epoch_ || !is_alive_[instance_[v]]); }
    bool is_in(int32_t v, int32_t instance) const { return stamp_[v] == epoch_ && instance_[v] == instance; }
    void start(size_t seeds);
    uint64_t signature(int32_t instance, int32_t v, std::span<const int32_t> nodes);
    uint64_t signature_by_nodes(int32_t v, std::span<const int32_t> nodes) const;
    int32_t evaluate(const Extension& extension);
    void leave_out_contested();
    int32_t largest_party();
    void choose_among_several();
    void take();
    void unblock();
    void gather(int32_t position);
    bool is_known() const;
    Pattern best_stage() const;

    const OrderedGraph& graph_;
    const std::vector<uint8_t>& taken_;
    const Explained& explained_;
    uint64_t work_ = 0;
    uint32_t epoch_ = 0;
    std::vector<uint32_t> stamp_, wanted_stamp_;
    std::vector<int32_t> instance_, position_, wanted_;
    uint32_t wanted_epoch_ = 0;
    std::vector<uint8_t> is_alive_;
    std::vector<int32_t> alive_ids_;
    std::vector<Candidate> pool_;
    std::vector<Extension> extensions_;
    std::vector<Waiting> heap_;
    std::vector<int32_t> blocked_;  // extensions whose nodes belong to other instances
    bool is_blocked_ = false;       // whether the last one evaluated is such
    std::vector<Column> columns_;
    std::span<const Seed> seeds_;
    std::vector<size_t> stages_;  // how many columns there were each time that instances were left behind
    std::vector<Found> found_;
    std::vector<Neighbour> neighbours_;
    std::vector<Step> steps_;
    std::vector<size_t> next_;  // the edge that is tried next at each step
};

template <class MayUse>
bool Growth::match(Seed seed, const MayUse& may_use, std::vector<int32_t>& instance) {
    start(1);
    instance.clear();
    const auto add = [&](int32_t v) {
        stamp_[v] = epoch_;
        instance_[v] = 0;
        position_[v] = static_cast<int32_t>(instance.size());
        instance.push_back(v);
    };
    const auto fits = [&](int32_t v, const Step& step) {
        ++work_;
        return graph_.label[v] == step.label && stamp_[v] != epoch_ && may_use(v) &&
               signature(0, v, instance) == step.signature;
    };
    if (graph_.label[seed.user] != steps_[0].label || !may_use(seed.user)) return false;
    add(seed.user);
    if (!fits(seed.input, steps_[1])) return false;
    add(seed.input);
    // Equal neighbours of a node may stand for one another until what follows tells them apart: then a choice is made
    // anew.
    constexpr int kMostTurns = 100;
    int turns = 0;
    next_.assign(steps_.size() + 1, 0);
    for (size_t p = 2; p < steps_.size();) {
        const Step& step = steps_[p];
        const int32_t from = instance[step.from];
        const auto edges = step.to_users ? graph_.users(from) : graph_.inputs(from);
        if (step.to_users && edges.size() > kMostUsers) return false;
        bool is_found = false;
        while (!is_found && next_[p] < edges.size()) {
            const Edge& e = edges[next_[p]++];
            is_found = e.code == step.code && fits(e.node, step);
            if (is_found) add(e.node);
        }
        if (is_found) {
            next_[++p] = 0;
            continue;
        }
        if (p == 2 || ++turns > kMostTurns) return false;
        stamp_[instance.back()] = 0;
        instance.pop_back();
        --p;
    }
    return true;
}

}  // namespace lunaria::insight
