// Rules of matrix products: rows and columns pass, the axis that both operands have is summed.
#include <algorithm>

#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// x times a matrix, with a bias, which belongs to one piece of the sum.
class DenseRule final : public Rule {
  public:
    using Rule::Rule;

    int summed = -1;  // the factor

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (work.cuts[static_cast<size_t>(summed)].begin == 0) return Rule::compute(b, local, work);
        std::vector<Value> args(local.begin(), local.end());
        args[2] = Value();
        return b.emit(op(), args);
    }
};

}  // namespace

RulePtr product_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    if (rule->operands.size() != 2) return nullptr;
    Operand &a = rule->operands[0], &b = rule->operands[1];
    const int rows = a.shape.rank() > 1, columns = b.shape.rank() > 1;
    Result& r = rule->results[0];
    const int leading = r.type.shape.rank() - rows - columns;
    for (int k = 0; k < leading; ++k) {
        const int f = rule->add(Kind::pass, r.type.shape[k]);
        r.axes[static_cast<size_t>(k)] = {f};
        for (Operand* o : {&a, &b}) {
            const int own = k - leading + o->shape.rank() - 2;
            if (own >= 0 && o->shape[own] == r.type.shape[k]) o->axes[static_cast<size_t>(own)] = {f};
        }
    }
    if (rows) {
        const int axis = a.shape.rank() - 2;
        a.axes[static_cast<size_t>(axis)] =
            r.axes[static_cast<size_t>(leading)] = {rule->add(Kind::pass, a.shape[axis])};
    }
    const int summed = rule->add(Kind::reduce, a.shape.back(), Merge::sum);
    a.axes.back() = {summed};
    b.axes[b.axes.size() - 1 - static_cast<size_t>(columns)] = {summed};
    if (columns) b.axes.back() = r.axes.back() = {rule->add(Kind::pass, b.shape.back())};
    a.is_linear = b.is_linear = true;
    return rule;
}

RulePtr dense_rule(const Call& call, const Types& types, std::string_view words) {
    auto rule = std::make_unique<DenseRule>(call, types);
    Operand *x = rule->operand(0), *weight = rule->operand(1), *bias = rule->operand(2);
    if (!x || !weight || (call.has(2) && !bias)) return nullptr;
    const bool is_affine = words == "affine";
    const bool transposed = !is_affine || call.boolean(3), relu = is_affine && call.boolean(4);
    Result& r = rule->results[0];
    for (int k = 0; k + 1 < x->shape.rank(); ++k)
        x->axes[static_cast<size_t>(k)] = r.axes[static_cast<size_t>(k)] = {rule->add(Kind::pass, x->shape[k])};
    rule->summed = rule->add(relu ? Kind::spread : Kind::reduce, x->shape.back(), relu ? Merge::none : Merge::sum);
    const int made = rule->add(Kind::pass, r.type.shape.back());
    x->axes.back() = {rule->summed};
    r.axes.back() = {made};
    weight->axes = transposed ? std::vector<AxisFactors>{{made}, {rule->summed}}
                              : std::vector<AxisFactors>{{rule->summed}, {made}};
    if (bias && bias->shape.rank() == 1) bias->axes[0] = {made};
    x->is_linear = weight->is_linear = !bias && !relu;
    return rule;
}

// A square matrix and columns, or one column without an axis of its own.
RulePtr solved_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    Operand *a = rule->operand(0), *b = rule->operand(1);
    if (!a || !b) return nullptr;
    Result& r = rule->results[0];
    for (int k = 0; k < a->shape.rank() - 2; ++k)
        a->axes[static_cast<size_t>(k)] = b->axes[static_cast<size_t>(k)] =
            r.axes[static_cast<size_t>(k)] = {rule->add(Kind::pass, a->shape[k])};
    if (b->shape.rank() == a->shape.rank()) b->axes.back() = r.axes.back() = {rule->add(Kind::pass, b->shape.back())};
    b->is_linear = true;
    return rule;
}

}  // namespace lunaria::parallel
