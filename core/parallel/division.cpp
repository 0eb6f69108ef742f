#include "core/parallel/division.h"

#include <algorithm>
#include <tuple>

namespace lunaria::parallel {

Division::Division(const Rule& rule, const Mesh& mesh, std::span<const Laid> operands, int kept)
    : rule_(rule),
      mesh_(mesh),
      given_(operands),
      kept_(kept),
      chosen_(static_cast<size_t>(mesh.axes()), kNone),
      along_(rule.factors.size()) {
    for (const Operand& o : rule.operands) axes_.push_back(o.axes);
    find_moves();
    for (int axis = 0; axis < mesh.axes(); ++axis)
        if (mesh.size(axis) > 1) choose(axis);
    order_axes();
}

void Division::find_moves() {
    for (size_t f = 0; f < rule_.factors.size(); ++f) {
        const Factor& factor = rule_.factors[f];
        if (factor.kind != Kind::move || !factor.can_be_cut()) continue;
        std::vector<Interval> first = rule_.whole(), second = first;
        first[f] = piece_of(factor.size, 0, 2);
        second[f] = piece_of(factor.size, 1, 2);
        const Work a = rule_.work(std::move(first)), b = rule_.work(std::move(second));
        for (size_t i = 0; i < axes_.size(); ++i) {
            // A diagonal moves along two axes: the one that is cut already, or the first.
            size_t chosen = SIZE_MAX;
            bool keeps = false;
            for (size_t k = axes_[i].size(); k-- > 0;) {
                if (!axes_[i][k].empty() || a.operands[i][k] == b.operands[i][k]) continue;
                const bool is_cut = given_[i].layout && !given_[i].layout->cuts(static_cast<int>(k)).empty();
                if (chosen == SIZE_MAX || is_cut || !keeps) {
                    chosen = k;
                    keeps = is_cut;
                }
            }
            if (chosen != SIZE_MAX) axes_[i][chosen] = {static_cast<int>(f)};
        }
    }
}

// The factor that is cut where this axis of a tensor is: the first one that is larger than 1.
int Division::factor_of_axis(const std::vector<AxisFactors>& axes, int axis) const {
    for (int f : axes[static_cast<size_t>(axis)])
        if (rule_.factors[static_cast<size_t>(f)].size > 1) return f;
    return kNone;
}

int Division::axis_of_factor(int factor, const std::vector<AxisFactors>& axes) const {
    for (int a = 0; a < static_cast<int>(axes.size()); ++a)
        if (factor_of_axis(axes, a) == factor) return a;
    return -1;
}

// The axis of an operand that is cut along a mesh axis; -1: none.
int Division::cut_at(size_t operand, int mesh_axis) const {
    const Distribution* layout = given_[operand].layout;
    for (int a = 0; layout && a < layout->rank(); ++a)
        if (std::ranges::count(layout->cuts(a), mesh_axis)) return a;
    return -1;
}

bool Division::is_partial(size_t operand, int mesh_axis) const {
    const Distribution* layout = given_[operand].layout;
    return layout && has_axis(layout->partial(), mesh_axis);
}

std::vector<int> Division::candidates(int axis) const {
    std::vector<int> list;
    for (size_t i = 0; i < given_.size(); ++i) {
        const int at = cut_at(i, axis);
        const int factor = at < 0 ? kNone : factor_of_axis(axes_[i], at);
        if (factor >= 0 && !std::ranges::count(list, factor) && is_possible(factor, axis)) list.push_back(factor);
    }
    if (passes(axis)) list.push_back(kPasses);
    list.push_back(kNone);
    return list;
}

// Whether every tensor that has the factor is cut into the pieces of its layout by it.
bool Division::fits_axes(int factor, int64_t parts, const std::vector<AxisFactors>& axes) const {
    for (const AxisFactors& of_axis : axes) {
        if (!std::ranges::count(of_axis, factor)) continue;
        const auto larger = [&](int f) { return rule_.factors[static_cast<size_t>(f)].size > 1; };
        if (*std::ranges::find_if(of_axis, larger) != factor) return false;
        if (std::ranges::count_if(of_axis, larger) > 1 && rule_.factors[static_cast<size_t>(factor)].size % parts)
            return false;
    }
    return true;
}

bool Division::is_possible(int factor, int axis) const {
    const Factor& f = rule_.factors[static_cast<size_t>(factor)];
    if (!f.can_be_cut()) return false;
    int64_t parts = mesh_.size(axis);
    for (int m = 0; m < axis; ++m)
        if (chosen_[static_cast<size_t>(m)] == factor) parts *= mesh_.size(m);
    if (!rule_.gives_pieces(factor, parts)) return false;
    for (const auto& axes : axes_)
        if (!fits_axes(factor, parts, axes)) return false;
    for (size_t r = 0; r < rule_.results.size(); ++r) {
        if (!fits_axes(factor, parts, rule_.results[r].axes)) return false;
        // A result is incomplete in one way only.
        const Merge merge = rule_.merge(factor, r);
        if (merge == Merge::none) continue;
        for (int m = 0; m < axis; ++m) {
            const int other = chosen_[static_cast<size_t>(m)];
            if (other == kPasses) return false;
            if (other >= 0 && rule_.merge(other, r) != Merge::none && rule_.merge(other, r) != merge) return false;
        }
    }
    return true;
}

// Whether incomplete operands can stay so.
bool Division::passes(int axis) const {
    size_t count = 0, which = 0;
    Merge merge = Merge::none;
    for (size_t i = 0; i < given_.size(); ++i) {
        if (!is_partial(i, axis)) continue;
        if (count && given_[i].layout->merge() != merge) return false;
        merge = given_[i].layout->merge();
        which = i;
        ++count;
    }
    if (!count) return false;
    for (int m = 0; m < axis; ++m) {
        const int other = chosen_[static_cast<size_t>(m)];
        for (size_t r = 0; other >= 0 && r < rule_.results.size(); ++r)
            if (rule_.merge(other, r) != Merge::none && rule_.merge(other, r) != merge) return false;
    }
    if (rule_.only_moves && count == given_.size()) return true;
    if (merge != Merge::sum) return false;
    return (rule_.is_jointly_linear && count == given_.size()) || (count == 1 && rule_.operands[which].is_linear);
}

// Bytes that a rank receives, about: for the operands, if this is chosen.
double Division::cost(int candidate, int axis) const {
    const auto n = static_cast<double>(mesh_.size(axis));
    double total = 0;
    for (size_t i = 0; i < given_.size(); ++i) {
        double bytes = static_cast<double>(given_[i].bytes());
        for (int m = 0; m < mesh_.axes(); ++m)
            if (m != axis && cut_at(i, m) >= 0) bytes /= static_cast<double>(mesh_.size(m));
        const double share = bytes * (n - 1) / n;
        const int from = cut_at(i, axis), to = candidate >= 0 ? axis_of_factor(candidate, axes_[i]) : -1;
        if (is_partial(i, axis))
            total += candidate == kPasses ? 0 : to >= 0 ? share : 2 * share;
        else if (from >= 0 && from != to)
            total += to >= 0 ? share / n : share;
        // A rank that has all of an expanded operator's operand needs only some numbers for each row of it.
        if (candidate >= 0 && to >= 0 && rule_.factors[static_cast<size_t>(candidate)].kind == Kind::spread)
            total += 4 * share / static_cast<double>(rule_.factors[static_cast<size_t>(candidate)].size);
    }
    return total;
}

double Division::merge_cost(int factor, int axis) const {
    const auto n = static_cast<double>(mesh_.size(axis));
    double total = 0;
    for (size_t r = 0; factor >= 0 && r < rule_.results.size(); ++r)
        if (rule_.merge(factor, r) != Merge::none) {
            const TensorType& type = rule_.results[r].type;
            total +=
                2 * (n - 1) / n * static_cast<double>(type.shape.size()) * static_cast<double>(size_of(type.dtype));
        }
    return total;
}

bool Division::changes_kept(int candidate, int axis) const {
    if (kept_ < 0) return false;
    const auto i = static_cast<size_t>(kept_);
    if (candidate == kPasses) return true;
    return (candidate >= 0 ? axis_of_factor(candidate, axes_[i]) : -1) != cut_at(i, axis);
}

void Division::choose(int axis) {
    using Price = std::tuple<double, double>;
    std::optional<Price> best;
    for (int candidate : candidates(axis)) {
        if (changes_kept(candidate, axis)) continue;
        const double operands = cost(candidate, axis);
        // What is divided already stays so: its results are merged where they are needed.
        const Price price{operands > 0 ? operands + merge_cost(candidate, axis) : 0, operands};
        if (best && !(price < *best)) continue;
        best = price;
        chosen_[static_cast<size_t>(axis)] = candidate;
    }
}

// The order in which a factor is cut along several mesh axes: that of an operand which is cut so already.
void Division::order_axes() {
    for (int m = 0; m < mesh_.axes(); ++m)
        if (chosen_[static_cast<size_t>(m)] >= 0)
            along_[static_cast<size_t>(chosen_[static_cast<size_t>(m)])].push_back(m);
    for (size_t f = 0; f < along_.size(); ++f) {
        if (along_[f].size() < 2) continue;
        for (size_t i = 0; i < given_.size(); ++i) {
            const int at = axis_of_factor(static_cast<int>(f), axes_[i]);
            if (at < 0 || !given_[i].layout) continue;
            const auto before = given_[i].layout->cuts(at);
            if (before.size() != along_[f].size() || !std::ranges::is_permutation(before, along_[f])) continue;
            along_[f].assign(before.begin(), before.end());
            break;
        }
    }
}

bool Division::has_cut(Kind kind) const {
    return std::ranges::any_of(chosen_,
                               [&](int f) { return f >= 0 && rule_.factors[static_cast<size_t>(f)].kind == kind; });
}
bool Division::is_spread() const { return has_cut(Kind::spread); }
bool Division::is_shifted() const { return has_cut(Kind::move); }

const Distribution* Division::operand(size_t i) const {
    const auto& axes = axes_[i];
    Distribution::Cuts cuts(axes.size());
    for (int a = 0; a < static_cast<int>(axes.size()); ++a)
        if (const int f = factor_of_axis(axes, a); f >= 0)
            cuts[static_cast<size_t>(a)] = along_[static_cast<size_t>(f)];
    AxisSet partial = 0;
    for (int m = 0; m < mesh_.axes(); ++m)
        if (chosen_[static_cast<size_t>(m)] == kPasses && is_partial(i, m)) partial |= axis_bit(m);
    return Distribution::of(mesh_, cuts, partial, partial ? given_[i].layout->merge() : Merge::none);
}

const Distribution* Division::result(size_t i) const {
    const auto& axes = rule_.results[i].axes;
    Distribution::Cuts cuts(axes.size());
    for (int a = 0; a < static_cast<int>(axes.size()); ++a)
        if (const int f = factor_of_axis(axes, a); f >= 0)
            cuts[static_cast<size_t>(a)] = along_[static_cast<size_t>(f)];
    AxisSet partial = 0;
    Merge merge = Merge::none;
    for (int m = 0; m < mesh_.axes(); ++m) {
        const int f = chosen_[static_cast<size_t>(m)];
        Merge of_axis = Merge::none;
        if (f >= 0) of_axis = rule_.merge(f, i);
        for (size_t k = 0; f == kPasses && k < given_.size(); ++k)
            if (is_partial(k, m)) of_axis = given_[k].layout->merge();
        if (of_axis == Merge::none) continue;
        partial |= axis_bit(m);
        merge = of_axis;
    }
    return Distribution::of(mesh_, cuts, partial, merge);
}

std::vector<Interval> Division::cuts(int64_t position) const {
    std::vector<Interval> list;
    for (size_t f = 0; f < along_.size(); ++f) {
        Interval interval{0, rule_.factors[f].size};
        for (int m : along_[f]) {
            const Interval part = piece_of(interval.size(), mesh_.coordinate(position, m), mesh_.size(m));
            interval = {interval.begin + part.begin, interval.begin + part.end};
        }
        list.push_back(interval);
    }
    return list;
}

}  // namespace lunaria::parallel
