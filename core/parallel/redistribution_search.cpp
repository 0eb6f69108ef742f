// The shortest path of collective steps. A state is a layout; a step leads to each layout that one collective gives.
// All layouts are reachable from complete ones, so that Dijkstra's algorithm finds the cheapest path; it stops at a
// path that costs more than one known already.
//
// Axes of the mesh are divided into factors where all pieces stay equal, so that a cut along an axis of 8 can become
// one along an axis of 16: the ranks exchange their pieces and slice them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include "core/parallel/redistribution_steps.h"

namespace lunaria::parallel {
namespace {

// A layout in little space: the mesh axes that cut the first axis of the tensor, then those that cut the second ...
struct State {
    std::array<uint8_t, kMaxMeshAxes> order{};
    std::array<uint8_t, kMaxRank> ends{};  // where the list of each axis of the tensor ends
    AxisSet partial = 0;
    bool is_permuted = false;  // by the step before: a further permutation costs nothing, both are one

    int begin_of(int axis) const { return axis ? ends[static_cast<size_t>(axis - 1)] : 0; }
    int end_of(int axis) const { return ends[static_cast<size_t>(axis)]; }
    int at(int place) const { return order[static_cast<size_t>(place)]; }
    bool operator==(const State&) const = default;
};

struct StateHash {
    size_t operator()(const State& s) const {
        uint64_t words[3] = {0, 0, 0}, hash = s.partial * 2 + s.is_permuted;
        std::memcpy(words, s.order.data(), 16);
        std::memcpy(words + 2, s.ends.data(), 8);
        for (uint64_t w : words) hash = (std::rotl(hash, 23) ^ w) * 0x9e3779b97f4a7c15u;
        return static_cast<size_t>(hash ^ hash >> 32);
    }
};

State state_of(const Distribution& layout) {
    State s;
    size_t n = 0;
    for (int d = 0; d < layout.rank(); ++d) {
        for (int a : layout.cuts(d)) s.order[n++] = static_cast<uint8_t>(a);
        s.ends[static_cast<size_t>(d)] = static_cast<uint8_t>(n);
    }
    s.partial = layout.partial();
    return s;
}

// Takes a place of the order away, or puts an axis there.
void remove(State& s, int place, int rank) {
    for (int i = place; i + 1 < kMaxMeshAxes; ++i)
        s.order[static_cast<size_t>(i)] = s.order[static_cast<size_t>(i + 1)];
    s.order.back() = 0;
    for (int d = 0; d < rank; ++d)
        if (s.end_of(d) > place) --s.ends[static_cast<size_t>(d)];
}
void append(State& s, int axis, int mesh_axis, int rank) {
    for (int i = kMaxMeshAxes - 1; i > s.end_of(axis); --i)
        s.order[static_cast<size_t>(i)] = s.order[static_cast<size_t>(i - 1)];
    s.order[static_cast<size_t>(s.end_of(axis))] = static_cast<uint8_t>(mesh_axis);
    for (int d = axis; d < rank; ++d) ++s.ends[static_cast<size_t>(d)];
}

struct Edge {
    StepKind kind;
    State to;
    AxisSet axes;
    int axis, to_axis;
};

class PathSearch {
  public:
    PathSearch(const Distribution& from, const Distribution& to, const Shape& shape, int64_t width, const Costs& costs)
        : from_(from),
          to_(to),
          mesh_(from.mesh()),
          shape_(shape),
          rank_(shape.rank()),
          width_(width),
          costs_(costs),
          is_even_(from.is_even(shape) && to.is_even(shape)) {}

    // The steps of the cheapest path that costs at most `limit` seconds.
    std::optional<std::vector<Step>> run(double limit);

  private:
    struct Node {
        Node(const State& s, double seconds, int steps, int before, Edge by)
            : state(s), seconds(seconds), steps(steps), before(before), by(by) {}
        State state;
        double seconds;
        int steps, before;  // the node that the edge `by` came from
        Edge by;
        bool is_done = false;
    };

    template <class F>
    void for_each_edge(const State& from, const F& f) const;
    template <class F>
    void cut_more(const State& s, AxisSet free, const F& f) const;
    template <class F>
    void make_terms(const State& s, AxisSet free, const F& f) const;
    template <class F>
    void cut_less(const State& s, const F& f) const;
    template <class F>
    void combine_terms(const State& s, const F& f) const;
    template <class F>
    void exchange_pieces(const State& s, AxisSet free, const F& f) const;
    int count(const State& s) const { return rank_ ? s.end_of(rank_ - 1) : 0; }  // of cuts
    AxisSet used_by(const State& s) const;
    bool divides(const State& s) const;
    double size_of(const State& s) const;
    // Infinite: not possible.
    double seconds(const State& s, const Edge& e) const;
    const Distribution* layout(const State& s) const;
    void visit(const State& state, double seconds, int steps, int before, const Edge& by);

    const Distribution &from_, &to_;
    const Mesh& mesh_;
    const Shape& shape_;
    const int rank_;
    const int64_t width_;
    const Costs& costs_;
    const bool is_even_;
    double limit_ = 0;
    std::vector<Node> nodes_;
    std::unordered_map<State, int, StateHash> known_;
    using Entry = std::tuple<double, int, int>;  // seconds, steps, node
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

AxisSet PathSearch::used_by(const State& s) const {
    AxisSet used = s.partial;
    for (int i = 0; i < count(s); ++i) used |= axis_bit(s.at(i));
    return used;
}

bool PathSearch::divides(const State& s) const {
    for (int d = 0; d < rank_; ++d) {
        int64_t parts = 1;
        for (int i = s.begin_of(d); i < s.end_of(d); ++i) parts *= mesh_.size(s.at(i));
        if (shape_[d] % parts != 0) return false;
    }
    return true;
}

double PathSearch::size_of(const State& s) const {
    double size = static_cast<double>(width_);
    for (int d = 0; d < rank_; ++d) {
        int64_t n = shape_[d];
        for (int i = s.begin_of(d); i < s.end_of(d); ++i) n = (n + mesh_.size(s.at(i)) - 1) / mesh_.size(s.at(i));
        size *= static_cast<double>(n);
    }
    return size;
}

double PathSearch::seconds(const State& s, const Edge& e) const {
    const double before = size_of(s), after = size_of(e.to);
    if (costs_.memory_limit && before + after > static_cast<double>(costs_.memory_limit))
        return std::numeric_limits<double>::infinity();
    if (s.is_permuted && e.to.is_permuted) return 0;
    return collective_seconds(e.kind, mesh_, e.axes, before, after, costs_);
}

template <class F>
void PathSearch::for_each_edge(const State& from, const F& f) const {
    State s = from;
    s.is_permuted = false;
    const AxisSet free = mesh_.all_axes() & ~used_by(s);
    cut_more(s, free, f);
    make_terms(s, free, f);
    cut_less(s, f);
    combine_terms(s, f);
    if (is_even_) exchange_pieces(s, free, f);
}

// slice
template <class F>
void PathSearch::cut_more(const State& s, AxisSet free, const F& f) const {
    for (int a = 0; a < mesh_.axes(); ++a) {
        if (!has_axis(free, a)) continue;
        for (int d = 0; d < rank_; ++d) {
            Edge e{StepKind::slice, s, axis_bit(a), -1, d};
            append(e.to, d, a, rank_);
            if (!is_even_ || divides(e.to)) f(e);
        }
    }
}

// place: of what all ranks along an axis hold, the first keeps all; of what is cut along it, each keeps its piece.
template <class F>
void PathSearch::make_terms(const State& s, AxisSet free, const F& f) const {
    if (s.partial && from_.merge() != to_.merge()) return;
    const auto emit = [&](State next, int a) {
        next.partial |= axis_bit(a);
        f(Edge{StepKind::place, next, axis_bit(a), -1, -1});
    };
    for (int a = 0; a < mesh_.axes(); ++a)
        if (has_axis(to_.partial() & free, a)) emit(s, a);
    for (int d = 0; d < rank_; ++d) {
        if (s.end_of(d) == s.begin_of(d)) continue;
        const int a = s.at(s.end_of(d) - 1);
        if (!has_axis(to_.partial(), a)) continue;
        State next = s;
        remove(next, s.end_of(d) - 1, rank_);
        emit(next, a);
    }
}

// all_gather, all_to_all
template <class F>
void PathSearch::cut_less(const State& s, const F& f) const {
    for (int d = 0; d < rank_; ++d) {
        State whole = s;
        AxisSet axes = 0;
        for (int i = s.end_of(d); i-- > s.begin_of(d);) {
            axes |= axis_bit(s.at(i));
            remove(whole, i, rank_);
            f(Edge{StepKind::all_gather, whole, axes, d, -1});
            for (int e = 0; e < rank_; ++e) {
                if (e == d) continue;
                Edge moved{StepKind::all_to_all, whole, axes, d, e};
                for (int k = i; k < s.end_of(d); ++k) append(moved.to, e, s.at(k), rank_);
                if (!is_even_ || divides(moved.to)) f(moved);
            }
        }
    }
}

// all_reduce, reduce_scatter
template <class F>
void PathSearch::combine_terms(const State& s, const F& f) const {
    for (AxisSet axes = s.partial; axes; axes = (axes - 1) & s.partial) {
        State whole = s;
        whole.partial &= ~axes;
        f(Edge{StepKind::all_reduce, whole, axes, -1, -1});
        for (int d = 0; d < rank_; ++d) {
            Edge e{StepKind::reduce_scatter, whole, axes, -1, d};
            for (int a = 0; a < mesh_.axes(); ++a)
                if (has_axis(axes, a)) append(e.to, d, a, rank_);
            if (!is_even_ || divides(e.to)) f(e);
        }
    }
}

// permute: two axes of the mesh change places, or one takes the place of another of its size.
template <class F>
void PathSearch::exchange_pieces(const State& s, AxisSet free, const F& f) const {
    const int n = count(s);
    const auto axis_at = [&](int place) {
        int d = 0;
        while (s.end_of(d) <= place) ++d;
        return d;
    };
    for (int i = 0; i < n; ++i) {
        for (int a = 0; a < mesh_.axes(); ++a) {
            if (!has_axis(free, a) || mesh_.size(a) != mesh_.size(s.at(i))) continue;
            Edge e{StepKind::permute, s, axis_bit(a) | axis_bit(s.at(i)), axis_at(i), axis_at(i)};
            e.to.order[static_cast<size_t>(i)] = static_cast<uint8_t>(a);
            e.to.is_permuted = true;
            f(e);
        }
        for (int k = i + 1; k < n; ++k) {
            if (axis_at(i) != axis_at(k) && mesh_.size(s.at(i)) != mesh_.size(s.at(k))) continue;
            Edge e{StepKind::permute, s, axis_bit(s.at(i)) | axis_bit(s.at(k)), axis_at(i), axis_at(k)};
            std::swap(e.to.order[static_cast<size_t>(i)], e.to.order[static_cast<size_t>(k)]);
            e.to.is_permuted = true;
            f(e);
        }
    }
}

const Distribution* PathSearch::layout(const State& s) const {
    Distribution::Cuts cuts(static_cast<size_t>(rank_));
    for (int d = 0; d < rank_; ++d)
        for (int i = s.begin_of(d); i < s.end_of(d); ++i) cuts[static_cast<size_t>(d)].push_back(s.at(i));
    // Terms are all combined in the source's way before the target's begins.
    const bool is_target = (s.partial & ~from_.partial()) != 0 || from_.merge() == Merge::none;
    return Distribution::of(mesh_, cuts, s.partial, !s.partial ? Merge::none : is_target ? to_.merge() : from_.merge());
}

void PathSearch::visit(const State& state, double seconds, int steps, int before, const Edge& by) {
    if (seconds > limit_ || !std::isfinite(seconds)) return;
    const auto [entry, is_new] = known_.try_emplace(state, static_cast<int>(nodes_.size()));
    const int index = entry->second;
    if (is_new) {
        nodes_.emplace_back(state, seconds, steps, before, by);
    } else {
        Node& node = nodes_[static_cast<size_t>(index)];
        if (node.is_done || std::tie(seconds, steps) >= std::tie(node.seconds, node.steps)) return;
        node = Node(state, seconds, steps, before, by);
    }
    queue_.emplace(seconds, steps, index);
}

std::optional<std::vector<Step>> PathSearch::run(double limit) {
    // Longer searches are for the planner of a whole program, not for one tensor; the direct exchange is always there.
    constexpr int kMaxVisits = 20000;
    limit_ = limit;
    const State start = state_of(from_), goal = state_of(to_);
    visit(start, 0, 0, -1, Edge{StepKind::slice, start, 0, -1, -1});
    int visits = 0, found = -1;
    while (!queue_.empty() && found < 0) {
        const int index = std::get<2>(queue_.top());
        queue_.pop();
        Node& node = nodes_[static_cast<size_t>(index)];
        if (node.is_done) continue;
        node.is_done = true;
        State reached = node.state;
        reached.is_permuted = false;
        if (reached == goal) found = index;
        if (++visits > kMaxVisits) return std::nullopt;
        const Node here = node;
        if (found < 0)
            for_each_edge(here.state, [&](const Edge& e) {
                visit(e.to, here.seconds + seconds(here.state, e), here.steps + 1, index, e);
            });
    }
    if (found < 0) return std::nullopt;
    std::vector<Step> steps;
    for (int i = found; nodes_[static_cast<size_t>(i)].before >= 0; i = nodes_[static_cast<size_t>(i)].before) {
        const Node& node = nodes_[static_cast<size_t>(i)];
        if (node.by.kind == StepKind::permute && !steps.empty() && steps.back().kind == StepKind::permute) {
            steps.back().from = layout(nodes_[static_cast<size_t>(node.before)].state);
            steps.back().axes |= node.by.axes;
            continue;
        }
        Step step;
        step.kind = node.by.kind;
        step.from = layout(nodes_[static_cast<size_t>(node.before)].state);
        step.to = layout(node.state);
        step.axes = node.by.axes;
        step.axis = node.by.axis;
        step.to_axis = node.by.to_axis;
        steps.push_back(step);
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
}

// A mesh whose axes are factors of those of another one, and the axes that each of those became. No mesh: it would be
// the same, or have too many axes.
struct FineMesh {
    const Mesh* mesh = nullptr;
    std::vector<std::vector<int>> axes;
};

using Factors = std::vector<std::vector<int64_t>>;  // of each axis, major to minor

Factors prime_factors(const Mesh& mesh) {
    Factors all;
    for (int64_t rest : mesh.sizes()) {
        all.emplace_back();
        for (int64_t p = 2; p * p <= rest; ++p)
            for (; rest % p == 0; rest /= p) all.back().push_back(p);
        if (rest > 1 || all.back().empty()) all.back().push_back(rest);
    }
    return all;
}

// Each axis in two: the largest factor that it has in common with another one, and the rest.
Factors common_factors(const Mesh& mesh) {
    Factors all;
    for (int a = 0; a < mesh.axes(); ++a) {
        int64_t common = 1;
        for (int b = 0; b < mesh.axes(); ++b)
            if (a != b) common = std::max(common, std::gcd(mesh.size(a), mesh.size(b)));
        const int64_t rest = mesh.size(a) / common;
        all.push_back(common == 1 || rest == 1 ? std::vector{mesh.size(a)} : std::vector{common, rest});
    }
    return all;
}

FineMesh fine_mesh(const Mesh& mesh, const Factors& factors) {
    FineMesh fine;
    std::vector<int64_t> sizes;
    std::vector<std::string> names;
    std::set<std::string> different;
    for (int a = 0; a < mesh.axes(); ++a) {
        const std::vector<int64_t>& parts = factors[static_cast<size_t>(a)];
        fine.axes.emplace_back();
        for (size_t i = 0; i < parts.size(); ++i) {
            fine.axes.back().push_back(static_cast<int>(sizes.size()));
            names.push_back(parts.size() == 1 ? mesh.name(a) : str(mesh.name(a), "_", i));
            sizes.push_back(parts[i]);
            different.insert(names.back());
        }
    }
    if (sizes.size() == mesh.sizes().size() || sizes.size() > kMaxMeshAxes || different.size() < names.size())
        return fine;
    std::vector<int> ranks;
    for (int64_t p = 0; p < mesh.count() && !mesh.is_plain(); ++p) ranks.push_back(mesh.rank(p));
    fine.mesh = &Mesh::of("redistribute", sizes, names, ranks);
    return fine;
}

const Distribution* on(const FineMesh& fine, const Distribution& layout) {
    Distribution::Cuts cuts;
    for (int d = 0; d < layout.rank(); ++d) {
        cuts.emplace_back();
        for (int a : layout.cuts(d))
            for (int part : fine.axes[static_cast<size_t>(a)]) cuts.back().push_back(part);
    }
    AxisSet partial = 0;
    for (int a = 0; a < layout.mesh().axes(); ++a)
        if (has_axis(layout.partial(), a))
            for (int part : fine.axes[static_cast<size_t>(a)]) partial |= axis_bit(part);
    return Distribution::of(*fine.mesh, cuts, partial, layout.merge());
}

Costs on(const FineMesh& fine, const Costs& costs) {
    Costs same = costs;
    if (costs.axes.empty()) return same;
    same.axes.assign(static_cast<size_t>(fine.mesh->axes()), costs.link);
    for (size_t a = 0; a < fine.axes.size() && a < costs.axes.size(); ++a)
        for (int part : fine.axes[a]) same.axes[static_cast<size_t>(part)] = costs.axes[a];
    return same;
}

}  // namespace

std::optional<std::vector<Step>> search_steps(const Distribution& from, const Distribution& to, const Shape& shape,
                                              int64_t width, const Costs& costs, double limit) {
    // Layouts of more axes are too many to search.
    constexpr int kMaxFineAxes = 5, kMaxAxes = 6;
    if (&from.mesh() != &to.mesh()) return std::nullopt;
    if (from.is_even(shape) && to.is_even(shape)) {
        for (const Factors& factors : {prime_factors(from.mesh()), common_factors(from.mesh())}) {
            const FineMesh fine = fine_mesh(from.mesh(), factors);
            if (!fine.mesh || fine.mesh->axes() > kMaxFineAxes) continue;
            const Costs same = on(fine, costs);
            return PathSearch(*on(fine, from), *on(fine, to), shape, width, same).run(limit);
        }
    }
    if (from.mesh().axes() > kMaxAxes) return std::nullopt;
    return PathSearch(from, to, shape, width, costs).run(limit);
}

}  // namespace lunaria::parallel
