// Calls: of functions, operators and backpropagators.
#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>

#include "core/ir/builder.h"
#include "core/operator/open.h"
#include "core/tensor/turned.h"
#include "jit/autodiff/pullback.h"
#include "jit/language.h"
#include "jit/number.h"
#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/region.h"
#include "jit/vm/split_rule.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

// Whether the arguments already are of the right kind, so that nothing has to be bound.
bool complete(const Op& op, Values& args, uint16_t followed) {
    const auto& params = op.signature.params;
    if (args.size() > params.size()) return false;
    for (size_t i = 0; i < args.size(); ++i) {
        const Value& v = args[i];
        if (params[i].by_name_only) return false;
        switch (v.kind()) {
            case Value::Kind::tensor:
                if (!is_tensor_type(params[i].type) || params[i].type == ArgType::tensors) return false;
                break;
            case Value::Kind::integer:
            case Value::Kind::number:
                if (v.marks() & followed) return false;
                if (is_tensor_type(params[i].type) && params[i].type != ArgType::tensors) break;
                if (params[i].type == ArgType::number || params[i].type == ArgType::scalar) break;
                if (params[i].type == ArgType::integer && v.kind() == Value::Kind::integer) break;
                return false;
            case Value::Kind::boolean:
                if (params[i].type != ArgType::boolean && params[i].type != ArgType::scalar) return false;
                break;
            default:
                return false;
        }
    }
    for (size_t i = args.size(); i < params.size(); ++i) {
        if (!params[i].has_default) return false;
        args.push_back(params[i].default_value);
    }
    return true;
}

// Finds out whether a value is followed by a context or holds a followed value.
class Reach {
  public:
    Reach(Machine& m, const Context& context) : m_(m), context_(context) {}
    bool operator()(const Value& v) {
        if ((marks_of(v) & context_.mark) || context_.box(v)) return true;
        if (v.kind() != Value::Kind::object || !seen_.insert(identity_of(v)).second) return false;
        if (context_.find(v)) return true;
        bool found = false;
        if (m_.host().is_table(v)) {
            m_.host().for_each_table(v, [&](const Value& t) {
                found |= context_.find(t) != nullptr;
                seen_.insert(identity_of(t));
            });
            return found;
        }
        if (auto* closure = object_as<Closure>(v)) return std::ranges::any_of(closure->captures, std::ref(*this));
        if (auto* cell = object_as<LocalCell>(v)) return (*this)(cell->get());
        if (auto* coroutine = object_as<Coroutine>(v)) {
            const Coroutine::State& state = coroutine->state();
            for (const Value& c : state.contexts) found |= c.object() == &context_;
            return found || (*this)(state.function);
        }
        return false;
    }

  private:
    Machine& m_;
    const Context& context_;
    std::unordered_set<const void*> seen_;
};

bool reaches(Machine& m, const Context& context, const Value& v) { return Reach(m, context)(v); }

Error opaque_error(Machine& m, const Value& f, std::string what) {
    const std::string name = m.host().describe(f);
    const Error error =
        argument_error("grad", str("no gradient flows through ", name, ", ", what, ": ", m.host().why_opaque(f)));
    if (name == "tensor:set_dtype")
        return error.hint("write x = x:astype(dtype): what was computed from x before has the other dtype");
    return error.hint(
        "write it in plain Lua or with operators, give it a derivative with ms.custom_vjp, or pass "
        "ms.stop_gradient(x) where no gradient is wanted");
}

// How the arguments of a function of the host have to do with what is differentiated.
struct Followed {
    bool any = false;       // one depends on it
    bool function = false;  // a closure does
    bool text = false;      // a text was made of it
    bool known = false;     // one is a tensor by which a derivative is computed
};

Followed followed_among(Machine& m, std::span<const Value> contexts, const Values& args) {
    Followed found;
    for (const Value& v : args) {
        bool reached = false;
        for (const Value& c : contexts) {
            const auto& context = *static_cast<Context*>(c.object());
            reached |= reaches(m, context, v);
            found.known |= v.is_tensor() && context.find(v);
        }
        found.any |= reached;
        found.function |= reached && object_as<Closure>(v);
        found.text |= reached && shown(v).kind() == Value::Kind::string;
    }
    return found;
}

// Calls a function that only the host can run. Its results must not depend on followed values.
void call_opaque(Machine& m, const Value& f, std::span<const Value> contexts, Values& args, const Destination& to) {
    if (contexts.empty() || m.host().is_harmless(f)) return m.give(to, m.host().call(f, args), {});
    auto [followed, function, text, known] = followed_among(m, contexts, args);
    if (const Value coroutine = m.host().resumed_by(f, args)) {
        // The function's use of its arguments, and its reads and writes of shared objects, are unknown.
        for (const Value& c : contexts) {
            const auto& context = *static_cast<Context*>(c.object());
            followed |= m.host().reaches(coroutine, context, [&](const Value& v) { return reaches(m, context, v); });
        }
        if (followed)
            throw opaque_error(m, f, "which goes on with a coroutine that has to do with what is differentiated");
    }
    if (followed || known)
        if (Value other = m.host().stand_in(f); !other.is_nil()) return m.call(other, contexts, std::move(args), to);
    const bool before = std::exchange(m.called_back, false);
    Values results = m.host().call(f, args);
    const bool called = std::exchange(m.called_back, before);
    if (function && called) throw opaque_error(m, f, "which calls a function that uses what is differentiated");
    for (Value& r : results) {
        if (!followed) break;
        const bool given = std::any_of(args.begin(), args.end(), [&](const Value& v) {
            return v.kind() == Value::Kind::object && identity_of(v) == identity_of(r);
        });
        if (shown(r).kind() == Value::Kind::number || (r.is_tensor() && is_float(r.tensor().dtype())))
            throw opaque_error(m, f, "whose result depends on what is differentiated");
        if (m.host().is_table(r) && !given && m.host().holds_floats(r))
            throw opaque_error(m, f, "whose result holds numbers that depend on what is differentiated");
        if (shown(r).kind() == Value::Kind::object && !m.host().is_table(r) && function)
            throw opaque_error(m, f, "which keeps a function that uses what is differentiated");
        if (text && m.host().is_function(r))
            throw opaque_error(m, f, "which makes a function of a text that was made of a differentiated number");
        // A text made of followed values must not become a number again unnoticed.
        if (shown(r).kind() == Value::Kind::string) r.set_marks(followed_by(contexts));
    }
    m.give(to, std::move(results), {});
}

// Whether one of the tensors in lists is followed: a parameter, or a tensor that was overwritten.
bool lists_followed(Machine& m, const Context& context, const Value& list) {
    bool found = false;
    m.host().for_each_table(list, [&](const Value& t) {
        for (int64_t i = 1; !found; ++i) {
            const Value item = m.host().raw_get(t, Value(i));
            if (item.is_nil()) break;
            found = item.is_tensor() && context.find(item);
        }
    });
    return found;
}

// Whether an operator that writes into its operands touches followed values.
bool writes_followed(Machine& m, const Op& op, std::span<const Value> contexts, const Values& args) {
    if (!op.writes()) return false;
    return std::any_of(contexts.begin(), contexts.end(), [&](const Value& c) {
        const auto& context = *static_cast<Context*>(c.object());
        return std::any_of(args.begin(), args.end(), [&](const Value& v) {
            return reaches(m, context, v) || (v.is_tensor() && context.find(v)) ||
                   (m.host().is_table(v) && lists_followed(m, context, v));
        });
    });
}

// Whether the function's own nodes are operators, as in loaded programs; functions written in Lua call operators.
bool computes(const ir::Graph& graph) {
    return std::ranges::any_of(graph.body(),
                               [](const ir::Node* node) { return node->op && !node->op->belongs_to(lua::language()); });
}

bool all_nil(const Values& values) {
    return std::all_of(values.begin(), values.end(), [](const Value& v) { return v.is_nil(); });
}

// Zeros for results that nothing depends on.
void fill_cotangents(std::span<const Value> results, Values& cotangents) {
    static const Op& zeros_like = registry().get("zeros_like");
    cotangents.resize(results.size());
    for (size_t k = 0; k < results.size(); ++k) {
        const Value& y = results[k];
        if (!cotangents[k].is_nil()) continue;
        if (y.is_tensor() && is_float(y.tensor().dtype()))
            cotangents[k] = execute(zeros_like, std::array{y, zeros_like.signature.params[1].default_value});
        else if (shown(y).kind() == Value::Kind::number)
            cotangents[k] = Value(0.0);
    }
}

}  // namespace

void Machine::enter(const OperatorFunction& function, std::span<const Value> contexts, Values args,
                    const Destination& to) {
    Function& plain = contexts.empty() ? *function.function : for_batch(*function.function);
    Function& derivative = derivative_of(plain, static_cast<int>(contexts.size()));
    enter(derivative, make_object<Closure>(derivative, function.owner, Values()), contexts, {}, std::move(args), to);
}

void Machine::call_operator(const Op& op, std::span<const Value> contexts, Values args, const Destination& to) {
    if (region_ && !contexts.empty() && call_batched(op, contexts, args, to)) return;
    if (contexts.size() > 1 || (contexts.size() == 1 && autodiff::needs_expansion(op))) {
        uint16_t bits = 0;
        for (const Value& v : args) bits |= marks_of(v);
        if (bits & followed_by(contexts)) {
            settle_numbers(args);
            refuse_attributes(op, args, followed_by(contexts));
            // Also while a batch runs, which does not concern these arguments.
            const OperatorFunction function = operator_function(op, args);
            Function& derivative = derivative_of(*function.function, static_cast<int>(contexts.size()));
            return enter(derivative, make_object<Closure>(derivative, function.owner, Values()), contexts, {},
                         std::move(args), to);
        }
    }
    apply_operator(op, contexts, args, to);
}

void Machine::apply_operator(const Op& op, std::span<const Value> contexts, std::span<const Value> args,
                             const Destination& to) {
    Value result = execute(op, args);
    Value back;
    uint16_t bits = 0;
    for (const Value& v : args) bits |= marks_of(v);
    if (bits) {
        inherit_marks(op, result, bits);
        if (!contexts.empty()) {
            refuse_attributes(op, args, followed_by(contexts));
            back = make_pullback_in(*static_cast<Context*>(contexts[0].object()), op, args, result);
        }
    }
    const bool several = result.is_list() && !op.signature.results.empty();
    if (several || (result.is_list() && !result.items().empty() && result.items()[0].is_tensor()))
        return give(to, Values(result.items()), {&back, 1});
    give_one(to, std::move(result), std::move(back));
}

void Machine::call_operator_by(const Op& op, bool ready, std::span<const Value> contexts, Values args,
                               const Destination& to) {
    if (ready || complete(op, args, followed_by(contexts))) return call_operator(op, contexts, std::move(args), to);
    if (!contexts.empty()) return call_bound(op, contexts, std::move(args), to);
    Host::Bound bound = host().bind(op, args);
    call_operator(op, contexts, std::move(bound.args), to);
}

void Machine::call(const Value& f, std::span<const Value> contexts, Values args, const Destination& to) {
    for (const Value& c : contexts)
        if (!args.empty() && static_cast<Context*>(c.object())->is_keyed(args[0]) && host().gives_keys(f))
            throw argument_error("grad",
                                 "no gradient flows through the keys of a table, among which is a number that "
                                 "is differentiated")
                .hint("keep the numbers in values, or pass t[ms.stop_gradient(x)] where no gradient is wanted");
    if (Watcher* w = watcher()) [[unlikely]]
        if (w->before_call(*this, f, contexts, args, to)) return;
    const int order = static_cast<int>(contexts.size());
    if (auto* closure = object_as<Closure>(f)) {
        if (has_box(contexts, args) && computes(whole_graph(*closure->function)))
            return call_of_contents(f, contexts, std::move(args), to);
        return enter(derivative_of(*closure->function, order), f, contexts, closure->captures, std::move(args), to);
    }
    if (auto* batched = object_as<BatchedFunction>(f)) return batched->call(*this, contexts, std::move(args), to);
    if (auto* native = object_as<NativeFunction>(f)) return coroutines_.call(*native, contexts, std::move(args), to);
    auto instead_of = [&](const Op& op) {
        return writes_followed(*this, op, contexts, args) ? host().stand_in(f) : Value();
    };
    if (const Op* op = host().operator_in(f)) {
        if (Value other = instead_of(*op)) return call(other, contexts, std::move(args), to);
        if (has_box(contexts, args)) return call_of_contents(f, contexts, std::move(args), to);
        return call_operator_by(*op, false, contexts, std::move(args), to);
    }
    Callee callee = host().resolve(f);
    if (callee.kind == Callee::Kind::op)
        if (Value other = instead_of(*callee.op)) return call(other, contexts, std::move(args), to);
    if (order > 0 && !callee.prefix.empty()) {
        // The caller does not know of the arguments inserted before its own and expects no cotangents of them, so they
        // are captured.
        const OperatorFunction& bound = prelude(Prelude::bound);
        Value method = callee.closure;
        for (const Value& first : callee.prefix)
            method = make_object<Closure>(*bound.function, bound.owner, Values{method, first});
        return call(method, contexts, std::move(args), to);
    }
    for (const Value& first : callee.prefix) args.push_front(first);
    switch (callee.kind) {
        case Callee::Kind::op:
            if (has_box(contexts, args))
                return call_of_contents(callee.closure.is_nil() ? f : callee.closure, contexts, std::move(args), to);
            return call_operator_by(*callee.op, operator_of(f) != nullptr, contexts, std::move(args), to);
        case Callee::Kind::closure:
        case Callee::Kind::function: {
            // Undifferentiated, a function of the host is called by the host.
            if (order == 0 && !callee.intrinsic) break;
            Destination there = to;
            there.stays |= callee.keeps_caller;
            if (callee.takes && !callee.takes(callee.kinds, args)) {
                if (callee.otherwise) return call(callee.otherwise, contexts, std::move(args), there);
                return call_opaque(*this, f, contexts, args, to);
            }
            Function& function = derivative_of(*callee.function, order);
            return enter(function, callee.closure, contexts, std::move(callee.captures), std::move(args), there,
                         callee.owner);
        }
        default:
            break;
    }
    call_opaque(*this, callee.closure.is_nil() ? f : callee.closure, contexts, args, to);
}

void Machine::call_of_contents(const Value& f, std::span<const Value> contexts, Values args, const Destination& to) {
    const OperatorFunction& function = contents_function(args.size());
    call(make_object<Closure>(*function.function, function.owner, Values{f}), contexts, std::move(args), to);
}

void Machine::call_host(const Value& f, std::span<const Value> contexts, Values args, const Destination& to) {
    call_opaque(*this, f, contexts, args, to);
}

void Machine::pull(Value r, std::span<const Value> contexts, Values cotangents, const Destination& to) {
    r = without_leavings(std::move(r), contexts, cotangents);
    auto* closure = object_as<Closure>(r);
    if (!closure) {
        if (!r.is_nil()) throw state_error("autodiff", "a backpropagator is no closure");
        return give(to, {}, {});
    }
    Function& plain = *closure->function;
    if (&plain.graph == &autodiff::custom_back()) {
        // The user's function expects a cotangent for each result.
        if (all_nil(cotangents)) return give(to, {}, {});
        fill_cotangents(closure->captures[2].items(), cotangents);
    }
    if (plain.rule) {
        if (all_nil(cotangents)) return give(to, {}, {});
        writes_.check(*closure);
        const auto& parameters = plain.graph.parameters();
        cotangents.resize(parameters.size() - plain.graph.captures);
        for (size_t k = 0; k < cotangents.size(); ++k)
            cotangents[k] = full_cotangent(parameters[plain.graph.captures + k]->type, std::move(cotangents[k]));
    }
    // The last call gets the residuals, so that each is dropped right after its use.
    Values captures = captures_of(r);
    Function& function = derivative_of(contexts.empty() ? plain : for_batch(plain), static_cast<int>(contexts.size()));
    enter(function, std::move(r), contexts, std::move(captures), std::move(cotangents), to);
}

namespace {

void call(Machine& m, const Instr& i) {
    Value f = m.operand(i, 0);
    m.call(f, {}, m.values(m.slot(i, 1)), Machine::destination(i));
}

void pull(Machine& m, const Instr& i) {
    if (m.pull_rule(i)) return;
    Value r = m.take(m.slot(i, 0));
    m.pull(std::move(r), {}, m.values(m.slot(i, 1)), Machine::destination(i));
}

void j_call(Machine& m, const Instr& i) {
    Values kept;
    const std::span<const Value> contexts = m.contexts_of(i, kept);
    const Op* op = contexts.size() == 1 && calls_directly() ? m.host().operator_in(m.operand(i, 1)) : nullptr;
    const Slot& list = m.slot(i, 2);
    if (op && list.items > 0 && !watcher() &&
        m.elementwise().follow(m, *op, i, m.items(list), *static_cast<Context*>(contexts[0].object())))
        return;
    Values args = m.values(m.slot(i, 2));
    if (op && !op->writes() && !autodiff::needs_expansion(*op) && !Machine::has_box(contexts, args) &&
        complete(*op, args, followed_by(contexts)))
        return m.apply_operator(*op, contexts, args, Machine::destination(i));
    Value f = m.operand(i, 1);
    m.call(f, contexts, std::move(args), Machine::destination(i));
}

void j_pull(Machine& m, const Instr& i) {
    Values kept;
    const std::span<const Value> contexts = m.contexts_of(i, kept);
    Value r = m.take(m.slot(i, 1));
    m.pull(std::move(r), contexts, m.values(m.slot(i, 2)), Machine::destination(i));
}

// Operators with their arguments in order, in rules and expansions.
void j_op(Machine& m, const Instr& i) {
    Values args = m.values(m.slot(i, 2));
    const Value context = m.operand(i, 0);
    auto& own = *static_cast<Context*>(context.object());
    const uint16_t mark = own.mark;
    uint16_t bits = 0;
    for (const Value& v : args) bits |= marks_of(v);
    if (i.op->belongs_to(lua::language())) {
        const bool open = watcher() && std::ranges::any_of(args, is_open);
        Value result = open ? watcher()->compute(*i.op, args) : lua::run_number(*i.op, args);
        result.set_marks(bits);
        Value back = bits & mark ? make_pullback(*i.op, args, result, mark) : Value();
        if (i.out >= 0) m.reg(i.out) = std::move(result);
        if (i.r_out >= 0) m.reg(i.r_out) = std::move(back);
        return;
    }
    if ((bits & mark) && autodiff::needs_expansion(*i.op)) {
        settle_numbers(args);
        OperatorFunction f = operator_function(*i.op, args);
        Destination to = Machine::destination(i);
        to.pack = m.operand(i, 3).integer() > 0;
        return m.enter(f, {&context, 1}, std::move(args), to);
    }
    Value result = execute(*i.op, args);
    Value back;
    if (bits) {
        inherit_marks(*i.op, result, bits);
        back = make_pullback_in(own, *i.op, args, result);
    }
    if (i.out >= 0) m.reg(i.out) = std::move(result);
    if (i.r_out >= 0) m.reg(i.r_out) = std::move(back);
}

void make_pull(Machine& m, const Instr& i) {
    Values args = m.values(m.slot(i, 2));
    const uint16_t mark = static_cast<Context*>(m.operand(i, 0).object())->mark;
    m.set(i, make_pullback(*i.op, args, m.operand(i, 3), mark));
}

void closure(Machine& m, const Instr& i) {
    const auto* graph = reinterpret_cast<const ir::Graph*>(static_cast<intptr_t>(m.operand(i, 0).integer()));
    auto* made = new Closure(function_of(*graph), m.owner());
    Value v = Value::adopt(made);
    made->captures = m.values(m.slot(i, 1));
    m.set(i, std::move(v));
}

void current_function(Machine& m, const Instr& i) { m.set(i, m.callee()); }

}  // namespace

void handle_operator(Machine& m, const Instr& i) {
    Values args;
    args.reserve(i.slot_count);
    uint16_t bits = 0;
    for (uint32_t k = 0; k < i.slot_count; ++k) {
        const Slot& s = m.slot(i, k);
        args.push_back(s.items >= 0 ? m.value(s) : m.take(s));
        bits |= args.back().marks();
    }
    Value result = execute_consuming(*i.op, {args.begin(), args.size()});
    if (bits) inherit_marks(*i.op, result, bits);
    m.set(i, std::move(result));
}

namespace {

void set_view(Machine& m, const Instr& i, Tensor view, uint16_t marks) {
    Value result(std::move(view));
    result.set_marks(marks);
    m.set(i, std::move(result));
}

}  // namespace

void handle_reshape(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    const Shape& shape = i.node->type.tensor.shape;
    if (!v.is_tensor() || v.tensor().size() != shape.size() || watcher()) return handle_operator(m, i);
    set_view(m, i, v.tensor().reshaped(shape), v.marks());
}

void handle_transpose(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    if (!v.is_tensor() || v.tensor().rank() != 2 || watcher()) return handle_operator(m, i);
    const Tensor t = row_major(v.tensor());
    Shape shape = t.shape();
    Strides strides = t.strides();
    std::swap(shape[0], shape[1]);
    std::swap(strides[0], strides[1]);
    set_view(m, i, t.view(shape, strides), v.marks());
}

void handle_broadcast(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    if (!v.is_tensor() || v.tensor().rank() != 0 || watcher()) return handle_operator(m, i);
    const Shape& shape = i.node->type.tensor.shape;
    Strides strides;
    strides.resize(shape.rank(), 0);
    set_view(m, i, v.tensor().view(shape, strides), v.marks());
}

std::span<const NamedHandler> call_handlers() {
    static constexpr NamedHandler list[] = {
        {"call", call}, {"pull", pull},           {"j_call", j_call},   {"j_pull", j_pull},
        {"j_op", j_op}, {"make_pull", make_pull}, {"closure", closure}, {"current_function", current_function},
    };
    return list;
}

}  // namespace lunaria::vm
