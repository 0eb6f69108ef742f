// Rules of operators that join tensors or replace a part of one.
#include <algorithm>

#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

class ConcatRule final : public Rule {
  public:
    ConcatRule(const Call& call, const Types& types) : Rule(call, types) {
        is_jointly_linear = only_moves = true;
        axis_ = normal_axis(call.name(), call.integer(1), types[0].shape.rank());
    }

    // All axes of the result; the operands have all but the one along which they are joined.
    void name_axes() {
        const Shape& whole = results[0].type.shape;
        for (int k = 0; k < whole.rank(); ++k) {
            const int f = add(k == axis_ ? Kind::move : Kind::pass, whole[k]);
            results[0].axes[static_cast<size_t>(k)] = {f};
            for (Operand& o : operands)
                if (k != axis_) o.axes[static_cast<size_t>(k)] = {f};
        }
    }
    bool covers() const {
        return std::ranges::all_of(
            operands, [&](const Operand& o) { return o.item >= 0 && o.shape.rank() == results[0].type.shape.rank(); });
    }

  protected:
    void place(Work& work) const override {
        Rule::place(work);
        const auto axis = static_cast<size_t>(axis_);
        const Interval part = work.results[0][axis];
        int64_t start = 0;
        for (size_t i = 0; i < operands.size(); ++i) {
            const int64_t size = operands[i].shape[axis_];
            Interval own{std::clamp<int64_t>(part.begin - start, 0, size),
                         std::clamp<int64_t>(part.end - start, 0, size)};
            work.operands[i][axis] = own.empty() ? Interval{0, 0} : own;
            start += size;
        }
    }
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        std::vector<Expr> present;
        for (size_t i = 0; i < operands.size(); ++i)
            if (!has_no_elements(work.operands[i])) present.emplace_back(b, local[0].items()[i]);
        return b.call("concat", {b.list(present), int64_t{axis_}}).value();
    }

  private:
    int axis_;
};

}  // namespace

RulePtr concat_rule(const Call& call, const Types& types, std::string_view) {
    if (!call.args[0].is_list()) return nullptr;
    for (const Value& item : call.args[0].items())
        if (type_of(item).shape.rank() != types[0].shape.rank()) return nullptr;
    auto rule = std::make_unique<ConcatRule>(call, types);
    if (!rule->covers()) return nullptr;
    rule->name_axes();
    return rule;
}

// The axes that the replaced part has as they are pass; the view of that part tells them.
RulePtr replaced_part_rule(const Call& call, const Types& types, std::string_view words) {
    const Op* view = registry().find(words);
    std::vector<Value> args(call.args.begin(), call.args.end());
    args.erase(args.begin() + 1);
    const Call part(*view, args, call.dtype);
    const Types shapes = view->infer_fn(part);
    const RulePtr taken = view_rule(part, shapes, {});
    auto rule = std::make_unique<Rule>(call, types);
    Operand *x = rule->operand(0), *value = rule->operand(1);
    if (!taken || !x) return nullptr;
    for (size_t k = 0; k < x->axes.size(); ++k) {
        const AxisFactors& axis = taken->operands[0].axes[k];
        if (axis.empty()) continue;
        const AxisFactors own = {rule->add(Kind::pass, x->shape[static_cast<int>(k)])};
        x->axes[k] = rule->results[0].axes[k] = own;
        std::vector<AxisFactors> of_part(taken->results[0].axes.size());
        for (size_t m = 0; m < of_part.size(); ++m)
            if (taken->results[0].axes[m] == axis) of_part[m] = own;
        if (!value || value->shape.rank() > shapes[0].shape.rank()) continue;
        const int from = shapes[0].shape.rank() - value->shape.rank();
        for (int m = 0; m < value->shape.rank(); ++m)
            if (!of_part[static_cast<size_t>(m + from)].empty() && value->shape[m] == shapes[0].shape[m + from])
                value->axes[static_cast<size_t>(m)] = own;
    }
    rule->is_jointly_linear = true;
    return rule;
}

}  // namespace lunaria::parallel
