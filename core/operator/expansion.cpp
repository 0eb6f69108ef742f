#include "core/operator/expansion.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "core/operator/infer.h"
#include "core/operator/node.h"

namespace lunaria {

namespace {

// The composite operator that is being expanded, the outermost one.
thread_local const Call* expanded = nullptr;

class Outermost {
  public:
    explicit Outermost(const Call& call) : first_(!expanded) {
        if (first_) expanded = &call;
    }
    ~Outermost() {
        if (first_) expanded = nullptr;
    }
    Outermost(const Outermost&) = delete;

  private:
    bool first_;
};

// The operands of the composite operator that a node is computed from.
class Origins {
  public:
    explicit Origins(const Value& v) { look(v); }
    bool only(const ir::Node* operand) const { return found_.size() == 1 && found_.contains(operand); }

  private:
    static bool is_operand(const ir::Node* node) {
        return std::ranges::any_of(expanded->args, [&](const Value& v) { return v.is_node() && v.node() == node; });
    }
    void look(const Value& v) {
        if (v.is_list()) {
            for (const Value& item : v.items()) look(item);
            return;
        }
        if (!v.is_node() || !seen_.insert(v.node()).second) return;
        if (is_operand(v.node())) {
            found_.insert(v.node());
            return;
        }
        for (const Value& arg : v.node()->args) look(arg);
    }
    std::unordered_set<const ir::Node*> seen_, found_;
};

bool comes_from(const Value& v, const Value& source) {
    if (v.is_node() && source.is_node()) return Origins(v).only(source.node());
    const Value& held = v.is_node() && v.node()->kind == ir::NodeKind::constant ? v.node()->constant : v;
    if (held.is_tensor() && source.is_tensor()) return held.tensor().shares_storage(source.tensor());
    return !v.is_nil() && !v.is_tensor() && !v.is_node() && same_value(v, source);
}

}  // namespace

std::string_view param_name(const Call& call, size_t i) {
    const Param& own = call.op.signature.params[i];
    if (!expanded || &expanded->op == &call.op) return own.name;
    const auto& params = expanded->op.signature.params;
    const Param *found = nullptr, *tensor = nullptr;
    int tensors = 0;
    for (size_t k = 0; k < params.size(); ++k) {
        if (is_tensor_type(params[k].type) != is_tensor_type(own.type)) continue;
        if (is_tensor_type(own.type) && !expanded->args[k].is_nil()) {
            tensor = &params[k];
            ++tensors;
        }
        if (!comes_from(call.args[i], expanded->args[k])) continue;
        // If several parameters have the same value, the one of the same name.
        if (!found || params[k].name == own.name) found = &params[k];
    }
    if (!found && tensors == 1) found = tensor;
    return found ? found->name : own.name;
}

Value number_as_tensor(const Value& number, DType t) {
    // Integers of 64 bits are exact beyond 2^53 only as integers; unsigned ones wrap around.
    return (t == DType::i64 || t == DType::u64) && number.kind() == Value::Kind::integer
               ? Value(Tensor::scalar(number.integer()).cast(t))
               : Value(Tensor::scalar(t, number.number()));
}

Expr as_positions(const Expr& given) {
    if (given.dtype() != DType::u64) return given.cast(DType::i64);
    return call("minimum", {given, std::numeric_limits<int64_t>::max()}).cast(DType::i64);
}

std::vector<Value> expansion_args(const Op& op, std::span<const Value> args, DType dtype) {
    std::vector<Value> converted(args.begin(), args.end());
    for (size_t i = 0; i < converted.size(); ++i) {
        const ArgType type = op.signature.params[i].type;
        if (!converted[i].is_number() || !is_tensor_type(type)) continue;
        const bool promoted = type == ArgType::same || type == ArgType::real;
        converted[i] = number_as_tensor(converted[i], promoted                 ? dtype
                                                      : type == ArgType::index ? DType::i64
                                                                               : type_of(converted[i]).dtype);
    }
    return converted;
}

namespace {

bool has_dtype(const Value& v) { return v.is_tensor() || v.is_node(); }

// Calls f for every operand that has a dtype, also within lists, until it says false.
template <class F>
void visit_operands(const Call& call, F f) {
    for (size_t i = 0; i < call.args.size(); ++i) {
        const Value& v = call.args[i];
        if (!is_tensor_type(call.op.signature.params[i].type)) continue;
        const std::span<const Value> items = v.is_list() ? std::span<const Value>(v.items()) : std::span(&v, 1);
        for (const Value& item : items)
            if (has_dtype(item) && !f(type_of(item).dtype)) return;
    }
}

bool is_widened(const Call& call) {
    bool found = false;
    if (call.op.has_wide_rules) visit_operands(call, [&](DType t) { return !(found = is_half(t)); });
    return found;
}

// The dtype of the result: that of the first operand of floats.
DType rounded_to(const Call& call) {
    DType found = DType::f32;
    visit_operands(call, [&](DType t) {
        const bool decides = is_float(t) || is_complex(t);
        if (decides) found = t;
        return !decides;
    });
    return is_half(found) ? found : DType::f32;
}

Value widened(Builder& b, const Value& v) {
    if (v.is_list()) {
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(widened(b, item));
        return Value::list(std::move(items));
    }
    return has_dtype(v) && is_half(type_of(v).dtype) ? Expr(b, v).cast(DType::f32).value() : v;
}

std::vector<Value> widened_args(const Call& call, Builder& b) {
    std::vector<Value> args;
    for (size_t i = 0; i < call.args.size(); ++i)
        args.push_back(is_tensor_type(call.op.signature.params[i].type) ? widened(b, call.args[i]) : call.args[i]);
    return args;
}

Value rounded(Builder& b, const Value& v, DType t) {
    const bool is_list = v.is_node() && v.node()->type.kind == ir::NodeType::Kind::list;
    if (is_list || v.is_list()) {
        const size_t count = is_list ? v.node()->type.items.size() : v.items().size();
        std::vector<Value> items;
        for (size_t i = 0; i < count; ++i) items.push_back(rounded(b, b.item(v, i), t));
        return b.tuple(std::move(items));
    }
    return has_dtype(v) && type_of(v).dtype == DType::f32 ? Expr(b, v).cast(t).value() : v;
}

// Whether an attribute names a dtype, which the result then has.
bool names_dtype(const Call& call) {
    for (size_t i = 0; i < call.args.size(); ++i)
        if (call.op.signature.params[i].type == ArgType::dtype && call.has(i)) return true;
    return false;
}

DType widened(DType t) { return is_half(t) ? DType::f32 : t; }

bool is_same(const Value& a, const Value& b) {
    if (a.is_node()) return b.is_node() && a.node() == b.node();
    return a.is_tensor() && b.is_tensor() && a.tensor().same_body(b.tensor());
}

bool is_among(const Value& v, std::span<const Value> values) {
    return std::ranges::any_of(values,
                               [&](const Value& a) { return a.is_list() ? is_among(v, a.items()) : is_same(v, a); });
}

// Results must be tensors of their own, in graphs as well: an operand that is passed on, or a result that occurs twice,
// goes through an operator that makes a new tensor.
Value own_results(const ExpandCall& call, Value results) {
    auto own = [&](const Value& v) { return call.call("identity", {v}).value(); };
    if (!results.is_list()) return is_among(results, call.args) ? own(results) : results;
    std::vector<Value> items;
    for (const Value& v : results.items()) items.push_back(is_among(v, call.args) || is_among(v, items) ? own(v) : v);
    return call.builder.tuple(std::move(items));
}

}  // namespace

Value expand(const ExpandCall& call) {
    return speaking_of(call.op, [&] {
        if (!is_widened(call)) {
            Outermost outermost(call);
            return own_results(call, call.op.expand_fn(call).value());
        }
        Builder& b = call.builder;
        const std::vector<Value> args = widened_args(call, b);
        const ExpandCall wide(Call(call.op, args, widened(call.dtype)), b);
        Outermost outermost(wide);
        const Value result = wide.op.expand_fn(wide).value();
        return own_results(call, names_dtype(call) ? result : rounded(b, result, rounded_to(call)));
    });
}

Grads gradients(const GradRule& rule) {
    if (!is_widened(rule)) return rule.op.grad_fn(rule);
    Builder& b = rule.builder;
    const std::vector<Value> args = widened_args(rule, b);
    auto all = [&](std::span<const Expr> list) {
        std::vector<Expr> wide;
        for (const Expr& e : list) wide.push_back(e ? Expr(b, widened(b, e.value())) : e);
        return wide;
    };
    const std::vector<Expr> outs = all(rule.outs), douts = all(rule.douts);
    Grads grads = rule.op.grad_fn(GradRule(Call(rule.op, args, widened(rule.dtype)), b, outs, douts));
    for (size_t i = 0; i < grads.size() && i < args.size(); ++i) {
        const Value& arg = rule.args[i];
        const Value& first = arg.is_list() && !arg.items().empty() ? arg.items()[0] : arg;
        const DType t = has_dtype(first) ? type_of(first).dtype : rule.dtype;
        if (grads[i] && is_half(t)) grads[i] = Expr(b, rounded(b, grads[i].value(), t));
    }
    return grads;
}

Error named_after(const Op& op, const Error& e) {
    const bool of_another = e.place().empty() && e.where() != op.name() && registry().find(e.where());
    if (!of_another) return e;
    // The text includes the hint, if there is one.
    std::string_view rest = e.what();
    rest.remove_prefix(e.where().size() + 2);
    return {e.kind(), op.name(), rest};
}

}  // namespace lunaria
