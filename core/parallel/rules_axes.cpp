// Rules of operators that work element by element, reduce axes, or work along some axes while all others pass.
#include <algorithm>

#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// One factor for each axis of a result.
void pass_all(Rule& rule, Result& result) {
    for (int k = 0; k < result.type.shape.rank(); ++k)
        result.axes[static_cast<size_t>(k)] = {rule.add(Kind::pass, result.type.shape[k])};
}

// The parameter that names axes.
size_t axes_of(const Call& call) { return static_cast<size_t>(call.op.signature.find("axis")); }

bool contains(const Shape& axes, int axis) { return std::ranges::count(axes.dims(), axis) > 0; }

class ReductionRule final : public Rule {
  public:
    using Rule::Rule;

    bool is_mean = false;

  protected:
    // A mean of pieces of different lengths is the sum of all divided by the length of the whole. Halves hold neither
    // the sum nor the length.
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (!is_mean || !is_cut(work)) return Rule::compute(b, local, work);
        const Call c = call();
        double length = 1;
        for (int64_t axis : c.axes(axes_of(c), 0))
            length *= static_cast<double>(operands[0].shape[static_cast<int>(axis)]);
        const DType dtype = results[0].type.dtype;
        const Expr x = Expr(b, local[0]).cast(is_half(dtype) ? DType::f32 : dtype);
        return (b.call("sum", {x, local[1], local[2]}) / length).cast(dtype).value();
    }

  private:
    bool is_cut(const Work& work) const {
        for (size_t f = 0; f < factors.size(); ++f)
            if (factors[f].kind == Kind::reduce && work.cuts[f].size() != factors[f].size) return true;
        return false;
    }
};

// Row i of a piece is row i + row of the whole, and its diagonal lies elsewhere.
class TriangleRule final : public Rule {
  public:
    using Rule::Rule;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        const Region& part = work.operands[0];
        const int64_t row = part[part.size() - 2].begin, column = part[part.size() - 1].begin;
        std::vector<Value> args(local.begin(), local.end());
        args[1] = Value(args[1].integer() + row - column);
        return b.emit(op(), args);
    }
};

}  // namespace

RulePtr broadcast_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    pass_all(*rule, rule->results[0]);
    for (size_t j = 1; j < rule->results.size(); ++j) {
        if (!(types[j].shape == types[0].shape)) return nullptr;
        rule->results[j].axes = rule->results[0].axes;
    }
    for (Operand& o : rule->operands) {
        if (o.shape.rank() > types[0].shape.rank()) return nullptr;
        align(o, rule->results[0].axes, types[0].shape);
    }
    return rule;
}

RulePtr reduction_rule(const Call& call, const Types& types, std::string_view words) {
    auto rule = std::make_unique<ReductionRule>(call, types);
    if (rule->operands.empty() || rule->operands[0].argument != 0) return nullptr;
    Operand& x = rule->operands[0];
    rule->is_mean = words == "mean";
    // A result beside its place cannot be merged, only the result alone.
    const Merge merge = types.size() > 1 ? Merge::none
                        : rule->is_mean  ? Merge::sum
                                         : parse_merge(words).value_or(Merge::none);
    const bool spreads = merge == Merge::none && has_spread_expansion(call.op);
    const Shape axes = call.axes(axes_of(call), 0);
    const bool keeps = types[0].shape.rank() == x.shape.rank();
    size_t at = 0;
    for (int k = 0; k < x.shape.rank(); ++k) {
        const bool reduced = contains(axes, k);
        const Kind kind = !reduced ? Kind::pass : merge != Merge::none ? Kind::reduce : Kind::spread;
        if (!reduced || merge != Merge::none || spreads)
            x.axes[static_cast<size_t>(k)] = {rule->add(kind, x.shape[k], reduced ? merge : Merge::none)};
        if (!reduced)
            for (Result& r : rule->results) r.axes[at] = x.axes[static_cast<size_t>(k)];
        if (!reduced || keeps) ++at;
    }
    return rule;
}

RulePtr along_rule(const Call& call, const Types& types, std::string_view) {
    if (call.args[0].is_list() || call.rank(0) == 0) return nullptr;
    auto rule = std::make_unique<Rule>(call, types);
    if (rule->operands.empty()) return nullptr;
    const size_t at = axes_of(call);
    const Shape axes =
        call.args[at].is_list() ? call.axes(at, 0) : Shape{call.has(at) ? call.axis(at, 0) : call.rank(0) - 1};
    const Shape whole = rule->operands[0].shape;
    const Kind kind = call.op.row_fn && has_spread_expansion(call.op) ? Kind::spread : Kind::whole;
    for (int k = 0; k < whole.rank(); ++k) {
        const bool along = contains(axes, k);
        if (along && kind != Kind::spread) continue;
        auto fits = [&](const Shape& shape, int axis) { return shape.rank() > axis && shape[axis] == whole[k]; };
        // Where a result lacks the axis that the operator works along, the axes behind it move up.
        auto axis_in = [&](const Shape& shape) {
            return shape.rank() == whole.rank() - 1 && axes.rank() == 1 && axes[0] < k ? k - 1 : k;
        };
        const bool all_fit =
            std::ranges::all_of(rule->operands,
                                [&](const Operand& o) {
                                    return o.shape.rank() == 0 || (o.shape.rank() == whole.rank() && fits(o.shape, k));
                                }) &&
            std::ranges::all_of(rule->results,
                                [&](const Result& r) { return fits(r.type.shape, axis_in(r.type.shape)); });
        if (!all_fit) continue;
        const int f = rule->add(along ? kind : Kind::pass, whole[k]);
        for (Operand& o : rule->operands)
            if (o.shape.rank() > 0) o.axes[static_cast<size_t>(k)] = {f};
        for (Result& r : rule->results) r.axes[static_cast<size_t>(axis_in(r.type.shape))] = {f};
    }
    return rule;
}

RulePtr last_axes_rule(const Call& call, const Types& types, int whole) {
    auto rule = std::make_unique<Rule>(call, types);
    if (rule->operands.empty()) return nullptr;
    const Shape& first = rule->operands[0].shape;
    for (int k = 0; k < first.rank() - whole; ++k) {
        auto fits = [&](const Shape& shape) { return shape.rank() > k && shape[k] == first[k]; };
        if (!std::ranges::all_of(rule->operands, [&](const Operand& o) { return fits(o.shape); }) ||
            !std::ranges::all_of(rule->results, [&](const Result& r) { return fits(r.type.shape); }))
            return nullptr;
        const int f = rule->add(Kind::pass, first[k]);
        for (Operand& o : rule->operands) o.axes[static_cast<size_t>(k)] = {f};
        for (Result& r : rule->results) r.axes[static_cast<size_t>(k)] = {f};
    }
    return rule;
}

// Item i of each list belongs together, and items of one shape are computed element by element.
RulePtr items_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    std::vector<const Operand*> first;  // for each item
    for (Operand& o : rule->operands) {
        if (o.item < 0) return nullptr;
        const auto item = static_cast<size_t>(o.item);
        if (first.size() <= item) first.resize(item + 1);
        if (first[item] && first[item]->shape == o.shape) {
            o.axes = first[item]->axes;
            continue;
        }
        if (first[item]) return nullptr;
        for (int k = 0; k < o.shape.rank(); ++k) o.axes[static_cast<size_t>(k)] = {rule->add(Kind::pass, o.shape[k])};
        first[item] = &o;
    }
    return rule;
}

RulePtr triangle_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<TriangleRule>(call, types);
    pass_all(*rule, rule->results[0]);
    rule->operands[0].axes = rule->results[0].axes;
    return rule;
}

// searchsorted(sorted_sequence, values): each value is looked up alone.
RulePtr lookup_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    Operand *sorted = rule->operand(0), *values = rule->operand(1);
    if (!sorted || !values) return nullptr;
    for (int k = 0; k < values->shape.rank(); ++k) {
        const AxisFactors axis = {rule->add(Kind::pass, values->shape[k])};
        values->axes[static_cast<size_t>(k)] = rule->results[0].axes[static_cast<size_t>(k)] = axis;
        if (sorted->shape.rank() > 1 && k + 1 < values->shape.rank()) sorted->axes[static_cast<size_t>(k)] = axis;
    }
    return rule;
}

// reverse_sequence(x, seq_lengths, seq_dim, batch_dim)
RulePtr reversal_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    Operand *x = rule->operand(0), *lengths = rule->operand(1);
    if (!x || !lengths) return nullptr;
    const int sequence = call.axis(2, 0), batch = call.axis(3, 0);
    for (int k = 0; k < x->shape.rank(); ++k) {
        if (k == sequence) continue;
        const AxisFactors axis = {rule->add(Kind::pass, x->shape[k])};
        x->axes[static_cast<size_t>(k)] = rule->results[0].axes[static_cast<size_t>(k)] = axis;
        if (k == batch) lengths->axes[0] = axis;
    }
    return rule;
}

// histc(x, bins, min, max): counts of pieces are added up, unless the range is that of all elements.
RulePtr histogram_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    if (!rule->operand(0) || call.number(2) >= call.number(3)) return nullptr;
    Operand& x = rule->operands[0];
    for (int k = 0; k < x.shape.rank(); ++k)
        x.axes[static_cast<size_t>(k)] = {rule->add(Kind::reduce, x.shape[k], Merge::sum)};
    return rule;
}

}  // namespace lunaria::parallel
