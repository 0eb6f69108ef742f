// Rules of operators whose results follow from attributes and random numbers. A piece is made without communication:
// constants in the size of the piece, everything else by making the whole and keeping the part, which gives the same
// numbers on any number of ranks.
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

Value part_of(Builder& b, const Value& whole, const Region& part, const Shape& shape) {
    Expr y(b, whole);
    for (size_t k = 0; k < part.size(); ++k)
        if (part[k].size() != shape[static_cast<int>(k)])
            y = b.call("narrow", {y, static_cast<int64_t>(k), part[k].begin, part[k].size()});
    return y.value();
}

class MadeRule final : public Rule {
  public:
    using Rule::Rule;

    bool is_sized = false;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        if (is_sized) {
            std::vector<Value> args(local.begin(), local.end());
            args[0] = Value::ints(shape_of(work.results[0]));
            return b.emit(op(), args);
        }
        const Value whole = b.emit(op(), local);
        if (results.size() == 1) return part_of(b, whole, work.results[0], results[0].type.shape);
        std::vector<Value> parts;
        for (size_t j = 0; j < results.size(); ++j)
            parts.push_back(part_of(b, b.item(whole, j), work.results[j], results[j].type.shape));
        return Value::list(std::move(parts));
    }
};

// The mask depends on the place in the whole alone; a piece has the part of it that belongs to its elements.
class DropoutRule final : public Rule {
  public:
    using Rule::Rule;

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        const DType dtype = results[0].type.dtype;
        const Expr ones = b.call("full", {operands[0].shape, int64_t{1}, dtype});
        std::vector<Value> args(local.begin(), local.end());
        args[0] = ones.value();
        const Value drawn = b.emit(op(), args);
        const Expr mask(b, part_of(b, b.item(drawn, 1), work.results[0], operands[0].shape));
        const Expr x(b, local[0]);
        const Expr kept = b.call("where", {mask, x / (1 - local[1].number()), b.zeros_like(x)});
        return Value::list({kept.value(), mask.value()});
    }
};

}  // namespace

RulePtr dropout_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<DropoutRule>(call, types);
    if (rule->operands.size() != 1) return nullptr;
    for (int k = 0; k < types[0].shape.rank(); ++k) {
        const int f = rule->add(Kind::pass, types[0].shape[k]);
        rule->operands[0].axes[static_cast<size_t>(k)] = {f};
        for (Result& r : rule->results) r.axes[static_cast<size_t>(k)] = {f};
    }
    return rule;
}

RulePtr made_rule(const Call& call, const Types& types, std::string_view words) {
    auto rule = std::make_unique<MadeRule>(call, types);
    rule->is_sized = words == "sized";
    for (Result& r : rule->results)
        for (int k = 0; k < r.type.shape.rank(); ++k)
            r.axes[static_cast<size_t>(k)] = {rule->add(Kind::make, r.type.shape[k])};
    return rule;
}

}  // namespace lunaria::parallel
