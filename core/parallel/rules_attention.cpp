// Rules of attention: samples and heads pass, queries too, whose first place in the whole shifts the causal mask.
#include "core/parallel/rule_families.h"

namespace lunaria::parallel {

namespace {

class AttentionRule final : public Rule {
  public:
    AttentionRule(const Call& call, const Types& types, size_t shift) : Rule(call, types), shift_(shift) {}

    int places = -1;  // the factor of the queries' places

  protected:
    Value compute(Builder& b, std::span<const Value> local, const Work& work) const override {
        std::vector<Value> args(local.begin(), local.end());
        args[shift_] = Value(args[shift_].integer() + work.cuts[static_cast<size_t>(places)].begin);
        return b.emit(op(), args);
    }

  private:
    size_t shift_;
};

using Axes = std::vector<AxisFactors>;

}  // namespace

// attention(query, key, value, scale, causal, shift) and attention_grad(dout, query, …) -> (dquery, dkey, dvalue).
RulePtr attention_rule(const Call& call, const Types& types, std::string_view words) {
    const bool grad = words == "grad";
    const size_t first = grad ? 1 : 0;
    auto rule = std::make_unique<AttentionRule>(call, types, first + 5);
    if (rule->operands.size() != first + 3) return nullptr;
    const Shape query = call.shape(first), value = call.shape(first + 2);
    const int batch = rule->add(Kind::pass, query[0]), head = rule->add(Kind::pass, query[1]);
    rule->places = rule->add(Kind::pass, query[2], grad ? Merge::sum : Merge::none);
    const int size = rule->add(Kind::spread, query[3]), keys = rule->add(Kind::spread, value[2]);
    const int made = rule->add(grad ? Kind::spread : Kind::pass, value[3]);
    const Axes of_query = {{batch}, {head}, {rule->places}, {size}}, of_key = {{batch}, {head}, {keys}, {size}},
               of_value = {{batch}, {head}, {keys}, {made}}, of_result = {{batch}, {head}, {rule->places}, {made}};
    rule->operands[first].axes = of_query;
    rule->operands[first + 1].axes = of_key;
    rule->operands[first + 2].axes = of_value;
    if (!grad) {
        rule->results[0].axes = of_result;
        rule->operands[2].is_linear = true;
        return rule;
    }
    rule->operands[0].axes = of_result;
    rule->results[0].axes = of_query;
    rule->results[1].axes = of_key;
    rule->results[2].axes = of_value;
    return rule;
}

// cache_attention(query, key, value, position, scale): each head of the keys serves a group of heads of the query.
RulePtr cache_attention_rule(const Call& call, const Types& types, std::string_view) {
    auto rule = std::make_unique<Rule>(call, types);
    Operand *query = rule->operand(0), *key = rule->operand(1), *value = rule->operand(2);
    if (!query || !key || !value || key->shape[1] == 0) return nullptr;
    const int batch = rule->add(Kind::pass, query->shape[0]), head = rule->add(Kind::pass, key->shape[1]);
    const int group = rule->add(Kind::whole, query->shape[1] / key->shape[1]);
    const int made = rule->add(Kind::pass, value->shape[3]);
    query->axes = {{batch}, {head, group}, {}, {}};
    key->axes = {{batch}, {head}, {}, {}};
    value->axes = {{batch}, {head}, {}, {made}};
    rule->results[0].axes = {{batch}, {head, group}, {}, {made}};
    value->is_linear = true;
    return rule;
}

}  // namespace lunaria::parallel
