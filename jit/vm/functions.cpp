// Small functions of the IR that the machine calls: operators as functions, rules as closures, and the generic forms of
// what it otherwise does natively.
#include <array>
#include <bit>
#include <deque>

#include "core/ir/substitution.h"
#include "core/ir/text.h"
#include "jit/autodiff/pullback.h"
#include "jit/autodiff/transform.h"
#include "jit/batch/operator.h"
#include "jit/language.h"
#include "jit/vm/machine.h"
#include "jit/vm/sketch.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

class OperatorObject final : public Object, public ir::OperatorHolder {
  public:
    explicit OperatorObject(const Op& op) : op(op) {}
    const Op& held() const override { return op; }
    const Op& op;
};

// Copies the body of a straight-line graph with other parameters.
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

// The results of a function that gives what the node does: each of as many as it lists, or the one that it is (0).
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
    // The form of the call belongs to the key: an argument may be a tensor in one call and left out in the next.
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
std::string form_of(const Op& op, std::span<const Value> args, size_t results) {
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
    OperatorFunction& function = cache[form_of(op, args, results)];
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
    OperatorFunction& function = cache[form_of(op, args, results)];
    if (!function.function) {
        Sketch s{std::string(op.name())};
        const std::vector<Value> spread = spread_parameters(s, op, args).args;
        // The last one: cotangents of the arguments come first.
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
    // The rule is one for these attributes; those of numbers are for any.
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
    uint64_t versions = 0;
    for (size_t j = 0; j < rule->saved.size(); ++j) {
        const int i = rule->saved[j], m = rule->saved_item[j];
        if (i < count) {
            const Value& v = args[static_cast<size_t>(i)];
            captures.push_back(m < 0 ? v : v.items().at(static_cast<size_t>(m)));
        } else {
            captures.push_back(result.is_list() ? result.items().at(static_cast<size_t>(i - count)) : result);
        }
        if (captures.back().is_tensor()) versions += captures.back().tensor().version();
    }
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
        static constexpr std::array<std::array<std::string_view, 2>, 8> kTyped{{{"add", "num_add"},
                                                                                {"sub", "num_sub"},
                                                                                {"mul", "num_mul"},
                                                                                {"div", "num_div"},
                                                                                {"mod", "num_mod"},
                                                                                {"pow", "num_pow"},
                                                                                {"floor_div", "num_floor_div"},
                                                                                {"minus", "num_neg"}}};
        const Op* typed = &primitive;
        for (auto [from, to] : kTyped)
            if (from == primitive.name()) typed = &lua::primitive(to);
        Sketch s{std::string(primitive.name())};
        std::vector<Value> args;
        for (const Param& p : typed->signature.params) args.push_back(s.parameter(std::string(p.name)));
        f = s.finish(Value::list({Value(s.graph().add_call(*typed, args, {}))}));
    }
    return f;
}

const OperatorFunction& raw_index_function() {
    static const OperatorFunction f = [] {
        Sketch s("index");
        Value t = s.parameter("table"), k = s.parameter("key");
        return s.finish(Value::list({s.emit("raw_index", {t, k})}));
    }();
    return f;
}

const OperatorFunction& truth_function() {
    static const OperatorFunction f = [] {
        Sketch s("comparison");
        Value function = s.parameter("f"), a = s.parameter("a"), b = s.parameter("b");
        Value call = s.emit("call", {function, Value::list({a, b})});
        Value first = s.emit("result", {call, Value(0)});
        return s.finish(Value::list({s.emit("not", {s.emit("not", {first})})}), 1);
    }();
    return f;
}

const OperatorFunction& bound_function() {
    static const OperatorFunction f = [] {
        Sketch s("call");
        Value function = s.parameter("f"), first = s.parameter("first"), rest = s.parameter("...");
        return s.finish(s.emit("call", {function, s.emit("spread", {Value::list({first}), rest})}), 2, true);
    }();
    return f;
}

const OperatorFunction& batched_function() {
    static const OperatorFunction f = [] {
        Sketch s("batched");
        Value size = s.parameter("size"), function = s.parameter("f"), rest = s.parameter("...");
        return s.finish(s.emit("call", {s.emit("batched", {size, function}), rest}), 0, true);
    }();
    return f;
}

const OperatorFunction& stop_function() {
    static const OperatorFunction f = [] {
        Sketch s("stop_gradient");
        Value x = s.parameter("x");
        return s.finish(Value::list({s.emit("stop", {s.emit("content", {x, Value::list({})})})}));
    }();
    return f;
}

const OperatorFunction& item_function() {
    static const OperatorFunction f = [] {
        Sketch s("item");
        Value x = s.parameter("x");
        return s.finish(Value::list({s.emit("to_number", {s.emit("content", {x, Value::list({})})})}));
    }();
    return f;
}

const OperatorFunction& raw_set_function() {
    static const OperatorFunction f = [] {
        Sketch s("set_index");
        Value t = s.parameter("table"), k = s.parameter("key"), v = s.parameter("value");
        s.emit("raw_set", {t, k, v});
        return s.finish(Value::list({t}));
    }();
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

const OperatorFunction& content_index_function() {
    static const OperatorFunction f = [] {
        Sketch s("index");
        Value x = s.parameter("x"), key = s.parameter("key");
        return s.finish(Value::list({s.emit("index", {s.emit("content", {x, Value::list({})}), key})}));
    }();
    return f;
}

const OperatorFunction& content_set_index_function() {
    static const OperatorFunction f = [] {
        Sketch s("set_index");
        Value x = s.parameter("x"), key = s.parameter("key"), value = s.parameter("value");
        s.emit("set_index", {x, key, s.emit("content", {value, Value::list({})})});
        return s.finish(Value::list({}));
    }();
    return f;
}

const OperatorFunction& content_function() {
    static const OperatorFunction f = [] {
        Sketch s("content");
        Value x = s.parameter("x");
        return s.finish(Value::list({s.emit("content", {x, Value::list({})})}));
    }();
    return f;
}

const OperatorFunction& overwrite_function() {
    static const OperatorFunction f = [] {
        Sketch s("overwrite");
        Value x = s.parameter("x"), value = s.parameter("value");
        s.emit("overwrite", {x, s.emit("content", {value, Value::list({})})});
        return s.finish(Value::list({x}));
    }();
    return f;
}

const OperatorFunction& shadow_add_function() {
    static const OperatorFunction f = [] {
        Sketch s("shadow_add");
        Value shadow = s.parameter("shadow"), key = s.parameter("key"), d = s.parameter("d");
        s.emit("shadow_add", {shadow, key, d});
        return s.finish(Value::list({}), 2);
    }();
    return f;
}

const OperatorFunction& shadow_take_function() {
    static const OperatorFunction f = [] {
        Sketch s("shadow_take");
        Value shadow = s.parameter("shadow"), key = s.parameter("key");
        Value d = s.emit("shadow_take", {shadow, key});
        return s.finish(Value::list({Value(), Value(), d}), 2);
    }();
    return f;
}

namespace {

// What meets the errors of f: `then` writes what it gives from the list that f gives, or of the error, and what has to
// be kept for that.
OperatorFunction protecting(std::string name, bool handled, const OperatorFunction* failed,
                            Value (*then)(Sketch&, const Value& results, const Value& handler), Value fixed = {}) {
    Sketch s(std::move(name));
    Value f = fixed.is_nil() ? s.parameter("f") : std::move(fixed);
    Value handler = handled ? s.parameter("handler") : Value(), rest = s.parameter("...");
    s.emit("guard", {Value(true)});
    Value results = s.emit("call", {f, rest});
    if (handled) s.emit("keep", {Value::list({}), Value::list({handler})});
    OperatorFunction made = s.finish(then(s, results, handler), 0, true);
    made.function->failed = failed;
    return made;
}

Value first_of(Sketch& s, const Value& list) { return s.emit("result", {list, Value(0)}); }

Value succeed(Sketch& s, const Value& results, const Value&) {
    return s.emit("spread", {Value::list({Value(true)}), results});
}
Value fail(Sketch& s, const Value& error, const Value&) { return Value::list({Value(false), first_of(s, error)}); }
Value handle(Sketch& s, const Value& error, const Value& handler) {
    return fail(s, s.emit("call", {handler, Value::list({first_of(s, error)})}), {});
}

}  // namespace

const OperatorFunction& pcall_function() {
    static const OperatorFunction failed = protecting("pcall", false, nullptr, fail);
    static const OperatorFunction f = protecting("pcall", false, &failed, succeed);
    return f;
}

const OperatorFunction& xpcall_function() {
    // An error of the handler is the result as it is.
    static const OperatorFunction twice = protecting("xpcall", true, nullptr, handle);
    static const OperatorFunction failed = protecting("xpcall", true, &twice, handle);
    static const OperatorFunction f = protecting("xpcall", true, &failed, succeed);
    return f;
}

namespace {

Value native(NativeFunction::Kind kind) { return make_object<NativeFunction>(kind, Value()); }

}  // namespace

OperatorFunction native_function(NativeFunction::Kind kind, Value original) {
    Sketch s("coroutine");
    Value f = make_object<NativeFunction>(kind, std::move(original)), rest = s.parameter("...");
    return s.finish(s.emit("call", {f, rest}), 0, true);
}

const OperatorFunction& coroutine_function() {
    static const OperatorFunction f = [] {
        Sketch s("coroutine");
        Value function = s.parameter("f"), rest = s.parameter("...");
        return s.finish(s.emit("call", {function, rest}), 0, true);
    }();
    return f;
}

const OperatorFunction& resume_function() {
    static const Value go_on = native(NativeFunction::Kind::go_on);
    static const OperatorFunction failed = protecting("coroutine.resume", false, nullptr, fail, go_on);
    static const OperatorFunction f = protecting("coroutine.resume", false, &failed, succeed, go_on);
    return f;
}

const OperatorFunction& wrap_function() {
    static const OperatorFunction f = [] {
        Sketch s("coroutine.wrap");
        Value coroutine = s.parameter("coroutine"), rest = s.parameter("...");
        s.emit("guard", {s.emit("meets_errors", {coroutine})});
        Value args = s.emit("spread", {Value::list({coroutine}), rest});
        return s.finish(s.emit("call", {native(NativeFunction::Kind::go_on), args}), 1, true);
    }();
    return f;
}

const OperatorFunction& resume_back_function() {
    static const OperatorFunction f = [] {
        Sketch s("coroutine.resume");
        Value coroutine = s.parameter("coroutine"), k = s.parameter("k"), order = s.parameter("order"),
              d = s.parameter("...");
        Value back = s.emit("backward", {coroutine, k, order});
        s.emit("call", {native(NativeFunction::Kind::advance), Value::list({back, k})});
        Value args = s.emit("spread", {Value::list({back}), d});
        Value results = s.emit("call", {native(NativeFunction::Kind::go_on), args});
        return s.finish(s.emit("spread", {Value::list({Value()}), results}), 3, true);
    }();
    return f;
}

const OperatorFunction& yield_back_function() {
    static const OperatorFunction f = native_function(NativeFunction::Kind::yield, Value());
    return f;
}

const OperatorFunction& reversed_function() {
    static const OperatorFunction f = [] {
        Sketch s("coroutine");
        Value r = s.parameter("r"), d = s.parameter("...");
        return s.finish(s.emit("results_from", {s.emit("pull", {r, d}), Value(1)}), 1, true);
    }();
    return f;
}

const OperatorFunction& advance_function() {
    static const OperatorFunction f = [] {
        Sketch s("coroutine.resume");
        Value coroutine = s.parameter("coroutine"), k = s.parameter("k");
        s.emit("call", {native(NativeFunction::Kind::go_on), Value::list({coroutine})});
        s.emit("call", {native(NativeFunction::Kind::advance), Value::list({coroutine, k})});
        return s.finish(Value::list({}));
    }();
    return f;
}

const OperatorFunction& error_function() {
    static const OperatorFunction f = [] {
        Sketch s("error");
        Value value = s.parameter("value"), level = s.parameter("level");
        s.emit("raise", {value, level});
        s.emit("keep", {Value::list({}), Value::list({value})});
        return s.finish(Value::list({}));
    }();
    return f;
}

const OperatorFunction& vjp_function() {
    static const OperatorFunction f = [] {
        Sketch s("vjp");
        Value function = s.parameter("f"), positions = s.parameter("positions"), parameters = s.parameter("parameters"),
              rest = s.parameter("...");
        ir::Graph& inner = s.graph().add_inner("pull");
        Value context_inside(inner.add_parameter("context", {})), r_inside(inner.add_parameter("r", {})),
            d(inner.add_parameter("...", {}));
        // What an earlier call of the same function left behind.
        inner.add_call(lua::primitive("reset"), {Value::list({context_inside})}, {});
        // Each by a handle of its own: one cotangent may be that of several arguments, or a tensor that was given.
        const Value pulled(inner.add_call(lua::primitive("pull"), {r_inside, d}, {}));
        inner.result = Value(inner.add_call(lua::primitive("hold"), {pulled}, {}));
        inner.captures = 2;
        inner.variadic = true;
        Value context = s.emit("new_context", {parameters});
        Value args = s.emit("mark_arguments", {context, positions, rest});
        Value call = s.emit("j_call", {Value::list({context}), function, args});
        Value results = s.item(call, 0), r = s.item(call, 1);
        Value plain = s.emit("unmark", {context, results});
        Value pull = s.emit("closure", {Value(s.graph().add_function(inner)), Value::list({context, r})});
        return s.finish(s.emit("spread", {Value::list({pull, context}), plain}), 0, true);
    }();
    return f;
}

namespace {

// The derivative of a scalar function in one go, for the arguments at `positions` (a table or one integer).
struct Derivative {
    Value context, results, cotangents;
};
Derivative derivative(Sketch& s, const Value& name, const Value& function, const Value& positions,
                      const Value& parameters, const Value& rest) {
    Value context = s.emit("new_context", {parameters});
    Value args = s.emit("mark_arguments", {context, positions, rest});
    Value call = s.emit("j_call", {Value::list({context}), function, args});
    Value results = s.item(call, 0), r = s.item(call, 1);
    Value plain = s.emit("unmark", {context, results});
    // The backpropagator has no other owner here, so what it holds is freed as it runs.
    Value d = s.emit("seed", {name, plain}), box = s.emit("box_of", {context, s.emit("result", {plain, Value(0)})});
    s.emit("shadow_add", {box, Value(0), d});
    Value cotangents = s.emit("pull", {r, Value::list({s.emit("unless", {box, d})})});
    return {context, plain, s.emit("hold", {cotangents})};
}

}  // namespace

const OperatorFunction& derivative_function() {
    static const OperatorFunction f = [] {
        Sketch s("derivative");
        Value name = s.parameter("name"), function = s.parameter("f"), positions = s.parameter("positions"),
              parameters = s.parameter("parameters"), rest = s.parameter("...");
        Derivative d = derivative(s, name, function, positions, parameters, rest);
        Value head = Value::list({d.context, s.emit("list_length", {d.results})});
        return s.finish(s.emit("spread", {head, s.emit("list_concat", {d.results, d.cotangents})}), 0, true);
    }();
    return f;
}

const OperatorFunction& gradient_function() {
    static const OperatorFunction f = [] {
        Sketch s("gradient");
        Value name = s.parameter("name"), function = s.parameter("f"), position = s.parameter("position"),
              rest = s.parameter("...");
        Derivative d = derivative(s, name, function, position, Value(), rest);
        Value y = s.emit("result", {d.results, Value(0)}), dx = s.emit("result", {d.cotangents, position});
        return s.finish(Value::list({y, dx}), 0, true);
    }();
    return f;
}

const OperatorFunction& shadow_function() {
    static const OperatorFunction f = [] {
        Sketch s("cotangent");
        Value context = s.parameter("context"), object = s.parameter("object"), key = s.parameter("key");
        Value shadow = s.emit("shadow_of", {context, object});
        return s.finish(s.emit("hold", {Value::list({s.emit("shadow_get", {shadow, key})})}));
    }();
    return f;
}

}  // namespace lunaria::vm
