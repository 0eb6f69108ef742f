// Calls with a given derivative, or one found by a repeated call (ms.custom_vjp, ms.checkpoint). The backward pass
// needs their arguments and all that they use as they were. The calls get handles of their own on the arguments, which
// no later write by others changes, and must not write into them: such a write would have no derivative.
#include "core/base/error.h"
#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

bool changed(const Value& tensor, const Value& version) {
    return static_cast<int64_t>(tensor.tensor().version()) != version.integer();
}

// Tensors and their versions, alternating.
void watch_tensor(std::vector<Value>& list, const Value& v) {
    list.push_back(v);
    list.push_back(Value(static_cast<int64_t>(v.tensor().version())));
}

void given_call(Machine& m, const Instr& i) {
    Value f = m.operand(i, 0);
    m.call(f, {}, m.values(m.slot(i, 2)), Machine::destination(i));
}

void hold(Machine& m, const Instr& i) {
    Values held = m.values(m.slot(i, 0));
    uint16_t marks = 0;
    for (Value& v : held) {
        marks |= v.marks();
        v = own_handle(v);
    }
    Value list = std::move(held).list();
    list.set_marks(marks);
    m.set(i, std::move(list));
}

void watch(Machine& m, const Instr& i) {
    const auto& context = *static_cast<Context*>(m.operand(i, 0).object());
    const Value f = m.operand(i, 1);
    const bool again = m.operand(i, 3).boolean();
    std::vector<Value> list;
    for (const Value& v : m.values(m.slot(i, 2)))
        if (v.is_tensor()) watch_tensor(list, v);
    const auto* closure = object_as<Closure>(f);
    for (const Value& capture : closure ? closure->captures : m.host().resolve(f).captures) {
        const auto* cell =
            capture.kind() == Value::Kind::object ? dynamic_cast<const Cell*>(capture.object()) : nullptr;
        const Value v = cell ? cell->get() : capture;
        // A value that is not followed may be written by a function that runs only once.
        if (v.is_tensor() && (again || (v.marks() & context.mark) || context.box(v))) watch_tensor(list, v);
    }
    m.set(i, Value::list(std::move(list)));
}

void unwritten(Machine& m, const Instr& i) {
    const std::string name(m.operand(i, 0).string());
    const Values arguments = m.values(m.slot(i, 1)), held = m.values(m.slot(i, 2)), watched = m.values(m.slot(i, 3));
    Values results = m.values(m.slot(i, 4));
    for (size_t k = 0; k + 1 < watched.size(); k += 2) {
        if (!changed(watched[k], watched[k + 1])) continue;
        std::string which = "a tensor that it uses";
        for (size_t j = 0; j < held.size(); ++j)
            if (held[j].is_tensor() && held[j].tensor().body() == watched[k].tensor().body())
                which = str("its argument ", j);
        throw state_error(name, str("the function writes into ", which, ", ", watched[k].tensor().shape(),
                                    ", in place, which has no derivative there"))
            .hint("write into a copy of it (v = v:clone()) and return that");
    }
    // A function that returns an argument returns the caller's tensor itself.
    uint16_t marks = 0;
    for (Value& v : results) {
        for (size_t j = 0; v.is_tensor() && j < held.size(); ++j) {
            if (!held[j].is_tensor() || held[j].tensor().body() != v.tensor().body()) continue;
            const uint16_t own = v.marks();
            v = arguments[j];
            v.set_marks(own);
            break;
        }
        marks |= v.marks();
    }
    Value list = std::move(results).list();
    list.set_marks(marks);
    m.set(i, std::move(list));
}

// The required form of a cotangent for an argument, and its actual form; empty if the cotangent is valid.
std::string wrong_cotangent(Machine& m, const Value& argument, const Value& cotangent) {
    const Value given = shown(cotangent);
    if (given.is_nil()) return {};
    if (shown(argument).is_number()) {
        if (given.is_number() || (given.is_tensor() && given.tensor().size() == 1)) return {};
        return str("a number, got ",
                   given.is_tensor() ? str("a tensor of shape ", given.tensor().shape()) : m.host().describe(given));
    }
    if (!argument.is_tensor()) return {};
    const Shape& shape = argument.tensor().shape();
    if (given.is_number() && (shape.size() == 1 || given.number() == 0)) return {};
    if (given.is_tensor() && given.tensor().shape() == shape) return {};
    return str("a tensor of shape ", shape, " like it, got ",
               given.is_tensor() ? str("one of shape ", given.tensor().shape()) : m.host().describe(given));
}

void given_cotangents(Machine& m, const Instr& i) {
    const Values arguments = m.values(m.slot(i, 0));
    Values cotangents = m.values(m.slot(i, 1));
    uint16_t marks = 0;
    for (size_t k = 0; k < cotangents.size(); ++k) {
        marks |= cotangents[k].marks();
        if (k >= arguments.size()) continue;
        const std::string wrong = wrong_cotangent(m, arguments[k], cotangents[k]);
        if (!wrong.empty())
            throw shape_error("custom_vjp", str("the gradient that is given for argument ", k, " must be ", wrong))
                .hint("sum over what was broadcast (ops.sum with the axis), or reshape it to x.shape");
    }
    Value list = std::move(cotangents).list();
    list.set_marks(marks);
    m.set(i, std::move(list));
}

void unchanged(Machine& m, const Instr& i) {
    const Values watched = m.values(m.slot(i, 0));
    for (size_t k = 0; k + 1 < watched.size(); k += 2)
        if (changed(watched[k], watched[k + 1]))
            throw state_error("checkpoint", str("a tensor that the function uses, ", watched[k].tensor().shape(),
                                                ", was written in place after the call and before its gradient"))
                .hint("pass it as an argument of the function, or write into a copy (w = w:clone())");
}

}  // namespace

Value own_handle(const Value& v) {
    if (!v.is_tensor()) return v;
    static const Op& identity = registry().get("identity");
    // A recording watcher identifies tensors by their handles.
    Watcher* w = watcher();
    Value held = w && w->records() ? w->run(identity, {&v, 1}) : Value(v.tensor().apart());
    held.set_marks(v.marks());
    return held;
}

std::span<const NamedHandler> given_handlers() {
    static constexpr NamedHandler list[] = {
        {"custom_call", given_call},
        {"checkpoint_call", given_call},
        {"hold", hold},
        {"watch", watch},
        {"unwritten", unwritten},
        {"unchanged", unchanged},
        {"given_cotangents", given_cotangents},
    };
    return list;
}

}  // namespace lunaria::vm
