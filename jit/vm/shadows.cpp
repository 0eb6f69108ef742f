// Primitives of differentiation: marks of followed values, and the cotangents of objects with an identity.
#include <algorithm>

#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/split_rule.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

// Programs can reach some of these functions, too, with any values.
void check_given(Machine& m, const Value& v, bool fits, const char* what) {
    if (!fits) throw argument_error("derivative", str(what, " is expected, got ", m.host().describe(v)));
}

Context& context_of(const Value& v) { return *static_cast<Context*>(v.object()); }

Value shadow_value(Shadow* shadow) { return shadow ? share(*shadow) : Value(); }

Shadow* shadow_at(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    return v.is_nil() ? nullptr : static_cast<Shadow*>(v.object());
}

void source(Machine& m, const Instr& i) {
    m.set(i, shadow_value(context_of(m.operand(i, 0)).source(m.operand(i, 1), m.operand(i, 2))));
}

bool holds_text(const Value& v) {
    return shown(v).kind() == Value::Kind::string || (v.is_list() && std::ranges::any_of(v.items(), holds_text));
}

// Notes the values written into a table: one under a key, or a list of them from the position `from` on; and those that
// a closure captures.
void note_written(Machine& m, const Instr& i, Shadow& shadow, uint16_t mark) {
    const Value &key = m.operand(i, 3), &from = m.operand(i, 4);
    const Slot& values = m.slot(i, 2);
    if (values.items >= 0 && from.is_nil()) {
        for (const Slot& s : m.items(values)) {
            const Value& v = m.value(s);
            if (shown(v).is_number() || key.kind() == Value::Kind::string || key.is_nil())
                shadow.note(key, (marks_of(v) & mark) != 0);
        }
        return;
    }
    const auto note = [&](const Value& v, size_t k) {
        if (shown(v).is_number())
            shadow.note(from.is_nil() ? Value() : Value(from.integer() + static_cast<int64_t>(k) + 1),
                        (marks_of(v) & mark) != 0);
    };
    size_t k = 0;
    if (values.items >= 0)
        for (const Slot& s : m.items(values)) note(m.value(s), k++);
    else if (const Value& list = m.get(values); list.is_list())
        for (const Value& v : list.items()) note(v, k++);
}

void touch(Machine& m, const Instr& i) {
    Context& context = context_of(m.operand(i, 0));
    const Value& holder = m.operand(i, 1);
    if (holder.is_nil()) return m.set(i, Value());
    const Value& key = m.operand(i, 3);
    if (shown(key).kind() == Value::Kind::number && (key.marks() & context.mark)) context.note_keyed(holder);
    bool followed = false, texts = false;
    auto look = [&](const Value& v) {
        if (!(marks_of(v) & context.mark)) return;
        followed = true;
        texts |= holds_text(v);
    };
    const Slot& values = m.slot(i, 2);
    if (values.items >= 0) {
        for (const Slot& s : m.items(values)) look(m.value(s));
    } else {
        look(m.get(values));
    }
    Shadow* shadow = followed ? &context.shadow(holder) : context.find(holder);
    if (shadow) note_written(m, i, *shadow, context.mark);
    if (texts) shadow->note_text();
    m.set(i, shadow_value(shadow));
}

void box(Machine& m, const Instr& i) {
    Context& context = context_of(m.operand(i, 0));
    const Value &tensor = m.operand(i, 1), &value = m.operand(i, 2);
    if (Shadow* known = context.box(tensor)) return m.set(i, shadow_value(known));
    // Pullbacks made before refer to the tensor itself.
    m.writes().before_write(tensor.tensor(), context);
    const bool followed = ((tensor.marks() | value.marks()) & context.mark) != 0;
    Shadow* shadow = followed ? &context.shadow(tensor) : context.find(tensor);
    if (shadow) shadow->make_box();
    m.set(i, shadow_value(shadow));
}

void box_of(Machine& m, const Instr& i) { m.set(i, shadow_value(context_of(m.operand(i, 0)).box(m.operand(i, 1)))); }

void unless(Machine& m, const Instr& i) { m.set(i, m.operand(i, 0).is_nil() ? m.take(m.slot(i, 1)) : Value()); }

void shadow_of(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    check_given(m, v, object_as<Context>(v) != nullptr, "a derivative's context");
    m.set(i, shadow_value(context_of(m.operand(i, 0)).find(m.operand(i, 1))));
}

void mark_value(Value& v, uint16_t mark) {
    if (shown(v).kind() == Value::Kind::number || v.is_tensor()) {
        if (!v.is_tensor() || is_float(v.tensor().dtype()) || is_complex(v.tensor().dtype()))
            v.set_marks(v.marks() | mark);
    } else if (v.is_list()) {
        Values items = v.items();
        for (Value& item : items) mark_value(item, mark);
        uint16_t marks = v.marks() | mark;
        v = std::move(items).list();
        v.set_marks(marks);
    }
}

void mark(Machine& m, const Instr& i) {
    Value v = m.operand(i, 2);
    const Value& shadow = m.operand(i, 1);
    const uint16_t mark = context_of(m.operand(i, 0)).mark;
    const auto* holder = object_as<Shadow>(shadow);
    const bool plain = holder && shown(v).is_number() && !holder->follows_at(m.operand(i, 3));
    if (!shadow.is_nil() && !plain) mark_value(v, mark);
    if (shown(v).kind() == Value::Kind::string && holder && holder->has_texts()) v.set_marks(v.marks() | mark);
    m.set(i, std::move(v));
}

void follow(Machine& m, const Instr& i) {
    Value v = m.operand(i, 2);
    const Value from = m.operand(i, 1);
    const uint16_t mark = context_of(m.operand(i, 0)).mark;
    const bool always = from.is_list() && !from.items().empty() && from.items().back().kind() == Value::Kind::boolean;
    if (always || (marks_of(from) & mark)) mark_value(v, mark);
    m.set(i, std::move(v));
}

void stop(Machine& m, const Instr& i) {
    Value v = own_handle(m.operand(i, 0));
    v.set_marks(0);
    m.set(i, std::move(v));
}

void capture_key(Machine& m, const Instr& i) {
    const auto k = m.operand(i, 1).integer();
    auto* closure = object_as<Closure>(m.operand(i, 0));
    const bool keyed = closure && !closure->function->keys.empty();
    m.set(i, Value(keyed ? closure->function->keys.at(static_cast<size_t>(k)) : k));
}

void shadow_get(Machine& m, const Instr& i) {
    Shadow* s = shadow_at(m, i);
    m.set(i, s ? s->get(m.operand(i, 1)) : Value());
}

void shadow_take(Machine& m, const Instr& i) {
    Shadow* s = shadow_at(m, i);
    m.set(i, s ? s->take(shown(m.operand(i, 1))) : Value());
}

void shadow_put(Machine& m, const Instr& i) {
    if (Shadow* s = shadow_at(m, i)) s->put(m.operand(i, 1), m.operand(i, 2));
}

void shadow_add(Machine& m, const Instr& i) {
    if (Shadow* s = shadow_at(m, i)) s->add(m.operand(i, 1), m.operand(i, 2));
}

void shadow_items(Machine& m, const Instr& i) {
    Values items;
    const int64_t from = m.operand(i, 1).integer(), count = m.operand(i, 2).integer();
    if (Shadow* s = shadow_at(m, i))
        for (int64_t k = 1; k <= count; ++k) items.push_back(s->get(Value(from + k)));
    m.set(i, std::move(items).list());
}

void shadow_add_items(Machine& m, const Instr& i) {
    Shadow* s = shadow_at(m, i);
    const int64_t from = m.operand(i, 1).integer();
    Values items = m.values(m.slot(i, 2));
    if (!s) return;
    for (size_t k = 0; k < items.size(); ++k) s->add(Value(from + static_cast<int64_t>(k) + 1), items[k]);
}

void new_context(Machine& m, const Instr& i) {
    // Each level has a mark of its own.
    constexpr int kMostNested = 10;
    if (m.depth >= kMostNested)
        throw argument_error("grad", str("derivatives are nested more than ", kMostNested, " deep"))
            .hint(
                "each level doubles the program, and the time it takes; high derivatives follow faster from a series");
    Value v = make_object<Context>(static_cast<uint16_t>(1u << m.depth), m.depth);
    ++m.depth;
    Value parameters = m.operand(i, 0);
    check_given(m, parameters, parameters.is_nil() || m.host().is_table(parameters), "a list of parameters");
    if (!parameters.is_nil()) {
        thread_local const Value later("later");
        auto& context = context_of(v);
        for (int64_t k = 1;; ++k) {
            Value p = m.host().raw_get(parameters, Value(k));
            if (p.is_nil()) break;
            context.shadow(p);
        }
        const Value leaves = m.host().raw_get(parameters, later);
        if (leaves.kind() == Value::Kind::boolean && leaves.boolean()) leave_parameters(context);
    }
    m.set(i, std::move(v));
}

void reset(Machine& m, const Instr& i) {
    Values contexts = m.values(m.slot(i, 0));
    Values objects = context_of(contexts.back()).shadows();
    for (size_t k = contexts.size() - 1; k-- > 0;) {
        Values next;
        for (const Value& object : objects)
            if (Shadow* s = context_of(contexts[k]).find(object)) next.push_back(share(*s));
        objects = std::move(next);
    }
    for (const Value& object : objects) static_cast<Shadow*>(object.object())->clear();
}

void mark_arguments(Machine& m, const Instr& i) {
    Context& context = context_of(m.operand(i, 0));
    Value positions = m.operand(i, 1);
    Values args = m.values(m.slot(i, 2));
    check_given(m, positions, positions.kind() == Value::Kind::integer || m.host().is_table(positions),
                "a position or a table of them");
    auto wanted = [&](size_t k) {
        const Value position(static_cast<int64_t>(k));
        if (positions.kind() == Value::Kind::integer) return positions.integer() == position.integer();
        return !m.host().raw_get(positions, position).is_nil();
    };
    uint16_t marks = 0;
    for (size_t k = 0; k < args.size(); ++k) {
        if (wanted(k)) {
            if (m.host().is_table(args[k]))
                m.host().for_each_table(args[k], [&](const Value& t) { context.shadow(t).note({}, true); });
            else
                mark_value(args[k], context.mark);
        }
        marks |= args[k].marks();
    }
    Value v = std::move(args).list();
    v.set_marks(marks);
    m.set(i, std::move(v));
}

// A value in the words of messages about a function's results.
std::string text_of(Machine& m, const Value& v) {
    if (!v.is_tensor()) return m.host().describe(v);
    const Tensor& t = v.tensor();
    // Lua's handles write the shape of a vector as (2,).
    std::string text = str("a tensor of dtype ", name_of(t.dtype()), " and shape ");
    return t.rank() == 1 ? str(text, "(", t.dim(0), ",)") : str(text, t.shape());
}

void seed(Machine& m, const Instr& i) {
    const Value& given = m.operand(i, 0);
    check_given(m, given, given.kind() == Value::Kind::string, "a name");
    const std::string& name = given.string();
    const Value& results = m.operand(i, 1);
    Value y = results.is_list() && !results.items().empty() ? results.items()[0] : Value();
    if (shown(y).is_number()) return m.set(i, Value(1.0));
    if (!y.is_tensor())
        throw argument_error(name, str("the function must return a tensor or a number, got ", text_of(m, y)));
    const Tensor& t = y.tensor();
    if (t.size() != 1)
        throw argument_error(name, str("the function must return a scalar, got ", text_of(m, y)))
            .hint("reduce it (ops.sum(y), ops.mean(y)), or use ms.vjp or ms.jacrev");
    if (!is_float(t.dtype()) && !is_complex(t.dtype()))
        throw argument_error(name, str("the function must return a float, got ", text_of(m, y)));
    if (!watcher()) return m.set(i, Value(Tensor::full(t.dtype(), t.shape(), 1.0).to(t.device())));
    static const Op& ones_like = registry().get("ones_like");
    Values args;
    args.push_back(std::move(y));
    while (args.size() < ones_like.signature.params.size())
        args.push_back(ones_like.signature.params[args.size()].default_value);
    m.set(i, execute(ones_like, args));
}

void unmark_value(Value& v, uint16_t mark) {
    v.set_marks(v.marks() & static_cast<uint16_t>(~mark));
    if (!v.is_list()) return;
    uint16_t marks = v.marks();
    Values items = v.items();
    for (Value& item : items) unmark_value(item, mark);
    v = std::move(items).list();
    v.set_marks(marks);
}

void unmark(Machine& m, const Instr& i) {
    Context& context = context_of(m.operand(i, 0));
    m.depth = context.level;
    Value v = m.value(m.slot(i, 1));
    unmark_value(v, context.mark);
    m.set(i, std::move(v));
}

// Rules compute cotangents from values that are followed.
void give_out(Machine& m, const Instr& i) {
    Values given = m.values(m.slot(i, 1));
    uint16_t marks = 0;
    for (Value& v : given) {
        v = own_handle(v);
        unmark_value(v, context_of(m.operand(i, 0)).mark);
        marks |= v.marks();
    }
    Value list = std::move(given).list();
    list.set_marks(marks);
    m.set(i, std::move(list));
}

}  // namespace

std::span<const NamedHandler> shadow_handlers() {
    static constexpr NamedHandler list[] = {
        {"source", source},
        {"touch", touch},
        {"box", box},
        {"box_of", box_of},
        {"unless", unless},
        {"shadow_of", shadow_of},
        {"mark", mark},
        {"follow", follow},
        {"stop", stop},
        {"capture_key", capture_key},
        {"shadow_get", shadow_get},
        {"shadow_take", shadow_take},
        {"shadow_put", shadow_put},
        {"shadow_add", shadow_add},
        {"shadow_items", shadow_items},
        {"shadow_add_items", shadow_add_items},
        {"new_context", new_context},
        {"reset", reset},
        {"mark_arguments", mark_arguments},
        {"unmark", unmark},
        {"give_out", give_out},
        {"seed", seed},
    };
    return list;
}

}  // namespace lunaria::vm
