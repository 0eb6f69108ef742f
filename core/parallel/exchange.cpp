// Both layouts cut the axes of a tensor into intervals; their intersections make a grid of *cells*, in each of which
// all elements have the same holders and targets. For one element, let there be P terms (1 where it is complete) and m
// ranks that need the result. A rank that combines terms of its own and of others receives at least P - 1 of them
// before anything is complete anywhere, and each further target has to receive something once more: P - 1 + m - 1 in
// all, or one more if no target holds a term. A tree does it. So a cell is divided evenly among those of its targets
// that hold a term (the roots), each combines its share and passes it on.
//
// Targets may stay incomplete: they are of several *classes*, and the sum over classes is the result. A term that a
// class holds already stays there; only the others move.
#include "core/parallel/exchange.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

// An interval of a tensor's axis that both layouts leave in one piece, and what it adds to the position of its holders
// and of its targets.
struct Cell {
    Interval interval;
    int64_t from, to;
};

// The pieces of an axis in ascending order, with what each adds to a position; those without elements are left out.
std::vector<std::pair<Interval, int64_t>> pieces_of(const Distribution& layout, int axis, int64_t size) {
    const Mesh& mesh = layout.mesh();
    std::vector<std::pair<Interval, int64_t>> pieces = {{{0, size}, 0}};
    for (int a : layout.cuts(axis)) {
        std::vector<std::pair<Interval, int64_t>> smaller;
        for (const auto& [interval, position] : pieces)
            for (int64_t c = 0; c < mesh.size(a); ++c) {
                const Interval part = piece_of(interval.size(), c, mesh.size(a));
                if (!part.empty())
                    smaller.push_back(
                        {{interval.begin + part.begin, interval.begin + part.end}, position + c * mesh.stride(a)});
            }
        pieces = std::move(smaller);
    }
    return pieces;
}

std::vector<Cell> cells_of(const Distribution& from, const Distribution& to, int axis, int64_t size) {
    std::vector<Cell> cells;
    if (size == 0) return cells;
    const auto left = pieces_of(from, axis, size), right = pieces_of(to, axis, size);
    for (size_t i = 0, k = 0; i < left.size() && k < right.size();) {
        cells.push_back({intersection(left[i].first, right[k].first), left[i].second, right[k].second});
        const int64_t end = cells.back().interval.end;
        if (left[i].first.end == end) ++i;
        if (right[k].first.end == end) ++k;
    }
    return cells;
}

// The sums of multiples of the axes' strides: positions relative to a first one, in row-major order.
std::vector<int64_t> positions_along(const Mesh& mesh, AxisSet axes) { return mesh.group(0, axes); }

// Both layouts, and what follows from them for every cell.
class Pair {
  public:
    Pair(const Distribution& from, const Distribution& to)
        : from(from),
          to(to),
          same_mesh(&from.mesh() == &to.mesh()),
          kept(same_mesh && from.merge() == to.merge() ? from.partial() & to.partial() : 0),
          replicated_stay(same_mesh && from.mesh().size_of(to.replicated_axes() & ~from.replicated_axes()) == 1),
          terms(positions_along(from.mesh(), from.partial())),
          replicas(positions_along(from.mesh(), from.replicated_axes())),
          copies(positions_along(to.mesh(), to.replicated_axes())),
          classes(positions_along(to.mesh(), kept)) {
        if (!same_mesh && to.partial())
            throw argument_error("redistribute", str("incomplete values cannot go to another mesh: ", to.text()));
        if (!same_mesh)
            for (int64_t p = 0; p < from.mesh().count(); ++p) places_[from.mesh().rank(p)] = p;
    }

    const Distribution &from, &to;
    const bool same_mesh;
    const AxisSet kept;          // along these the target may be incomplete as the source is
    const bool replicated_stay;  // all copies that the target has are copies at the source, too
    const std::vector<int64_t> terms, replicas, copies, classes;

    // The position at the source of a target's rank, or -1.
    int64_t source_of(int64_t target) const {
        if (same_mesh) return target;
        const auto found = places_.find(to.mesh().rank(target));
        return found == places_.end() ? -1 : found->second;
    }
    // Whether no axis that both layouts cut tells holders from targets.
    bool can_meet(int64_t from_base, int64_t to_base) const {
        if (!same_mesh) return true;
        for (int a = 0; a < from.mesh().axes(); ++a)
            if (has_axis(from.cut_axes() & to.cut_axes(), a) &&
                from.mesh().coordinate(from_base, a) != from.mesh().coordinate(to_base, a))
                return false;
        return true;
    }
    // Whether a target's own piece at the source has the cell.
    bool holds(int64_t from_base, int64_t target) const {
        const int64_t own = source_of(target);
        if (own < 0) return false;
        const Mesh& mesh = from.mesh();
        for (int a = 0; a < mesh.axes(); ++a)
            if (has_axis(from.cut_axes(), a) && mesh.coordinate(own, a) != mesh.coordinate(from_base, a)) return false;
        return true;
    }
    // The term that a target holds itself.
    size_t own_term(int64_t target) const {
        return static_cast<size_t>(from.mesh().place_in_group(source_of(target), from.partial()));
    }
    // The holders of a term that differ from a target at most along `group`, if possible: first the one with the
    // target's coordinates along axes where holders are equal.
    std::vector<int64_t> holders(int64_t from_base, size_t term, int64_t target, AxisSet group) const {
        const int64_t base = from_base + terms[term];
        std::vector<int64_t> all;
        if (!same_mesh) {
            for (size_t i = 0; i < replicas.size(); ++i)
                all.push_back(base + replicas[(static_cast<size_t>(target) + i) % replicas.size()]);
            return all;
        }
        const Mesh& mesh = from.mesh();
        int64_t nearest = base;
        for (int a = 0; a < mesh.axes(); ++a)
            if (has_axis(from.replicated_axes(), a)) nearest += mesh.coordinate(target, a) * mesh.stride(a);
        all = mesh.group(nearest, from.replicated_axes() & group);
        std::rotate(all.begin(), std::find(all.begin(), all.end(), nearest), all.end());
        return all;
    }
    // What the class that is to get the terms of a cell adds to a position, where there is a choice: that of the
    // holders along axes that only the source cuts, else 0.
    int64_t free_class(int64_t from_base) const {
        int64_t position = 0;
        for (int a = 0; a < to.mesh().axes(); ++a)
            if (same_mesh && has_axis(to.partial() & from.cut_axes(), a))
                position += to.mesh().coordinate(from_base, a) * to.mesh().stride(a);
        return position;
    }

  private:
    std::map<int, int64_t> places_;
};

// Calls f(region, candidate) with the parts of a region, of which each candidate gets as equal a share as possible.
template <class F>
void share_out(const Region& region, std::span<const int64_t> candidates, const F& f) {
    const auto longest = std::max_element(region.begin(), region.end(),
                                          [](const Interval& a, const Interval& b) { return a.size() < b.size(); });
    if (candidates.size() == 1 || longest == region.end() || longest->size() == 1) {
        f(region, candidates[0]);
        return;
    }
    const size_t n = candidates.size(), cuts = std::min(n, static_cast<size_t>(longest->size()));
    for (size_t i = 0; i < cuts; ++i) {
        const auto size = static_cast<size_t>(longest->size());
        Region part = region;
        part[static_cast<size_t>(longest - region.begin())] = {
            longest->begin + static_cast<int64_t>(size * i / cuts),
            longest->begin + static_cast<int64_t>(size * (i + 1) / cuts)};
        share_out(part, candidates.subspan(i * n / cuts, (i + 1) * n / cuts - i * n / cuts), f);
    }
}

class Builder {
  public:
    Builder(const Pair& pair, Way way, AxisSet group, std::vector<Part>& parts)
        : pair_(pair), way_(way), group_(group), parts_(parts), sent_(static_cast<size_t>(pair.from.mesh().count())) {}

    void add(const Region& region, int64_t from_base, int64_t to_base) {
        from_base_ = from_base;
        const int64_t base = to_base + pair_.free_class(from_base);
        const size_t terms = pair_.terms.size(), classes = pair_.classes.size();
        const bool stays = pair_.replicated_stay && pair_.can_meet(from_base, to_base);
        if (terms == 1) {
            give(region, {0}, base);
        } else if (classes > 1 && (way_ == Way::alone || pair_.copies.size() == 1 || (stays && terms == classes))) {
            // Each class combines the terms that have its coordinates.
            for (int64_t c : pair_.classes) give(region, terms_of(c), base + c);
        } else if (classes > 1) {
            // One class gets all terms but those that another one has already; every class does so for some elements.
            const std::vector<int64_t> turn = rotated(pair_.classes);
            share_out(region, turn, [&](const Region& part, int64_t chosen) {
                std::vector<size_t> all(terms);
                for (size_t i = 0; i < terms; ++i) all[i] = i;
                for (int64_t c : pair_.classes) {
                    if (!stays || c == chosen) continue;
                    const size_t own = held_by(base + c);
                    give(part, {own}, base + c);
                    std::erase(all, own);
                }
                give(part, all, base + chosen);
            });
        } else {
            std::vector<size_t> all(terms);
            for (size_t i = 0; i < terms; ++i) all[i] = i;
            give(region, all, base);
        }
    }

  private:
    // Lists that divide a cell start somewhere else each time: cells of one element would all choose the first.
    std::vector<int64_t> rotated(std::vector<int64_t> list) {
        std::rotate(list.begin(), list.begin() + static_cast<ptrdiff_t>(turn_++ % list.size()), list.end());
        return list;
    }
    std::vector<size_t> terms_of(int64_t chosen) const {
        const Mesh& mesh = pair_.from.mesh();
        std::vector<size_t> some;
        for (size_t i = 0; i < pair_.terms.size(); ++i)
            if (mesh.place_in_group(pair_.terms[i], pair_.kept) == mesh.place_in_group(chosen, pair_.kept))
                some.push_back(i);
        return some;
    }
    // The term that the targets of a class hold which can hold one.
    size_t held_by(int64_t class_base) const { return pair_.own_term(class_base); }

    // The targets at class_base get the combination of some terms.
    void give(const Region& region, const std::vector<size_t>& terms, int64_t class_base) {
        std::vector<int64_t> targets, roots;
        for (int64_t c : pair_.copies) targets.push_back(class_base + c);
        if (way_ == Way::alone || (terms.size() == 1 && way_ != Way::relayed)) {
            for (int64_t t : targets) add_part(region, terms, t, {});
            return;
        }
        for (int64_t t : targets)
            if (pair_.holds(from_base_, t) && std::find(terms.begin(), terms.end(), pair_.own_term(t)) != terms.end())
                roots.push_back(t);
        if (terms.size() == 1) {  // relayed: what is there stays, the others share out what they need
            for (int64_t t : roots) {
                add_part(region, terms, t, {});
                std::erase(targets, t);
            }
            roots.clear();
            if (targets.empty()) return;
        }
        if (roots.empty()) roots = targets;
        share_out(region, rotated(std::move(roots)), [&](const Region& part, int64_t root) {
            std::vector<int64_t> others = targets;
            std::erase(others, root);
            add_part(part, terms, root, std::move(others));
        });
    }
    void add_part(const Region& region, const std::vector<size_t>& terms, int64_t root, std::vector<int64_t> others) {
        Part part{region, {}, root, std::move(others)};
        for (size_t term : terms) part.holders.push_back(holder(term, root, elements(region)));
        parts_.push_back(std::move(part));
    }

    // The holder that a target gets a term from: itself if possible, and always the same for all cells of a piece.
    int64_t holder(size_t term, int64_t target, int64_t count) {
        if (pair_.holds(from_base_, target) && pair_.own_term(target) == term) return pair_.source_of(target);
        const std::vector<int64_t> all = pair_.holders(from_base_, term, target, group_);
        if (way_ == Way::shared || all.size() == 1) return all[0];
        const auto [known, is_new] = chosen_.try_emplace({target, all[0]}, all[0]);
        if (is_new)
            known->second = *std::min_element(all.begin(), all.end(), [&](int64_t a, int64_t b) {
                return sent_[static_cast<size_t>(a)] < sent_[static_cast<size_t>(b)];
            });
        sent_[static_cast<size_t>(known->second)] += count;
        return known->second;
    }

    const Pair& pair_;
    const Way way_;
    const AxisSet group_;
    std::vector<Part>& parts_;
    int64_t from_base_ = 0;
    size_t turn_ = 0;
    std::vector<int64_t> sent_;                              // elements, by position of the source
    std::map<std::pair<int64_t, int64_t>, int64_t> chosen_;  // target and nearest holder -> holder
};

// Calls f(region, holders' base, targets' base) for every cell of the grid.
template <class F>
void for_each_cell(const Distribution& from, const Distribution& to, const Shape& shape, const F& f) {
    std::vector<std::vector<Cell>> cells;
    for (int i = 0; i < shape.rank(); ++i) {
        cells.push_back(cells_of(from, to, i, shape[i]));
        if (cells.back().empty()) return;
    }
    std::vector<size_t> at(cells.size());
    Region region(cells.size());
    for (bool more = true; more;) {
        int64_t from_base = 0, to_base = 0;
        for (size_t i = 0; i < cells.size(); ++i) {
            const Cell& cell = cells[i][at[i]];
            region[i] = cell.interval;
            from_base += cell.from;
            to_base += cell.to;
        }
        f(region, from_base, to_base);
        more = false;
        for (size_t i = cells.size(); i-- > 0 && !more;) {
            more = ++at[i] < cells[i].size();
            if (!more) at[i] = 0;
        }
    }
}

void check_ranks(const Distribution& from, const Distribution& to, const Shape& shape) {
    if (from.rank() != shape.rank() || to.rank() != shape.rank())
        throw argument_error("redistribute",
                             str("a tensor of shape ", shape, " cannot go from ", from.text(), " to ", to.text()));
}

}  // namespace

bool Exchange::is_same_rank(int64_t source, int64_t target) const {
    return from->mesh().rank(source) == to->mesh().rank(target);
}

Exchange exchange_between(const Distribution& from, const Distribution& to, const Shape& shape, Way way,
                          AxisSet group) {
    check_ranks(from, to, shape);
    Exchange exchange{&from, &to, shape, {}};
    const Pair pair(from, to);
    Builder builder(pair, way, group, exchange.parts);
    for_each_cell(from, to, shape, [&](const Region& region, int64_t from_base, int64_t to_base) {
        builder.add(region, from_base, to_base);
    });
    return exchange;
}

double part_count(const Distribution& from, const Distribution& to, const Shape& shape) {
    check_ranks(from, to, shape);
    const auto copies = to.mesh().size_of(to.replicated_axes() | to.partial()),
               terms = from.mesh().size_of(from.partial());
    double count = static_cast<double>(copies * terms);
    for (int i = 0; i < shape.rank(); ++i) count *= static_cast<double>(cells_of(from, to, i, shape[i]).size());
    return count;
}

Volume volume_of(const Exchange& exchange) {
    struct Rank {
        int64_t received = 0, sent = 0;
        std::set<int> givers[2], takers[2];  // before terms are combined, and afterwards
    };
    std::map<int, Rank> ranks;
    Volume volume;
    const auto move = [&](int source, int target, int64_t count, int round) {
        if (source == target) return;
        Rank &giver = ranks[source], &taker = ranks[target];
        giver.sent += count;
        taker.received += count;
        volume.total += count;
        giver.takers[round].insert(target);
        taker.givers[round].insert(source);
    };
    for (const Part& part : exchange.parts) {
        const int64_t count = elements(part.region);
        const int root = exchange.to->mesh().rank(part.root);
        for (int64_t h : part.holders) move(exchange.from->mesh().rank(h), root, count, 0);
        for (int64_t t : part.targets) move(root, exchange.to->mesh().rank(t), count, 1);
    }
    size_t messages[2] = {0, 0};
    for (const auto& [rank, r] : ranks) {
        volume.received = std::max(volume.received, r.received);
        volume.sent = std::max(volume.sent, r.sent);
        for (int round : {0, 1})
            messages[round] = std::max({messages[round], r.givers[round].size(), r.takers[round].size()});
    }
    volume.messages = static_cast<int>(messages[0] + messages[1]);
    return volume;
}

Volume lower_bound(const Distribution& from, const Distribution& to, const Shape& shape) {
    check_ranks(from, to, shape);
    const Pair pair(from, to);
    const auto terms = static_cast<int64_t>(pair.terms.size()), copies = static_cast<int64_t>(pair.copies.size()),
               classes = static_cast<int64_t>(pair.classes.size());
    Volume bound;
    std::vector<int64_t> needed(static_cast<size_t>(to.mesh().count()));
    for_each_cell(from, to, shape, [&](const Region& region, int64_t from_base, int64_t to_base) {
        const int64_t base = to_base + pair.free_class(from_base), count = elements(region);
        int64_t holding = 0;
        for (int64_t c : pair.copies) {
            const bool holds = pair.holds(from_base, base + c);
            holding += holds;
            if (classes == 1 && (terms > 1 || !holds)) needed[static_cast<size_t>(base + c)] += count;
        }
        const bool meets = pair.same_mesh ? pair.can_meet(from_base, to_base) : holding > 0;
        int64_t moves = terms + copies - 1 - (meets ? 1 : 0);
        if (terms == 1)
            moves = copies - holding;
        else if (meets && pair.replicated_stay)
            moves = terms == classes ? 0 : terms - classes + copies - 1;
        bound.total += moves * count;
    });
    const int64_t ranks = std::max(from.mesh().count(), to.mesh().count());
    bound.received = pair.same_mesh ? (bound.total + ranks - 1) / ranks : 0;
    for (int64_t n : needed) bound.received = std::max(bound.received, n);
    return bound;
}

}  // namespace lunaria::parallel
