// Reverse rules of arithmetic on plain numbers: those of the operators with the same meaning, except where the rules
// here suit numbers better. All are written like gradient rules of operators. Slopes that do not exist or are infinite
// at a point are those of the operators: 0 for sqrt at 0, half for both sides of max where they are equal.
#include "core/ops/elementwise.h"
#include "jit/autodiff/pullback.h"
#include "jit/autodiff/tidy.h"
#include "jit/language_rules.h"
#include "jit/number.h"

namespace lunaria::autodiff {

namespace {

Expr is_zero(const Expr& a) { return call("equal", {a, 0.0}); }
// (1 - a)(1 + a) rather than 1 - a*a, which cancels where |a| is close to 1.
Expr circle(const Expr& a) { return (1.0 - a) * (1.0 + a); }

Grads extremum(const GradRule& g, const Expr& a_wins) {
    Expr a_share = a_wins + call("equal", {g.in(0), g.in(1)}) / 2.0;
    return {g.dout * a_share, g.dout * (1.0 - a_share)};
}

}  // namespace

namespace rules {

Grads num_div(const GradRule& g) { return {g.dout / g.in(1), -(g.dout * g.out / g.in(1))}; }
Grads num_mod(const GradRule& g) { return {g.dout, -(g.dout * fn("floor", g.in(0) / g.in(1)))}; }
Grads num_fmod(const GradRule& g) { return {g.dout, -(g.dout * fn("trunc", g.in(0) / g.in(1)))}; }

// Both slopes stay finite even if a part of the formula is not: a^-1 at a = 0 times an exponent of 0, log 0 times 0.
Grads num_pow(const GradRule& g) {
    Expr a = g.in(0), b = g.in(1), b_zero = is_zero(b), a_zero = is_zero(a);
    Expr slope = b * lunaria::call("pow", {a, where(b_zero, 1.0, b) - 1.0});
    Expr log = fn("log", where(a_zero, 1.0, a));
    return {g.dout * where(b_zero, 0.0, slope), g.dout * where(a_zero, 0.0, g.out * log)};
}

Grads num_max(const GradRule& g) { return extremum(g, lunaria::call("less", {g.in(1), g.in(0)})); }
Grads num_min(const GradRule& g) { return extremum(g, lunaria::call("less", {g.in(0), g.in(1)})); }

Grads num_log_base(const GradRule& g) {
    Expr scaled = g.dout / fn("log", g.in(1));
    return {scaled / g.in(0), -(scaled * g.out / g.in(1))};
}
Grads num_asin(const GradRule& g) { return {g.dout / fn("sqrt", circle(g.in(0)))}; }
Grads num_acos(const GradRule& g) { return {-(g.dout / fn("sqrt", circle(g.in(0))))}; }
Grads num_atan(const GradRule& g) { return {g.dout / (1.0 + g.in(0) * g.in(0))}; }
Grads num_atan2(const GradRule& g) {
    Expr y = g.in(0), x = g.in(1), square = y * y + x * x;
    return {g.dout * x / square, -(g.dout * y / square)};
}
Grads num_tanh(const GradRule& g) { return {g.dout * circle(g.out)}; }
Grads num_select(const GradRule& g) { return {{}, where(g.in(0), g.dout, 0.0), where(g.in(0), 0.0, g.dout)}; }

}  // namespace rules

namespace {

// Emits primitives on numbers in place of operators.
class NumberBuilder final : public Builder {
  public:
    explicit NumberBuilder(ir::Graph& graph) : graph_(graph) {}
    static ir::NodeType type() { return ir::NodeType::of({DType::f64, {}}); }

    Value emit(const Op& op, std::span<const Value> args) override {
        const Op& primitive = lua::on_numbers(op);
        std::vector<Value> operands(args.begin(),
                                    args.begin() + static_cast<ptrdiff_t>(primitive.signature.params.size()));
        return Value(graph_.add_call(primitive, std::move(operands), type()));
    }
    Value item(const Value& results, size_t) override { return results; }
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

  private:
    ir::Graph& graph_;
};

Pullback trace(const Op& primitive, uint64_t active) {
    const size_t count = primitive.signature.params.size();
    ir::Graph raw{std::string(primitive.name())};
    NumberBuilder builder(raw);
    const auto parameter = [&](std::string_view name) {
        return Value(raw.add_parameter(std::string(name), NumberBuilder::type()));
    };
    std::vector<Value> operands;
    for (const Param& p : primitive.signature.params) operands.push_back(parameter(p.name));
    const Expr out(builder, parameter("out")), dout(builder, parameter("dout"));

    std::vector<Value> cotangents(count);
    if (primitive.grad_fn) {
        const Call call(primitive, operands, DType::f64);
        const Grads made = primitive.grad_fn(GradRule(call, builder, {&out, 1}, {&dout, 1}));
        for (size_t i = 0; i < made.size(); ++i)
            if (active >> i & 1) cotangents[i] = made[i].value();
    }
    raw.result = Value::list(std::move(cotangents));
    // The rules were given a type, but the values at run time are numbers of either kind.
    for (const auto& node : raw.nodes()) node->type = {};

    Pullback pullback;
    std::vector<bool> keep(count + 2);
    keep.back() = true;
    std::vector<size_t> kept;
    pullback.graph = tidy(raw, {}, keep, kept);
    kept.pop_back();
    for (size_t position : kept) {
        pullback.saved.push_back(static_cast<int>(position));
        pullback.saved_item.push_back(-1);
    }
    return pullback;
}

}  // namespace

std::shared_ptr<const Pullback> number_pullback(const Op& primitive, uint64_t active) {
    if (!lua::is_number_primitive(primitive)) throw state_error(primitive.name(), "is not a primitive on numbers");
    // By the primitive's id and three bits of activity. This table and the runs share the graphs.
    static thread_local std::vector<std::shared_ptr<const Pullback>> rules(lua::language().all().size() * 8);
    const lua::Facts& facts = lua::facts(primitive);
    const Op& op = facts.is_arithmetic() ? lua::on_numbers(*facts.on_tensors) : primitive;
    active &= (uint64_t{1} << op.signature.params.size()) - 1;
    auto& rule = rules[static_cast<size_t>(op.id) * 8 + active];
    if (!rule) rule = std::make_shared<const Pullback>(trace(op, active));
    return rule;
}

}  // namespace lunaria::autodiff
