// Rules of views: their own layout function tells where each element of a result comes from. It is asked once for each
// axis of the operand, with a stride of 1 along that axis and 0 along all others, so that the strides of a result are
// steps along that axis.
#include <algorithm>
#include <numeric>

#include "core/ops/layout.h"
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// Where the elements of one view lie along each axis of the operand: base + the sum of step * position.
struct ViewSource {
    Shape base;                // for each axis of the operand
    std::vector<Shape> steps;  // for each axis of the view, a step along each axis of the operand
};

class ViewRule final : public Rule {
  public:
    ViewRule(const Call& call, const Types& types) : Rule(call, types) {
        only_moves = true;
        operands[0].is_linear = true;
    }

    bool read_sources();  // false: it copies elements
    void read_slices();
    void flip(const Shape& flipped);
    void name_axes();

  protected:
    void place(Work& work) const override;
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override;

  private:
    const Shape& shape() const { return operands[0].shape; }
    bool passes(int axis) const;
    // The axis of the operand along which axis k of a view goes; -1: none, -2: several.
    int axis_of(const ViewSource& source, size_t k) const;
    bool is_simple(const ViewSource& source) const;
    Interval needed(size_t view, int axis, const Region& part) const;
    Value piece(Builder& b, std::span<const Value> local, const Work& work, size_t view) const;
    Value crossing(Builder& b, std::span<const Value> local, const ViewSource& source, const Region& part) const;

    std::vector<ViewSource> sources_;
};

bool ViewRule::read_sources() {
    const Call c = call();
    std::vector<Value> asked(args().begin(), args().end());
    for (const Result& r : results) sources_.push_back({{}, std::vector<Shape>(r.axes.size())});
    for (int axis = 0; axis < shape().rank(); ++axis) {
        const Tensor line = Tensor::empty(DType::boolean, {std::max<int64_t>(shape()[axis], 1)});
        Strides strides;
        for (int k = 0; k < shape().rank(); ++k) strides.push_back(k == axis);
        asked[0] = Value(line.view(shape(), strides));
        const Value views = op().view_fn(Call(op(), asked, c.dtype));
        for (size_t j = 0; j < results.size(); ++j) {
            const Tensor& view = views.is_list() ? views.items()[j].tensor() : views.tensor();
            if (!view.shares_storage(line)) return false;
            sources_[j].base.push_back(view.offset());
            for (int k = 0; k < view.rank(); ++k)
                sources_[j].steps[static_cast<size_t>(k)].push_back(view.dim(k) > 1 ? view.strides()[k] : 0);
        }
    }
    return true;
}

// A slice with negative steps copies.
void ViewRule::read_slices() {
    const Call c = call();
    sources_.push_back({{}, std::vector<Shape>(results[0].axes.size())});
    for (int axis = 0; axis < shape().rank(); ++axis) {
        Layout layout{shape(), {}};
        for (int k = 0; k < shape().rank(); ++k) layout.strides.push_back(k == axis);
        slice_layout(c, 1, layout);
        sources_[0].base.push_back(layout.offset);
        for (int k = 0; k < layout.shape.rank(); ++k)
            sources_[0].steps[static_cast<size_t>(k)].push_back(layout.shape[k] > 1 ? layout.strides[k] : 0);
    }
}

// A flip copies, since kernels rely on strides that are not negative.
void ViewRule::flip(const Shape& flipped) {
    sources_.push_back({{}, std::vector<Shape>(results[0].axes.size())});
    for (int axis = 0; axis < shape().rank(); ++axis) {
        const bool turned = std::ranges::count(flipped.dims(), axis) > 0;
        sources_[0].base.push_back(turned && shape()[axis] > 0 ? shape()[axis] - 1 : 0);
        for (int k = 0; k < shape().rank(); ++k)
            sources_[0].steps[static_cast<size_t>(k)].push_back(k != axis || shape()[axis] <= 1 ? 0 : turned ? -1 : 1);
    }
}

int ViewRule::axis_of(const ViewSource& source, size_t k) const {
    int found = -1;
    for (int axis = 0; axis < shape().rank(); ++axis)
        if (source.steps[k][axis] != 0) found = found == -1 ? axis : -2;
    return found;
}

// Whether all views have this axis of the operand as it is.
bool ViewRule::passes(int axis) const {
    for (size_t j = 0; j < results.size(); ++j) {
        const ViewSource& source = sources_[j];
        int users = 0;
        for (size_t k = 0; k < source.steps.size(); ++k) {
            if (source.steps[k][axis] == 0) continue;
            ++users;
            if (axis_of(source, k) != axis || source.steps[k][axis] != 1 ||
                results[j].type.shape[static_cast<int>(k)] != shape()[axis])
                return false;
        }
        if (users != 1) return false;
    }
    return true;
}

void ViewRule::name_axes() {
    for (int axis = 0; axis < shape().rank(); ++axis)
        if (shape()[axis] > 1 && passes(axis))
            operands[0].axes[static_cast<size_t>(axis)] = {add(Kind::pass, shape()[axis])};
    for (size_t j = 0; j < results.size(); ++j)
        for (size_t k = 0; k < results[j].axes.size(); ++k) {
            const int64_t size = results[j].type.shape[static_cast<int>(k)];
            if (size <= 1) continue;
            const int axis = axis_of(sources_[j], k);
            if (axis >= 0 && !operands[0].axes[static_cast<size_t>(axis)].empty())
                results[j].axes[k] = operands[0].axes[static_cast<size_t>(axis)];
            else
                results[j].axes[k] = {add(axis == -1 ? Kind::make : Kind::move, size)};
        }
}

Interval ViewRule::needed(size_t view, int axis, const Region& part) const {
    const ViewSource& source = sources_[view];
    int64_t first = source.base[axis], last = first;
    for (size_t k = 0; k < part.size(); ++k) {
        const int64_t step = source.steps[k][axis];
        (step < 0 ? first : last) += step * (part[k].end - 1);
        (step < 0 ? last : first) += step * part[k].begin;
    }
    return {first, last + 1};
}

void ViewRule::place(Work& work) const {
    Rule::place(work);
    for (int axis = 0; axis < shape().rank(); ++axis) {
        if (!operands[0].axes[static_cast<size_t>(axis)].empty()) continue;
        Interval hull{shape()[axis], 0};
        for (size_t j = 0; j < results.size(); ++j) {
            if (has_no_elements(work.results[j])) continue;
            const Interval own = needed(j, axis, work.results[j]);
            hull = {std::min(hull.begin, own.begin), std::max(hull.end, own.end)};
        }
        work.operands[0][static_cast<size_t>(axis)] = hull.empty() ? Interval{0, 0} : hull;
    }
}

bool ViewRule::is_simple(const ViewSource& source) const {
    for (int axis = 0; axis < shape().rank(); ++axis) {
        int users = 0;
        for (size_t k = 0; k < source.steps.size(); ++k) {
            if (axis_of(source, k) == -2) return false;
            users += source.steps[k][axis] != 0;
        }
        if (users > 1) return false;
    }
    return true;
}

// A diagonal, whose part of the operand begins where it does, or windows, of which there may be fewer or shorter ones.
Value ViewRule::crossing(Builder& b, std::span<const Value> local, const ViewSource& source, const Region& part) const {
    std::vector<Value> args(local.begin(), local.end());
    const bool is_diagonal = axis_of(source, part.size() - 1) == -2;
    args[is_diagonal ? 1 : 2] = is_diagonal ? Value(int64_t{0}) : Value(part.back().size());
    return b.emit(op(), args);
}

Value ViewRule::piece(Builder& b, std::span<const Value> local, const Work& work, size_t view) const {
    const ViewSource& source = sources_[view];
    const Region& part = work.results[view];
    const Shape sizes = shape_of(part);
    if (has_no_elements(part)) return b.call("full", {sizes, int64_t{0}, results[view].type.dtype}).value();
    if (!is_simple(source)) return crossing(b, local, source, part);
    // Take the elements along each axis of the operand, then put the axes in order, and make the others.
    const Region& given = work.operands[0];
    std::vector<int64_t> begin, end, step;
    Shape order, taken;
    for (int axis = 0; axis < shape().rank(); ++axis) {
        int64_t from = source.base[axis] - given[static_cast<size_t>(axis)].begin, count = 1, by = 1;
        for (size_t k = 0; k < part.size(); ++k)
            if (const int64_t s = source.steps[k][axis]) {
                from += s * part[k].begin;
                count = part[k].size();
                by = s;
            }
        const int64_t until = from + by * (count - 1) + (by > 0 ? 1 : -1);
        begin.push_back(from);
        end.push_back(until < 0 ? until - given[static_cast<size_t>(axis)].size() : until);
        step.push_back(by);
        taken.push_back(count);
    }
    Shape present, target;
    for (size_t k = 0; k < part.size(); ++k) {
        const int axis = axis_of(source, k);
        target.push_back(axis < 0 ? 1 : part[k].size());
        if (axis >= 0) order.push_back(axis);
    }
    for (int axis = 0; axis < shape().rank(); ++axis)
        if (std::ranges::count(order.dims(), axis) == 0) order.push_back(axis);
    Expr x = b.call("strided_slice", {Expr(b, local[0]), Value::ints(begin), Value::ints(end), Value::ints(step)});
    bool sorted = true;
    for (int k = 0; k < order.rank(); ++k) sorted = sorted && order[k] == k;
    if (!sorted) x = x.transpose(order);
    if (!(x.shape() == target)) x = x.reshape(target);
    if (!(target == sizes)) x = x.broadcast_to(sizes);
    return x.value();
}

Value ViewRule::compute(Builder& b, std::span<const Value> local, const Work& work) const {
    if (results.size() == 1) return piece(b, local, work, 0);
    std::vector<Value> pieces;
    for (size_t j = 0; j < results.size(); ++j) pieces.push_back(piece(b, local, work, j));
    return Value::list(std::move(pieces));
}

class ReshapeRule final : public Rule {
  public:
    ReshapeRule(const Call& call, const Types& types) : Rule(call, types) {
        only_moves = true;
        operands[0].is_linear = true;
        pair_axes();
    }

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        return Expr(b, local[0]).reshape(shape_of(work.results[0])).value();
    }

  private:
    void pair_axes();
};

// Both shapes are walked from the front. What is left of an axis on one side and of one on the other have a common
// divisor: that is a factor of both. A factor can be cut if it is the first of its axis on both sides; where the rests
// have no common divisor, all until the products are equal again stays whole.
void ReshapeRule::pair_axes() {
    const Shape &from = operands[0].shape, &to = results[0].type.shape;
    if (from.size() == 0) return;
    int i = 0, j = 0;
    int64_t left = 1, right = 1;  // what is left of axes i - 1 and j - 1
    bool first_left = false, first_right = false;
    while (true) {
        while (left == 1 && i < from.rank()) left = from[i++], first_left = true;
        while (right == 1 && j < to.rank()) right = to[j++], first_right = true;
        if (left == 1 || right == 1) return;
        const int64_t common = std::gcd(left, right);
        if (common == 1 || (common != left && common != right && !(first_left && first_right))) {
            // No common rows: skip to the next pair of axes that begin together.
            AxisFactors &started = operands[0].axes[static_cast<size_t>(i - 1)],
                        &other = results[0].axes[static_cast<size_t>(j - 1)];
            if (!first_left) started.push_back(add(Kind::whole, left));
            if (!first_right) other.push_back(add(Kind::whole, right));
            int64_t a = left, c = right;
            while (a != c) {
                if (a < c)
                    a *= from[i++];
                else
                    c *= to[j++];
            }
            left = right = 1;
            continue;
        }
        const int f = add(first_left && first_right ? Kind::pass : Kind::whole, common);
        operands[0].axes[static_cast<size_t>(i - 1)].push_back(f);
        results[0].axes[static_cast<size_t>(j - 1)].push_back(f);
        left /= common;
        right /= common;
        first_left = first_right = false;
    }
}

}  // namespace

RulePtr view_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<ViewRule>(call, types);
    if (rule->operands.empty() || rule->operands[0].argument != 0) return nullptr;
    if (!rule->read_sources()) return nullptr;
    rule->name_axes();
    return rule;
}

RulePtr slice_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<ViewRule>(call, types);
    rule->read_slices();
    rule->name_axes();
    return rule;
}

RulePtr flip_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<ViewRule>(call, types);
    // No axes means none here, not all of them.
    rule->flip(call.ints(1).empty() ? Shape() : call.axes(1, 0));
    rule->name_axes();
    return rule;
}

RulePtr reshape_rule(const Call& call, const Types& types, std::string_view) {
    return std::make_unique<ReshapeRule>(call, types);
}

}  // namespace lunaria::parallel
