// Rules of normalisations: samples or channels pass, the axes that statistics are taken of are reduced and used
// afterwards.
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

// The gradients of a layer norm by weight and bias are sums over its rows.
class NormRule final : public Rule {
  public:
    using Rule::Rule;
};

class GroupNormRule final : public Rule {
  public:
    GroupNormRule(const Call& call, const Types& types, size_t groups) : Rule(call, types), groups_(groups) {}

    int group = -1;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        std::vector<Value> args(local.begin(), local.end());
        args[groups_] = Value(work.cuts[static_cast<size_t>(group)].size());
        return b.emit(op(), args);
    }

  private:
    size_t groups_;
};

void set_axis(std::vector<AxisFactors>& axes, int axis, const AxisFactors& factors) {
    axes[static_cast<size_t>(axis)] = factors;
}

// The last axes of an operand or result with fewer axes, such as a weight.
void align_last(std::vector<AxisFactors>& axes, const std::vector<AxisFactors>& whole) {
    for (size_t k = 0; k < axes.size(); ++k) axes[axes.size() - 1 - k] = whole[whole.size() - 1 - k];
}

}  // namespace

// layer_norm(x, normalized_shape, weight, bias, eps) and rms_norm(x, gamma, epsilon) -> (y, rstd).
RulePtr layer_norm_rule(const Call& call, const Types& types, std::string_view words) {
    auto rule = std::make_unique<NormRule>(call, types);
    Operand* x = rule->operand(0);
    if (!x) return nullptr;
    const bool rms = words == "rms";
    const int rank = x->shape.rank();
    const int count = rms ? call.rank(1) : static_cast<int>(call.ints(1).size());
    for (int k = 0; k < rank; ++k) {
        const int f = rule->add(k < rank - count ? Kind::pass : Kind::spread, x->shape[k]);
        set_axis(x->axes, k, {f});
        set_axis(rule->results[0].axes, k, {f});
        if (rms && k < rank - count) set_axis(rule->results[1].axes, k, {f});
    }
    for (Operand& o : rule->operands)
        if (o.argument != 0) align_last(o.axes, x->axes);
    return rule;
}

// layer_norm_grad(dy, x, weight, count, eps) -> (dx, dweight, dbias)
RulePtr layer_norm_grad_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<NormRule>(call, types);
    Operand *dy = rule->operand(0), *x = rule->operand(1), *weight = rule->operand(2);
    if (!dy || !x || (call.has(2) && !weight)) return nullptr;
    const int rank = x->shape.rank(), rows = rank - static_cast<int>(call.integer(3));
    for (int k = 0; k < rank; ++k) {
        const int f = rule->add(k < rows ? Kind::pass : Kind::spread, x->shape[k], k < rows ? Merge::sum : Merge::none);
        for (auto* axes : {&dy->axes, &x->axes, &rule->results[0].axes}) set_axis(*axes, k, {f});
    }
    if (weight) align_last(weight->axes, x->axes);
    for (size_t j : {1, 2}) align_last(rule->results[j].axes, x->axes);
    return rule;
}

// batch_norm_train(x, weight, bias, eps) -> (y, mean, var) and batch_norm_grad(dy, x, weight, eps) -> (dx, dweight,
// dbias): channels are axis 1.
RulePtr batch_norm_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<NormRule>(call, types);
    const Shape& shape = types[0].shape;
    for (int k = 0; k < shape.rank(); ++k) {
        const int f = rule->add(k == 1 ? Kind::pass : Kind::spread, shape[k]);
        set_axis(rule->results[0].axes, k, {f});
        for (Operand& o : rule->operands) {
            if (o.shape.rank() == shape.rank())
                set_axis(o.axes, k, {f});
            else if (k == 1)
                set_axis(o.axes, 0, {f});
        }
        if (k == 1)
            for (size_t j : {1, 2}) set_axis(rule->results[j].axes, 0, {f});
    }
    return rule;
}

// group_norm(x, num_groups, weight, bias, eps) and group_norm_grad(dy, x, weight, num_groups, eps): whole groups of
// channels pass.
RulePtr group_norm_rule(const Call& call, const Types& types, std::string_view words) {
    const bool grad = words == "grad";
    const size_t at = grad ? 3 : 1;
    auto rule = std::make_unique<GroupNormRule>(call, types, at);
    const Shape& shape = types[0].shape;
    const int64_t groups = call.integer(at);
    const int sample = rule->add(Kind::pass, shape[0], grad ? Merge::sum : Merge::none);
    rule->group = rule->add(Kind::pass, groups);
    const int inner = rule->add(Kind::whole, groups > 0 ? shape[1] / groups : 0);
    const AxisFactors channels = {rule->group, inner};
    for (Operand& o : rule->operands) {
        if (o.shape.rank() == shape.rank()) {
            set_axis(o.axes, 0, {sample});
            set_axis(o.axes, 1, channels);
        } else {
            set_axis(o.axes, 0, channels);
        }
    }
    set_axis(rule->results[0].axes, 0, {sample});
    set_axis(rule->results[0].axes, 1, channels);
    for (size_t j = 1; j < rule->results.size(); ++j) set_axis(rule->results[j].axes, 0, channels);
    return rule;
}

}  // namespace lunaria::parallel
