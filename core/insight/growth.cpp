#include "core/insight/growth.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/base/interrupt.h"

namespace lunaria::insight {

Growth::Growth(const OrderedGraph& graph, const std::vector<uint8_t>& taken, const Explained& explained)
    : graph_(graph),
      taken_(taken),
      explained_(explained),
      stamp_(graph.label.size()),
      wanted_stamp_(graph.label.size()),
      instance_(graph.label.size()),
      position_(graph.label.size()),
      wanted_(graph.label.size()) {}

void Growth::start(size_t seeds) {
    ++epoch_;
    is_alive_.assign(seeds, 1);
    alive_ids_.resize(seeds);
    std::iota(alive_ids_.begin(), alive_ids_.end(), 0);
}

// What tells nodes apart that could be the next of an instance: the edges with the nodes that it has.
uint64_t Growth::signature(int32_t instance, int32_t v, std::span<const int32_t> nodes) {
    if (graph_.users(v).size() > kMostUsers) return signature_by_nodes(v, nodes);
    uint64_t sum = 0;
    for (const Edge& e : graph_.inputs(v))
        if (is_in(e.node, instance)) sum += mixed(static_cast<uint64_t>(position_[e.node]) << 32 | e.code, 1);
    for (const Edge& e : graph_.users(v))
        if (is_in(e.node, instance)) sum += mixed(static_cast<uint64_t>(position_[e.node]) << 32 | e.code, 2);
    work_ += graph_.inputs(v).size() + graph_.users(v).size();
    return sum;
}

// The same for a node with more users than the instance has nodes.
uint64_t Growth::signature_by_nodes(int32_t v, std::span<const int32_t> nodes) const {
    uint64_t sum = 0;
    for (size_t p = 0; p < nodes.size(); ++p) {
        for (const Edge& e : graph_.inputs(v))
            if (e.node == nodes[p]) sum += mixed(p << 32 | e.code, 1);
        for (const Edge& e : graph_.inputs(nodes[p]))
            if (e.node == v) sum += mixed(p << 32 | e.code, 2);
    }
    return sum;
}

// Nodes that several instances want for the same position belong to none of them.
void Growth::leave_out_contested() {
    ++wanted_epoch_;
    for (const Found& f : found_) {
        if (wanted_stamp_[f.node] != wanted_epoch_) {
            wanted_stamp_[f.node] = wanted_epoch_;
            wanted_[f.node] = f.instance;
        } else if (wanted_[f.node] != f.instance) {
            wanted_[f.node] = -1;
        }
    }
    std::erase_if(found_, [&](const Found& f) { return wanted_[f.node] < 0; });
}

// Leaves the candidates with the signature that most instances have.
int32_t Growth::largest_party() {
    std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) {
        if (a.signature != b.signature) return a.signature < b.signature;
        return a.instance != b.instance ? a.instance < b.instance : a.node < b.node;
    });
    int32_t most = 0;
    size_t from = 0, to = 0;
    for (size_t i = 0; i < found_.size();) {
        const size_t begin = i;
        int32_t instances = 0;
        for (; i < found_.size() && found_[i].signature == found_[begin].signature; ++i)
            instances += i == begin || found_[i].instance != found_[i - 1].instance;
        if (instances > most) most = instances, from = begin, to = i;
    }
    found_.erase(found_.begin() + static_cast<ptrdiff_t>(to), found_.end());
    found_.erase(found_.begin(), found_.begin() + static_cast<ptrdiff_t>(from));
    return most;
}

// Where an instance has several candidates, the one whose neighbours look most like those of the others' candidates.
void Growth::choose_among_several() {
    std::unordered_map<uint64_t, int> usual;
    const auto each_feature = [&](int32_t v, const auto& f) {
        for (const Edge& e : graph_.inputs(v)) f(static_cast<uint64_t>(e.code) << 32 | graph_.label[e.node]);
        if (graph_.users(v).size() > kMostUsers) return;
        for (const Edge& e : graph_.users(v))
            f(uint64_t{1} << 63 | static_cast<uint64_t>(e.code) << 32 | graph_.label[e.node]);
    };
    for (size_t i = 0; i < found_.size(); ++i) {
        const bool several = (i > 0 && found_[i - 1].instance == found_[i].instance) ||
                             (i + 1 < found_.size() && found_[i + 1].instance == found_[i].instance);
        if (!several) each_feature(found_[i].node, [&](uint64_t feature) { ++usual[feature]; });
    }
    size_t kept = 0;
    for (size_t i = 0; i < found_.size();) {
        Found best = found_[i];
        int64_t most = -1;
        const int32_t instance = best.instance;
        for (; i < found_.size() && found_[i].instance == instance; ++i) {
            int64_t score = 0;
            each_feature(found_[i].node, [&](uint64_t feature) {
                if (const auto known = usual.find(feature); known != usual.end()) score += known->second;
            });
            if (score > most) most = score, best = found_[i];
        }
        found_[kept++] = best;
    }
    found_.resize(kept);
}

// Leaves in found_ one candidate for each instance that can go on this way; how many these are.
int32_t Growth::evaluate(const Extension& extension) {
    found_.clear();
    is_blocked_ = false;
    std::vector<int32_t> nodes;
    for (size_t i = extension.begin; i < extension.end; ++i) {
        const auto [instance, node] = pool_[i];
        if (!is_alive_[instance]) continue;
        if (!is_free(node)) {
            is_blocked_ = is_blocked_ || !is_in(node, instance);
            continue;
        }
        nodes.clear();
        if (graph_.users(node).size() > kMostUsers)
            for (const Column& column : columns_)
                nodes.push_back(std::ranges::lower_bound(column, instance, {}, &Candidate::instance)->node);
        found_.push_back({signature(instance, node, nodes), instance, node});
    }
    if (!extension.to_users) leave_out_contested();
    const int32_t support = largest_party();
    if (support < static_cast<int32_t>(found_.size())) choose_among_several();
    return support;
}

// The candidates of found_ become the next position; instances without one are out.
void Growth::take() {
    if (found_.size() < alive_ids_.size()) {
        for (const int32_t i : alive_ids_) is_alive_[i] = 0;
        alive_ids_.clear();
        for (const Found& f : found_) {
            is_alive_[f.instance] = 1;
            alive_ids_.push_back(f.instance);
        }
    }
    Column column;
    column.reserve(found_.size());
    for (const Found& f : found_) {
        column.push_back({f.instance, f.node});
        stamp_[f.node] = epoch_;
        instance_[f.node] = f.instance;
        position_[f.node] = static_cast<int32_t>(columns_.size());
    }
    columns_.push_back(std::move(column));
}

// Instances that are left behind give their nodes back: what they blocked is tried again.
void Growth::unblock() {
    for (const int32_t extension : blocked_) {
        heap_.push_back({static_cast<int32_t>(alive_ids_.size()), extension});
        std::push_heap(heap_.begin(), heap_.end());
    }
    blocked_.clear();
}

// The extensions from a position: its neighbours by direction, code and label.
void Growth::gather(int32_t position) {
    neighbours_.clear();
    for (const auto [instance, v] : columns_[position]) {
        if (!is_alive_[instance]) continue;
        const auto add = [&](const Edge& e, uint64_t direction) {
            if (!taken_[e.node] && !is_in(e.node, instance) && e.code < 1 << 20)
                neighbours_.push_back({direction << 63 | static_cast<uint64_t>(e.code) << 32 |
                                           static_cast<uint32_t>(graph_.label[e.node]),
                                       instance, e.node});
        };
        for (const Edge& e : graph_.inputs(v)) add(e, 0);
        work_ += graph_.inputs(v).size();
        if (graph_.users(v).size() > kMostUsers) continue;
        for (const Edge& e : graph_.users(v)) add(e, 1);
        work_ += graph_.users(v).size();
    }
    std::sort(neighbours_.begin(), neighbours_.end(), [](const Neighbour& a, const Neighbour& b) {
        if (a.key != b.key) return a.key < b.key;
        return a.instance != b.instance ? a.instance < b.instance : a.node < b.node;
    });
    for (size_t i = 0; i < neighbours_.size();) {
        const size_t begin = i;
        int32_t support = 0;
        for (; i < neighbours_.size() && neighbours_[i].key == neighbours_[begin].key; ++i)
            support += i == begin || neighbours_[i].instance != neighbours_[i - 1].instance;
        if (support < 2) continue;
        const Extension extension{pool_.size(), pool_.size() + (i - begin), neighbours_[begin].key >> 63 == 1};
        for (size_t j = begin; j < i; ++j) pool_.push_back({neighbours_[j].instance, neighbours_[j].node});
        heap_.push_back({support, static_cast<int32_t>(extensions_.size())});
        std::push_heap(heap_.begin(), heap_.end());
        extensions_.push_back(extension);
    }
}

// Whether the instances that are left are instances of a pattern that was found before: they would become it again.
bool Growth::is_known() const {
    int32_t pattern = -1, position = -1;
    for (const int32_t id : alive_ids_) {
        const int32_t v = seeds_[id].user;
        if (explained_.pattern[v] < 0) return false;
        if (pattern < 0) pattern = explained_.pattern[v], position = explained_.position[v];
        if (explained_.pattern[v] != pattern || explained_.position[v] != position) return false;
    }
    return explained_.count[pattern] >= static_cast<int32_t>(alive_ids_.size());
}

// The stage with the largest gain, or a later one with slightly fewer instances that are slightly larger: those that
// stay behind then lack a part, and are better told apart from whole ones.
Pattern Growth::best_stage() const {
    constexpr double kGain = 0.75, kCount = 0.7, kSize = 0.75;
    const auto count = [&](size_t size) { return static_cast<double>(columns_[size - 1].size()); };
    const auto gain = [&](size_t size) { return (count(size) - 1) * static_cast<double>(size - 1) - 1; };
    size_t most = stages_.front();
    for (const size_t size : stages_)
        if (gain(size) > gain(most)) most = size;
    if (gain(most) <= 0) return {};
    size_t best = most;
    for (const size_t size : stages_)
        if (size > most && gain(size) >= kGain * gain(most) && count(size) >= kCount * count(most) &&
            static_cast<double>(most) >= kSize * static_cast<double>(size))
            best = size;
    const Column& alive = columns_[best - 1];
    Pattern pattern{static_cast<int32_t>(best), static_cast<int32_t>(alive.size()), {}};
    pattern.nodes.resize(best * alive.size());
    for (size_t p = 0; p < best; ++p) {
        auto at = columns_[p].begin();
        for (size_t i = 0; i < alive.size(); ++i) {
            while (at->instance != alive[i].instance) ++at;
            pattern.nodes[i * best + p] = at->node;
        }
    }
    return pattern;
}

Pattern Growth::grow(std::span<const Seed> seeds) {
    start(seeds.size());
    pool_.clear(), extensions_.clear(), heap_.clear(), blocked_.clear(), columns_.clear(), stages_.clear();
    seeds_ = seeds;
    found_.clear();
    for (size_t i = 0; i < seeds.size(); ++i) {
        found_.push_back({0, static_cast<int32_t>(i), seeds[i].user});
        pool_.push_back({static_cast<int32_t>(i), seeds[i].input});
    }
    take();
    if (evaluate({0, pool_.size(), false}) < 2) return {};
    take();
    gather(0);
    gather(1);
    while (!heap_.empty()) {
        poll_interrupt();
        const Waiting waiting = heap_.front();
        std::pop_heap(heap_.begin(), heap_.end());
        heap_.pop_back();
        const int32_t support = evaluate(extensions_[waiting.extension]);
        if (support < 2) {
            if (is_blocked_) blocked_.push_back(waiting.extension);
            continue;
        }
        if (const Waiting now{support, waiting.extension}; !heap_.empty() && now < heap_.front()) {
            heap_.push_back(now);
            std::push_heap(heap_.begin(), heap_.end());
            continue;
        }
        const auto before = static_cast<int32_t>(alive_ids_.size());
        if (support < before) stages_.push_back(columns_.size());
        take();
        if (support < before && is_known()) break;
        // Not for each that drops out: trying again costs as much as all that is blocked.
        if (4 * support <= 3 * before) unblock();
        gather(static_cast<int32_t>(columns_.size()) - 1);
    }
    stages_.push_back(columns_.size());
    return best_stage();
}

void Growth::prepare(std::span<const int32_t> nodes) {
    start(1);
    steps_.clear();
    for (size_t p = 0; p < nodes.size(); ++p) {
        const int32_t v = nodes[p];
        Step step{-1, 0, false, graph_.label[v], signature(0, v, nodes.first(p))};
        for (const Edge& e : graph_.inputs(v))
            if (step.from < 0 && is_in(e.node, 0))
                step.from = position_[e.node], step.code = e.code, step.to_users = true;
        // Rather as an input of a user that is there: a node has one input at a place, but any number of users.
        const auto users = graph_.users(v);
        const auto user = std::ranges::find_if(users, [&](const Edge& e) { return is_in(e.node, 0); });
        if (user != users.end()) step.from = position_[user->node], step.code = user->code, step.to_users = false;
        steps_.push_back(step);
        stamp_[v] = epoch_;
        instance_[v] = 0;
        position_[v] = static_cast<int32_t>(p);
    }
}

}  // namespace lunaria::insight
