// Reverse rules of arithmetic on plain numbers. Slopes that do not exist or are infinite at a point follow the tensor
// operators: 0 for sqrt at 0, half for both sides of max where they are equal.
#include <numbers>

#include "jit/autodiff/pullback.h"
#include "jit/autodiff/tidy.h"
#include "jit/language.h"
#include "jit/number.h"

namespace lunaria::autodiff {

namespace {

// An expression over number primitives in a graph under construction; empty: no cotangent.
struct Num {
    ir::Graph* graph = nullptr;
    Value value;
    explicit operator bool() const { return graph != nullptr; }
};

Num call(const char* name, std::initializer_list<Num> operands) {
    ir::Graph* graph = nullptr;
    std::vector<Value> args;
    for (const Num& x : operands) {
        if (x.graph) graph = x.graph;
        args.push_back(x.value);
    }
    return {graph, Value(graph->add_call(lua::primitive(name), std::move(args), {}))};
}

Num constant(double c) { return {nullptr, Value(c)}; }
Num operator+(const Num& a, const Num& b) { return call("num_add", {a, b}); }
Num operator-(const Num& a, const Num& b) { return call("num_sub", {a, b}); }
Num operator*(const Num& a, const Num& b) { return call("num_mul", {a, b}); }
Num operator/(const Num& a, const Num& b) { return call("num_div", {a, b}); }
Num operator-(const Num& a) { return call("num_neg", {a}); }
Num operator+(double a, const Num& b) { return constant(a) + b; }
Num operator-(double a, const Num& b) { return constant(a) - b; }
Num operator-(const Num& a, double b) { return a - constant(b); }
Num operator*(const Num& a, double b) { return a * constant(b); }
Num operator/(const Num& a, double b) { return a / constant(b); }
Num select(const Num& condition, const Num& a, const Num& b) { return call("num_select", {condition, a, b}); }
Num is_zero(const Num& a) { return call("num_equal", {a, constant(0)}); }

struct Rule {
    Num a, b, c, out, dout;  // operands (as many as there are), result and its cotangent
};
using Cotangents = std::vector<Num>;
using RuleFn = Cotangents (*)(const Rule&);

Cotangents add(const Rule& r) { return {r.dout, r.dout}; }
Cotangents sub(const Rule& r) { return {r.dout, -r.dout}; }
Cotangents mul(const Rule& r) { return {r.dout * r.b, r.dout * r.a}; }
Cotangents div(const Rule& r) { return {r.dout / r.b, -(r.dout * r.out / r.b)}; }
Cotangents neg(const Rule& r) { return {-r.dout}; }
Cotangents mod(const Rule& r) { return {r.dout, -(r.dout * call("num_floor", {r.a / r.b}))}; }
Cotangents fmod(const Rule& r) { return {r.dout, -(r.dout * call("num_trunc", {r.a / r.b}))}; }

// Both slopes stay finite where a part of the formula does not: a^-1 at a = 0 times an exponent of 0, log 0 times 0.
Cotangents pow(const Rule& r) {
    Num b_zero = is_zero(r.b), a_zero = is_zero(r.a);
    Num slope = r.b * call("num_pow", {r.a, select(b_zero, constant(1), r.b) - 1.0});
    Num log = call("num_log", {select(a_zero, constant(1), r.a)});
    return {r.dout * select(b_zero, constant(0), slope), r.dout * select(a_zero, constant(0), r.out * log)};
}

Cotangents extremum(const Rule& r, const Num& a_wins) {
    Num a_share = a_wins + call("num_equal", {r.a, r.b}) / 2.0;
    return {r.dout * a_share, r.dout * (1.0 - a_share)};
}
Cotangents max(const Rule& r) { return extremum(r, call("num_less", {r.b, r.a})); }
Cotangents min(const Rule& r) { return extremum(r, call("num_less", {r.a, r.b})); }

Cotangents abs(const Rule& r) { return {r.dout * call("num_sign", {r.a})}; }
Cotangents same(const Rule& r) { return {r.dout}; }
Cotangents sqrt(const Rule& r) {
    Num zero = is_zero(r.out);
    return {r.dout * select(zero, constant(0), constant(0.5) / select(zero, constant(1), r.out))};
}
Cotangents exp(const Rule& r) { return {r.dout * r.out}; }
Cotangents log(const Rule& r) { return {r.dout / r.a}; }
Cotangents log_base(const Rule& r) {
    Num scaled = r.dout / call("num_log", {r.b});
    return {scaled / r.a, -(scaled * r.out / r.b)};
}
Cotangents sin(const Rule& r) { return {r.dout * call("num_cos", {r.a})}; }
Cotangents cos(const Rule& r) { return {-(r.dout * call("num_sin", {r.a}))}; }
Cotangents tan(const Rule& r) { return {r.dout * (1.0 + r.out * r.out)}; }
// (1 - a)(1 + a) rather than 1 - a*a, which cancels where |a| is close to 1.
Num circle(const Num& a) { return (1.0 - a) * (1.0 + a); }
Cotangents asin(const Rule& r) { return {r.dout / call("num_sqrt", {circle(r.a)})}; }
Cotangents acos(const Rule& r) { return {-(r.dout / call("num_sqrt", {circle(r.a)}))}; }
Cotangents atan(const Rule& r) { return {r.dout / (1.0 + r.a * r.a)}; }
Cotangents atan2(const Rule& r) {
    Num square = r.a * r.a + r.b * r.b;
    return {r.dout * r.b / square, -(r.dout * r.a / square)};
}
Cotangents sinh(const Rule& r) { return {r.dout * call("num_cosh", {r.a})}; }
Cotangents cosh(const Rule& r) { return {r.dout * call("num_sinh", {r.a})}; }
Cotangents tanh(const Rule& r) { return {r.dout * circle(r.out)}; }
Cotangents deg(const Rule& r) { return {r.dout * (180.0 / std::numbers::pi)}; }
Cotangents rad(const Rule& r) { return {r.dout * (std::numbers::pi / 180.0)}; }
Cotangents select(const Rule& r) { return {{}, select(r.a, r.dout, constant(0)), select(r.a, constant(0), r.dout)}; }

// What is not listed is constant wherever it has a slope: roundings, comparisons, signs, bits.
constexpr struct {
    const char* name;
    RuleFn rule;
} kRules[] = {
    {"add", add},       {"num_add", add},       {"sub", sub},         {"num_sub", sub},
    {"mul", mul},       {"num_mul", mul},       {"div", div},         {"num_div", div},
    {"mod", mod},       {"num_mod", mod},       {"pow", pow},         {"num_pow", pow},
    {"minus", neg},     {"num_neg", neg},       {"num_fmod", fmod},   {"num_max", max},
    {"num_min", min},   {"num_abs", abs},       {"num_frac", same},   {"num_sqrt", sqrt},
    {"num_exp", exp},   {"num_log", log},       {"num_sin", sin},     {"num_cos", cos},
    {"num_tan", tan},   {"num_asin", asin},     {"num_acos", acos},   {"num_atan", atan},
    {"num_sinh", sinh}, {"num_cosh", cosh},     {"num_tanh", tanh},   {"num_deg", deg},
    {"num_rad", rad},   {"num_select", select}, {"num_atan2", atan2}, {"num_log_base", log_base},
};

RuleFn find_rule(const Op& primitive) {
    for (const auto& row : kRules)
        if (primitive.name() == row.name) return row.rule;
    return nullptr;
}

Pullback trace(const Op& primitive, uint64_t active) {
    size_t count = primitive.signature.params.size();
    ir::Graph raw{std::string(primitive.name())};
    Rule rule;
    Num* operands[] = {&rule.a, &rule.b, &rule.c};
    for (size_t i = 0; i < count; ++i)
        *operands[i] = {&raw, Value(raw.add_parameter(std::string(primitive.signature.params[i].name), {}))};
    rule.out = {&raw, Value(raw.add_parameter("out", {}))};
    rule.dout = {&raw, Value(raw.add_parameter("dout", {}))};

    std::vector<Value> cotangents(count);
    if (RuleFn f = find_rule(primitive)) {
        Cotangents made = f(rule);
        for (size_t i = 0; i < count; ++i)
            if (made[i] && (active >> i & 1)) cotangents[i] = made[i].value;
    }
    raw.result = Value::list(std::move(cotangents));

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
    // By the primitive's id and three bits of activity. The graphs are shared by this table and the runs of them.
    static thread_local std::vector<std::shared_ptr<const Pullback>> rules(lua::language().all().size() * 8);
    active &= (uint64_t{1} << primitive.signature.params.size()) - 1;
    auto& rule = rules[static_cast<size_t>(primitive.id) * 8 + active];
    if (!rule) rule = std::make_shared<const Pullback>(trace(primitive, active));
    return rule;
}

}  // namespace lunaria::autodiff
