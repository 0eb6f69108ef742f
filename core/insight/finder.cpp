#include "core/insight/finder.h"

#include <algorithm>
#include <queue>

#include "core/base/interrupt.h"

namespace lunaria::insight {

namespace {

constexpr int32_t kLeastNodes = 4;
// Less is what random graphs of many operators have by chance.
constexpr int64_t kLeastGain = 4, kLeastGainOfThree = 16;
constexpr int kRounds = 4, kDeepest = 6;
constexpr int kTries = 64;       // growths from one kind of edge
constexpr uint64_t kWork = 400;  // neighbours to look at, for each node and round

bool is_worth(const Pattern& p) {
    return p.gain() >= (p.size >= kLeastNodes ? kLeastGain : kLeastGainOfThree) && p.size >= 3;
}

}  // namespace

Finder::Finder(const OrderedGraph& graph, int depth)
    : graph_(graph),
      depth_(depth),
      taken_(graph.label.size()),
      growth_(graph, taken_, explained_),
      representative_(graph.label.size(), -1),
      wanted_(graph.label.size()) {}

// Labels are below 2^22 and places that are told apart below 2^19; edges from later places begin no pattern.
uint64_t Finder::key_of(int32_t user, const Edge& input) const {
    return static_cast<uint64_t>(graph_.label[user]) << 42 | static_cast<uint64_t>(graph_.label[input.node]) << 20 |
           static_cast<uint64_t>(input.code);
}

void Finder::collect_edges() {
    edges_.clear();
    for (int32_t v = 0; v < graph_.size(); ++v) {
        if (taken_[v]) continue;
        for (const Edge& e : graph_.inputs(v))
            if (!taken_[e.node] && e.node != v && e.code < 1 << 20 && graph_.users(e.node).size() <= kMostUsers)
                edges_.push_back({key_of(v, e), v, e.node});
    }
    std::sort(edges_.begin(), edges_.end(), [](const KeyedEdge& a, const KeyedEdge& b) {
        if (a.key != b.key) return a.key < b.key;
        return a.user != b.user ? a.user < b.user : a.input < b.input;
    });
}

// The edges of a kind that share no nodes. An input that several users have would favour one of them: it is left out;
// of a chain of equal operators every second edge is taken.
std::vector<Growth::Seed> Finder::seeds_of(const Kind& kind) {
    std::vector<Growth::Seed> seeds;
    for (size_t i = kind.begin; i < kind.end; ++i) ++wanted_[edges_[i].input];
    for (size_t i = kind.begin; i < kind.end; ++i) {
        const auto [key, user, input] = edges_[i];
        if (wanted_[input] != 1 || wanted_[user] < 0) continue;
        seeds.push_back({user, input});
        wanted_[user] = wanted_[input] = -1;
    }
    for (size_t i = kind.begin; i < kind.end; ++i) wanted_[edges_[i].input] = wanted_[edges_[i].user] = 0;
    return seeds;
}

// The seeds that no pattern of so many instances has.
std::vector<Growth::Seed> Finder::unexplained(const std::vector<Growth::Seed>& seeds, int32_t least) const {
    std::vector<Growth::Seed> rest;
    for (const Growth::Seed& seed : seeds) {
        const int32_t pattern = explained_.pattern[seed.user];
        if (pattern < 0 || explained_.pattern[seed.input] != pattern || explained_.count[pattern] < least)
            rest.push_back(seed);
    }
    return rest;
}

void Finder::add_proposal(Pattern pattern) {
    const int32_t index = static_cast<int32_t>(proposals_.size());
    for (size_t i = 0; i < pattern.nodes.size(); ++i) {
        int32_t& known = explained_.pattern[pattern.nodes[i]];
        if (known >= 0 && proposals_[known].gain() >= pattern.gain()) continue;
        known = index;
        explained_.position[pattern.nodes[i]] = static_cast<int32_t>(i % static_cast<size_t>(pattern.size));
    }
    explained_.count.push_back(pattern.count);
    proposals_.push_back(std::move(pattern));
}

// Grows from all edges of the kind, then from those that the patterns found so far do not have.
void Finder::propose(const Kind& kind) {
    std::vector<Growth::Seed> seeds = seeds_of(kind);
    // A pattern with as many instances as there are edges has been found from another kind of edge already.
    seeds = unexplained(seeds, static_cast<int32_t>(seeds.size()));
    for (int i = 0; i < kTries && seeds.size() >= 2; ++i) {
        Pattern pattern = growth_.grow(seeds);
        const bool found = is_worth(pattern);
        std::vector<Growth::Seed> rest;
        if (found) {
            add_proposal(std::move(pattern));
            rest = unexplained(seeds, 2);
        }
        if (!found || rest.size() == seeds.size()) {
            // The seeds that led nowhere are left out.
            rest.clear();
            const auto last = growth_.last();
            for (size_t s = 0, next = 0; s < seeds.size(); ++s) {
                if (next < last.size() && last[next] == static_cast<int32_t>(s))
                    ++next;
                else
                    rest.push_back(seeds[s]);
            }
        }
        if (rest.size() == seeds.size()) return;
        seeds = std::move(rest);
    }
}

// Rare kinds come first: what is rare tells most about where it is.
void Finder::propose() {
    collect_edges();
    proposals_.clear();
    explained_.pattern.assign(graph_.label.size(), -1);
    explained_.position.assign(graph_.label.size(), -1);
    explained_.count.clear();
    std::vector<Kind> kinds;
    for (size_t i = 0; i < edges_.size();) {
        Kind kind{i, i};
        while (i < edges_.size() && edges_[i].key == edges_[kind.begin].key) ++i;
        kind.end = i;
        if (kind.end - kind.begin >= 2) kinds.push_back(kind);
    }
    std::sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) {
        return a.end - a.begin != b.end - b.begin ? a.end - a.begin < b.end - b.begin : a.begin < b.begin;
    });
    const uint64_t most = growth_.work() + kWork * graph_.label.size() + 100000;
    for (const Kind& kind : kinds) {
        if (growth_.work() > most) break;
        propose(kind);
    }
}

// Whether the pattern is a part of one that was chosen and has far more instances: then its own ones are what is left
// of instances that something is missing from.
bool Finder::is_fragment(const Pattern& pattern) {
    const auto nodes = pattern.instance(0);
    for (const Edge& e : graph_.inputs(nodes[0])) {
        if (e.node != nodes[1]) continue;
        const auto known = places_.find(key_of(nodes[0], e));
        if (known == places_.end()) return false;
        growth_.prepare(nodes);
        std::vector<int32_t> instance;
        for (const Place& place : known->second)
            if (chosen_[place.chosen].pattern.count > pattern.count &&
                growth_.match(
                    place.edge, [&](int32_t v) { return representative_[v] == place.chosen; }, instance))
                return true;
        return false;
    }
    return false;
}

// Adds the instances that growth missed.
void Finder::complete(Pattern& pattern) {
    const auto nodes = pattern.instance(0);
    const auto edges = graph_.inputs(nodes[0]);
    const auto edge = std::ranges::find(edges, nodes[1], &Edge::node);
    if (edge == edges.end()) return;
    const auto [begin, end] = std::ranges::equal_range(edges_, key_of(nodes[0], *edge), {}, &KeyedEdge::key);
    growth_.prepare(nodes);
    std::vector<int32_t> instance;
    for (auto e = begin; e != end; ++e) {
        if (taken_[e->user] || taken_[e->input]) continue;
        if (!growth_.match(
                {e->user, e->input}, [&](int32_t v) { return !taken_[v]; }, instance))
            continue;
        for (const int32_t v : instance) taken_[v] = 1;
        pattern.nodes.insert(pattern.nodes.end(), instance.begin(), instance.end());
        ++pattern.count;
    }
}

void Finder::accept(Pattern pattern) {
    for (const int32_t v : pattern.nodes) taken_[v] = 1;
    complete(pattern);
    const int32_t index = static_cast<int32_t>(chosen_.size());
    for (const int32_t v : pattern.instance(0)) representative_[v] = index;
    for (const int32_t v : pattern.instance(0))
        for (const Edge& e : graph_.inputs(v))
            if (representative_[e.node] == index) places_[key_of(v, e)].push_back({index, {v, e.node}});
    chosen_.push_back({std::move(pattern), -1});
}

// Chooses proposals by gain. One that has lost instances to others waits for its turn with those that are left.
bool Finder::choose() {
    struct Offer {
        int64_t gain;
        int32_t index;
        bool operator<(const Offer& other) const {
            return gain != other.gain ? gain < other.gain : index > other.index;
        }
    };
    std::priority_queue<Offer> offers;
    for (size_t i = 0; i < proposals_.size(); ++i) offers.push({proposals_[i].gain(), static_cast<int32_t>(i)});
    bool found = false;
    while (!offers.empty()) {
        poll_interrupt();
        Pattern& pattern = proposals_[offers.top().index];
        const int32_t index = offers.top().index;
        offers.pop();
        const int32_t before = pattern.count;
        auto kept = pattern.nodes.begin();
        pattern.count = 0;
        for (auto at = pattern.nodes.begin(); at != pattern.nodes.end(); at += pattern.size) {
            if (std::any_of(at, at + pattern.size, [&](int32_t v) { return taken_[v]; })) continue;
            kept = std::copy(at, at + pattern.size, kept);
            ++pattern.count;
        }
        pattern.nodes.erase(kept, pattern.nodes.end());
        if (pattern.count < 2 || !is_worth(pattern)) continue;
        if (pattern.count < before) {
            offers.push({pattern.gain(), index});
        } else if (!is_fragment(pattern)) {
            accept(std::move(pattern));
            found = true;
        }
    }
    return found;
}

// What is found in the first instance of a pattern is in all of them.
void Finder::search_inside() {
    const size_t outer = chosen_.size();
    for (size_t i = 0; i < outer; ++i) {
        if (chosen_[i].pattern.size < 2 * kLeastNodes) continue;
        const OrderedGraph part = ordered_part(graph_, chosen_[i].pattern.instance(0));
        const size_t first = chosen_.size();
        for (Chosen& inner : Finder(part, depth_ + 1).run()) {
            const Pattern& whole = chosen_[i].pattern;
            Chosen lifted{{inner.pattern.size, inner.pattern.count * whole.count, {}},
                          inner.parent < 0 ? static_cast<int32_t>(i) : inner.parent + static_cast<int32_t>(first)};
            for (int32_t k = 0; k < whole.count; ++k)
                for (const int32_t v : inner.pattern.nodes)
                    lifted.pattern.nodes.push_back(whole.instance(k)[part.origin[v]]);
            chosen_.push_back(std::move(lifted));
        }
    }
}

std::vector<Chosen> Finder::run() {
    for (int round = 0; round < kRounds; ++round) {
        propose();
        if (!choose()) break;
    }
    if (depth_ < kDeepest) search_inside();
    return std::move(chosen_);
}

}  // namespace lunaria::insight
