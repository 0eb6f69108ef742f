// Small functions of the IR that the machine calls: operators as functions, rules as closures, and the generic forms of
// instructions that it otherwise runs natively.
#include <bit>
#include <deque>

#include "core/ir/substitution.h"
#include "core/ir/text.h"
#include "jit/autodiff/pullback.h"
#include "jit/autodiff/transform.h"
#include "jit/batch/operator.h"
#include "jit/number.h"
#include "jit/vm/machine.h"
#include "jit/vm/split_rule.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

class OperatorObject final : public Object, public ir::OperatorHolder {
  public:
    explicit OperatorObject(const Op& op) : op(op) {}
    const Op& held() const override { return op; }
    const Op& op;
};

// The builder of a function of primitives.
class Sketch {
  public:
    explicit Sketch(std::string name) : graph_(std::make_shared<ir::Graph>(std::move(name))) {}
    Value parameter(std::string name = "") { return Value(graph_->add_parameter(std::move(name), {})); }
    Value emit(std::string_view name, std::vector<Value> args) {
        return Value(graph_->add_call(lua::primitive(name), std::move(args), {}));
    }
    OperatorFunction finish(Value result, size_t captures = 0, bool variadic = false) {
        graph_->result = std::move(result);
        graph_->captures = captures;
        graph_->variadic = variadic;
        return {&function_of(*graph_), graph_};
    }
    ir::Graph& graph() { return *graph_; }

  private:
    std::shared_ptr<ir::Graph> graph_;
};

// Copies the body of a straight-line graph, with other parameters.
Value copy_body(const ir::Graph& from, std::span<const Value> parameters, ir::Graph& to) {
    ir::Substitution copied(&to);
    for (size_t i = 0; i < parameters.size(); ++i) copied[from.parameters()[i]] = parameters[i];
    for (const ir::Node* node : from.body()) copied[node] = copied.copy(*node);
    return copied(from.result);
}

// The arguments of an operator as parameters of a graph; lists of tensors item by item.
struct Spread {
    std::vector<Value> args, flat;
};
Spread spread_parameters(Sketch& s, const Op& op, std::span<const Value> args) {
    Spread result;
    const auto& params = op.signature.params;
    for (size_t i = 0; i < params.size(); ++i) {
        Value p = s.parameter(std::string(params[i].name));
        if (params[i].type != ArgType::tensors || !args[i].is_list()) {
            result.args.push_back(p);
            if (args[i].is_tensor() || args[i].is_number())
                if (!batch::is_fixed(op, args, i)) result.flat.push_back(p);
            continue;
        }
        std::vector<Value> items;
        for (size_t m = 0; m < args[i].items().size(); ++m) {
            items.push_back(s.emit("result", {p, Value(static_cast<int64_t>(m))}));
            result.flat.push_back(items.back());
        }
        result.args.push_back(Value::list(std::move(items)));
    }
    return result;
}

// The results of a function with the node's value: one for each item of the list, or the value itself (0).
Value results_of(Sketch& s, const Value& y, size_t count) {
    if (count == 0) return Value::list({y});
    std::vector<Value> items;
    for (size_t i = 0; i < count; ++i) items.push_back(Value(s.graph().add_item(*y.node(), i)));
    return Value::list(std::move(items));
}

size_t listed(const ir::NodeType& type) { return type.kind == ir::NodeType::Kind::list ? type.items.size() : 0; }

}  // namespace

Value operator_value(const Op& op) { return make_object<OperatorObject>(op); }

const Op* operator_of(const Value& v) {
    auto* object = object_as<OperatorObject>(v);
    return object ? &object->op : nullptr;
}

uint16_t followed_by(std::span<const Value> contexts) {
    uint16_t bits = 0;
    for (const Value& c : contexts) bits |= static_cast<Context*>(c.object())->mark;
    return bits;
}

uint16_t marks_of(const Value& v) {
    uint16_t bits = v.marks();
    if (v.is_list())
        for (const Value& item : v.items()) bits |= marks_of(item);
    return bits;
}

bool is_differentiable(const Op& op) { return !op.no_grad_reason && !op.host_fn; }

void inherit_marks(const Op& op, Value& result, uint16_t marks) {
    if (!is_differentiable(op)) return;
    if (result.is_tensor()) {
        if (is_float(result.tensor().dtype()) || is_complex(result.tensor().dtype())) result.set_marks(marks);
        return;
    }
    if (!result.is_list()) return;
    std::vector<Value> items = result.items();
    for (Value& item : items) inherit_marks(op, item, marks);
    result = Value::list(std::move(items));
    result.set_marks(marks);
}

OperatorFunction over_arguments(const Op& op, std::span<const Value> args, std::shared_ptr<const ir::Graph> inner) {
    struct Entry {
        std::shared_ptr<const ir::Graph> inner;
        OperatorFunction function;
    };
    thread_local std::unordered_map<const ir::Graph*, Entry> functions;
    if (functions.size() > 2000) functions.clear();
    // The key contains the form of the call: an argument may be a tensor in one call and left out in the next.
    Entry& entry = functions[inner.get()];
    if (!entry.function.function) {
        Sketch s{std::string(op.name())};
        Spread p = spread_parameters(s, op, args);
        Value result = copy_body(*inner, p.flat, s.graph());
        if (!result.is_list()) result = results_of(s, result, result.is_node() ? listed(result.node()->type) : 0);
        entry = {inner, s.finish(result)};
    }
    return entry.function;
}

OperatorFunction expansion_function(const Op& op, std::span<const Value> args) {
    const OperatorFunction function = over_arguments(op, args, autodiff::expansion(op, args));
    function.function->whole = &op;
    return function;
}

namespace {

// Calls of the same form have one function.
std::string form_of_function(const Op& op, std::span<const Value> args, size_t results) {
    std::string form = str(op.id, ":", results);
    for (const Value& v : args)
        if (v.is_list() && !v.items().empty() && v.items()[0].is_tensor()) form += str(",", v.items().size());
    return form;
}

}  // namespace

OperatorFunction operator_function(const Op& op, std::span<const Value> args) {
    if (autodiff::needs_expansion(op)) return expansion_function(op, args);
    thread_local std::unordered_map<std::string, OperatorFunction> cache;
    const size_t results = autodiff::count_results(op, args);
    OperatorFunction& function = cache[form_of_function(op, args, results)];
    if (!function.function) {
        Sketch s{std::string(op.name())};
        Spread p = spread_parameters(s, op, args);
        const ir::NodeType type = results > 0 ? ir::NodeType::list(std::vector<ir::NodeType>(results)) : ir::NodeType();
        Value y(s.graph().add_call(op, std::move(p.args), type));
        function = s.finish(results_of(s, y, results));
    }
    return function;
}

OperatorFunction followed_operator(const Op& op, std::span<const Value> args, size_t results) {
    thread_local std::unordered_map<std::string, OperatorFunction> cache;
    OperatorFunction& function = cache[form_of_function(op, args, results)];
    if (!function.function) {
        Sketch s{std::string(op.name())};
        const std::vector<Value> spread = spread_parameters(s, op, args).args;
        // The context is the last parameter: cotangents of the arguments come first.
        Value context = s.parameter("context");
        std::vector<Value> given;
        for (const Value& v : spread) given.push_back(v.is_list() ? s.emit("spread", {v, Value()}) : v);
        Value y = s.emit("call", {operator_value(op), Value::list(std::move(given))});
        std::vector<Value> made;
        for (size_t j = 0; j < std::max<size_t>(results, 1); ++j)
            made.push_back(s.emit("result", {y, Value(static_cast<int64_t>(j))}));
        const Value result = results == 0 ? made[0] : y, count(static_cast<int64_t>(results));
        made.push_back(s.emit("make_pull", {context, Value(op.name()), Value::list(spread), result, count}));
        function = s.finish(Value::list(std::move(made)));
    }
    return function;
}

Value full(const Value& number, DType dtype, const Shape& shape) {
    if (is_open(number)) return watcher()->tensor_of(number, dtype, shape);
    Tensor made = Tensor::full(dtype, shape, number.number());
    made.set_goes_along();
    Value v(std::move(made));
    if (Watcher* w = watcher()) w->made(v);
    return v;
}

Value full_cotangent(const ir::NodeType& type, Value d) {
    if (type.kind != ir::NodeType::Kind::tensor) return d;
    if (!d.is_nil()) return shown(d).is_number() ? full(d, type.tensor.dtype, type.tensor.shape) : d;
    Tensor zeros = Tensor::zeros(type.tensor.dtype, type.tensor.shape);
    zeros.set_goes_along();
    d = Value(std::move(zeros));
    if (Watcher* w = watcher()) w->made(d);
    return d;
}

Rule rule_of(const Op& op, std::span<const Value> args, const Value& result, uint64_t active) {
    const bool number = op.belongs_to(lua::language());
    Rule rule;
    rule.pullback = number ? autodiff::number_pullback(op, active) : autodiff::pullback(op, args, result, active);
    rule.function = &function_of(*rule.pullback->graph);
    if (rule.function->rule) return rule;
    const auto count = static_cast<int>(op.signature.params.size());
    rule.function->rule = true;
    const std::vector<int>& saved = rule.pullback->saved;
    rule.pullback->graph->captures = saved.size();
    for (size_t j = 0; j < saved.size(); ++j) {
        const int i = saved[j];
        rule.function->keys.push_back(i < count ? autodiff::operand_key(i, rule.pullback->saved_item[j])
                                                : -1 - (i - count));
    }
    return rule;
}

Value make_pullback(const Op& op, std::span<const Value> given, const Value& result, uint16_t mark) {
    // The rule is one for these attributes; a rule for numbers holds for any.
    Values settled;
    if (watcher() && !op.belongs_to(lua::language())) settled = Values(given);
    const std::span<const Value> args = settle_numbers(settled) ? std::span<const Value>(settled) : given;
    if (!is_differentiable(op) && !op.refuses_grad) return {};
    uint64_t active = 0;
    for (size_t i = 0; i < args.size(); ++i)
        if (marks_of(args[i]) & mark) active |= uint64_t{1} << std::min<size_t>(i, 63);
    if (!active) return {};
    if (op.refuses_grad) {
        const std::string_view name = op.signature.params[static_cast<size_t>(std::countr_zero(active))].name;
        throw argument_error(op.name(), str("has no gradient with respect to '", name,
                                            "', which depends on what is differentiated: ", op.no_grad_reason))
            .hint(str("pass ms.stop_gradient(", name, ") where no gradient is wanted"));
    }
    auto [rule, function] = rule_of(op, args, result, active);
    const auto count = static_cast<int>(op.signature.params.size());
    Values captures;
    for (size_t j = 0; j < rule->saved.size(); ++j) {
        const int i = rule->saved[j], m = rule->saved_item[j];
        if (i < count) {
            const Value& v = args[static_cast<size_t>(i)];
            captures.push_back(m < 0 ? v : v.items().at(static_cast<size_t>(m)));
        } else {
            captures.push_back(result.is_list() ? result.items().at(static_cast<size_t>(i - count)) : result);
        }
    }
    const uint64_t versions = versions_of(captures);
    // The rule's graph lives as long as the rule.
    Value v = make_object<Closure>(*function, std::shared_ptr<const void>(std::move(rule)), std::move(captures));
    static_cast<Closure*>(v.object())->versions = versions;
    static_cast<Closure*>(v.object())->clock = write_clock();
    return v;
}

OperatorFunction number_function(const Op& primitive) {
    thread_local std::unordered_map<const Op*, OperatorFunction> cache;
    OperatorFunction& f = cache[&primitive];
    if (!f.function) {
        const lua::Facts& facts = lua::facts(primitive);
        const Op* typed = facts.is_arithmetic() ? &lua::on_numbers(*facts.on_tensors) : &primitive;
        Sketch s{std::string(primitive.name())};
        std::vector<Value> args;
        for (const Param& p : typed->signature.params) args.push_back(s.parameter(std::string(p.name)));
        f = s.finish(Value::list({Value(s.graph().add_call(*typed, args, {}))}));
    }
    return f;
}

const OperatorFunction& contents_function(size_t count) {
    thread_local std::deque<OperatorFunction> known;
    if (known.size() <= count) known.resize(count + 1);
    OperatorFunction& f = known[count];
    if (!f.function) {
        Sketch s("contents");
        Value function = s.parameter("f");
        std::vector<Value> args;
        for (size_t i = 0; i < count; ++i) args.push_back(s.parameter());
        for (Value& arg : args) arg = s.emit("content", {arg, Value::list({})});
        f = s.finish(s.emit("call", {function, Value::list(std::move(args))}), 1);
    }
    return f;
}

OperatorFunction native_function(NativeFunction::Kind kind, Value original) {
    Sketch s("coroutine");
    Value f = make_object<NativeFunction>(kind, std::move(original)), rest = s.parameter("...");
    return s.finish(s.emit("call", {f, rest}), 0, true);
}

}  // namespace lunaria::vm
