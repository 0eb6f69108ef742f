// Lua's own operations: arithmetic, comparison, tables, variables, lists of results, numeric loops.
#include <algorithm>
#include <cmath>

#include "core/base/interrupt.h"
#include "core/tensor/element.h"
#include "jit/language.h"
#include "jit/number.h"
#include "jit/vm/cycles.h"
#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

namespace {

// Arithmetic, `contexts.size()` times differentiated. `operands`: one or two.
void arithmetic(Machine& m, const Op& primitive, std::span<const Value> contexts, Values operands,
                const Destination& to) {
    if (Watcher* w = watcher()) [[unlikely]]
        w->settle_operands(primitive, operands);
    bool numbers = true, tensor = false, open = false;
    for (const Value& v : operands) {
        numbers &= shown(v).is_number();
        tensor |= v.is_tensor();
        open |= is_open(v);
    }
    if (numbers) {
        uint16_t bits = 0;
        for (const Value& v : operands) bits |= v.marks();
        if (bits && contexts.size() > 1) {
            return m.enter(number_function(primitive), contexts, std::move(operands), to);
        }
        Value result = open ? watcher()->compute(primitive, operands) : lua::run_number(primitive, operands);
        Value back;
        if (bits) {
            if (shown(result).kind() == Value::Kind::number) result.set_marks(bits);
            if (!contexts.empty())
                back = make_pullback(primitive, operands, result, static_cast<Context*>(contexts[0].object())->mark);
        }
        return m.give_one(to, std::move(result), std::move(back));
    }
    if (tensor) {
        if (open && contexts.empty()) settle_numbers(operands);
        bool plain = true;
        for (const Value& v : operands) plain &= v.is_tensor() || shown(v).is_number();
        if (plain)
            if (const Op* op = m.host().tensor_operator(primitive)) {
                uint16_t bits = 0;
                for (const Value& v : operands)
                    if (shown(v).is_number()) bits |= v.marks();
                const auto& params = op->signature.params;
                if (!open && !(bits & followed_by(contexts))) {
                    for (size_t i = operands.size(); i < params.size(); ++i)
                        operands.push_back(params[i].default_value);
                    if (Machine::has_box(contexts, operands))
                        return m.call_of_contents(operator_value(*op), contexts, std::move(operands), to);
                    return m.call_operator(*op, contexts, std::move(operands), to);
                }
                return m.call_bound(*op, contexts, std::move(operands), to);
            }
    }
    const Value& b = operands.size() > 1 ? operands[1] : operands[0];
    Value method = m.host().metamethod(operands[0], b, lua::facts(primitive).event);
    if (!method.is_nil()) {
        Values args{operands[0], b};
        return m.call(method, contexts, std::move(args), to);
    }
    refuse_followed_text(contexts, operands);
    // A text that is a number counts as that number beside a followed one.
    bool texts = false, followed = false;
    for (const Value& v : operands) {
        texts |= v.kind() == Value::Kind::string;
        followed |= v.marks() != 0;
    }
    if (texts && followed) {
        // An operand that is no number is an error of this operation.
        m.host().arithmetic(primitive, operands[0], b);
        static const Op& sub = lua::primitive("sub");
        for (Value& v : operands)
            if (v.kind() == Value::Kind::string) v = m.host().arithmetic(sub, v, Value(0));
        return arithmetic(m, primitive, contexts, std::move(operands), to);
    }
    Values results{m.host().arithmetic(primitive, operands[0], b)};
    m.give(to, std::move(results), {});
}

Destination one(const Instr& i) {
    Destination to = Machine::destination(i);
    to.results = 1;
    to.returns = false;
    return to;
}

void plain_arithmetic(Machine& m, const Instr& i) {
    Values operands;
    for (uint32_t k = 0; k < i.slot_count; ++k) operands.push_back(m.take(m.slot(i, k)));
    arithmetic(m, *i.op, {}, std::move(operands), one(i));
}

void j_arith(Machine& m, const Instr& i) {
    Values kept;
    const std::span<const Value> contexts = m.contexts_of(i, kept);
    const std::span<const Slot> operands = m.items(m.slot(i, 2));
    const bool arithmetical = lua::facts(*i.op).is_arithmetic();
    if (contexts.size() == 1 && !watcher() && m.get(operands[0]).is_tensor() && arithmetical)
        if (const Op* op = m.host().tensor_operator(*i.op);
            op && m.elementwise().follow(m, *op, i, operands, *static_cast<Context*>(contexts[0].object())))
            return;
    if (arithmetical) return arithmetic(m, *i.op, contexts, m.values(m.slot(i, 2)), one(i));
    operate(m, *i.op, contexts, m.values(m.slot(i, 2)), one(i));
}

void index_object(Machine& m, std::span<const Value> contexts, const Value& object, const Value& key,
                  const Destination& to) {
    if (m.host().is_table(object)) {
        Field field = m.host().find_field(object, key);
        if (field.raw && contexts.size() > 1) {
            return m.enter(prelude(Prelude::raw_index), contexts, {field.holder, key}, to);
        }
        if (field.raw) {
            Value back;
            if (!contexts.empty()) {
                auto& context = *static_cast<Context*>(contexts[0].object());
                if (Shadow* shadow = context.source(field.holder, field.value)) {
                    const Value& held = shown(field.value);
                    if (held.is_tensor() || (held.is_number() && shadow->follows_at(key)) ||
                        (held.kind() == Value::Kind::string && shadow->has_texts()))
                        field.value.set_marks(field.value.marks() | context.mark);
                    const OperatorFunction& f = prelude(Prelude::shadow_add);
                    back = make_object<Closure>(*f.function, f.owner, Values{share(*shadow), key});
                }
            }
            return m.give_one(to, std::move(field.value), std::move(back));
        }
        if (!field.method.is_nil()) return m.call(field.method, contexts, {field.holder, key}, to);
        return m.give_one(to, Value(), Value());
    }
    const bool box = object.is_tensor() && Machine::has_box(contexts, {&object, 1});
    if (box || (object.is_tensor() && object.marks() && !contexts.empty())) {
        // A part of a tensor: the function that the index stands for.
        Host::Part part = m.host().part_of(object, key);
        if (part.function && box) return m.enter(prelude(Prelude::content_index), contexts, {object, key}, to);
        if (part.function) {
            part.args.insert(part.args.begin(), object);
            return m.enter({&function_of(*part.function), part.function}, contexts, std::move(part.args), to);
        }
        Value field = m.host().index(object, key);
        if (field.is_tensor() && is_float(field.tensor().dtype()))
            throw state_error("grad", str("no gradient flows through the field '", key.string(), "' of a tensor"));
        return m.give_one(to, std::move(field), Value());
    }
    m.give_one(to, m.host().index(object, key), Value());
}

void index(Machine& m, const Instr& i) {
    Value object = m.operand(i, 0), key = m.operand(i, 1);
    index_object(m, {}, object, key, one(i));
}

void j_index(Machine& m, const Instr& i) {
    Values kept;
    const std::span<const Value> contexts = m.contexts_of(i, kept);
    const Value &object = m.operand(i, 1), &key = m.operand(i, 2);
    index_object(m, contexts, object, key, one(i));
}

void set_field(Machine& m, std::span<const Value> contexts, const Value& object, const Value& key, const Value& value,
               const Destination& to) {
    if (m.host().is_table(object)) {
        Field field = m.host().find_new_field(object, key);
        if (field.raw && contexts.size() > 1) {
            return m.enter(prelude(Prelude::raw_set), contexts, {field.holder, key, value}, to);
        }
        if (field.raw) {
            m.host().raw_set(field.holder, key, value);
            Value back;
            if (!contexts.empty()) {
                auto& context = *static_cast<Context*>(contexts[0].object());
                if (shown(key).kind() == Value::Kind::number && (key.marks() & context.mark))
                    context.note_keyed(field.holder);
                Shadow* shadow =
                    value.marks() & context.mark ? &context.shadow(field.holder) : context.find(field.holder);
                if (shadow) {
                    if (shown(value).is_number() || key.kind() == Value::Kind::string)
                        shadow->note(key, (value.marks() & context.mark) != 0);
                    if (shown(value).kind() == Value::Kind::string && (value.marks() & context.mark))
                        shadow->note_text();
                    const OperatorFunction& f = prelude(Prelude::shadow_take);
                    back = make_object<Closure>(*f.function, f.owner, Values{share(*shadow), key});
                }
            }
            return m.give(to, {}, {&back, contexts.empty() ? 0u : 1u});
        }
        if (!field.method.is_nil()) return m.call(field.method, contexts, {field.holder, key, value}, to);
    }
    if (object.is_tensor()) {
        bool followed = ((object.marks() | value.marks()) & followed_by(contexts)) != 0;
        for (const Value& c : contexts) {
            const auto& context = *static_cast<Context*>(c.object());
            followed |= context.find(object) || context.box(value);
        }
        const bool named = key.kind() == Value::Kind::string && !m.host().is_part(key);
        if (followed && !named) {
            if (Machine::has_box(contexts, {&value, 1}))
                return m.enter(prelude(Prelude::content_set_index), contexts, {object, key, value}, to);
            Host::Part part = m.host().put_part(object, key, value);
            part.args.insert(part.args.begin(), object);
            return m.enter({&function_of(*part.function), part.function}, contexts, std::move(part.args), to);
        }
    }
    m.host().set_index(object, key, value);
    m.give(to, {}, {});
}

void set_index(Machine& m, const Instr& i) {
    Value object = m.operand(i, 0), key = m.operand(i, 1), value = m.operand(i, 2);
    set_field(m, {}, object, key, value, one(i));
}

void j_set_index(Machine& m, const Instr& i) {
    Values contexts = m.values(m.slot(i, 0));
    Value object = m.operand(i, 1), key = m.operand(i, 2), value = m.operand(i, 3);
    set_field(m, contexts, object, key, value, one(i));
}

void not_(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    m.set(i, Value(v.is_nil() || (v.kind() == Value::Kind::boolean && !v.boolean())));
}

// The table is as large as in Lua, since the length of a table with holes depends on its size.
Value sized_table(Machine& m, int64_t positional, size_t last, size_t fields) {
    return m.host().new_table(static_cast<size_t>(positional) + last, fields);
}

void new_table(Machine& m, const Instr& i) {
    const Slot& tail = m.slot(i, 1);
    const size_t last = tail.items >= 0         ? static_cast<size_t>(tail.items)
                        : m.get(tail).is_list() ? m.get(tail).items().size()
                                                : 0;
    m.set(i, sized_table(m, m.operand(i, 0).integer(), last, static_cast<size_t>(m.operand(i, 2).integer())));
}

void table(Machine& m, const Instr& i) {
    Values keys = m.values(m.slot(i, 0)), values = m.values(m.slot(i, 1));
    const Value& tail = m.operand(i, 3);
    const auto position = m.operand(i, 2).integer();
    const size_t last = tail.is_list() ? tail.items().size() : 0;
    Value t = sized_table(m, position, last, keys.size() - std::min(keys.size(), static_cast<size_t>(position)));
    for (size_t k = 0; k < keys.size(); ++k) m.host().raw_set(t, keys[k], values[k]);
    if (tail.is_list())
        for (size_t k = 0; k < last; ++k)
            m.host().raw_set(t, Value(position + static_cast<int64_t>(k) + 1), tail.items()[k]);
    m.set(i, std::move(t));
}

void table_extend(Machine& m, const Instr& i) {
    const int64_t from = m.operand(i, 1).integer();
    Values values = m.values(m.slot(i, 2));
    for (size_t k = 0; k < values.size(); ++k)
        m.host().raw_set(m.operand(i, 0), Value(from + static_cast<int64_t>(k) + 1), values[k]);
}

void raw_index(Machine& m, const Instr& i) {
    const Value& table = m.operand(i, 0);
    if (!m.host().is_table(table))
        throw argument_error("",
                             str("bad argument #1 to 'rawget' (table expected, got ", m.host().describe(table), ")"));
    m.set(i, m.host().raw_get(table, m.operand(i, 1)));
}
void raw_set(Machine& m, const Instr& i) { m.host().raw_set(m.operand(i, 0), m.operand(i, 1), m.operand(i, 2)); }

void spread(Machine& m, const Instr& i) {
    Values list = m.values(m.slot(i, 0));
    const Slot& tail = m.slot(i, 1);
    Values rest = m.values(tail);
    for (Value& v : rest) list.push_back(std::move(v));
    uint16_t marks = 0;
    for (const Value& v : list) marks |= v.marks();
    Value v = std::move(list).list();
    v.set_marks(marks);
    m.set(i, std::move(v));
}

void result(Machine& m, const Instr& i) {
    const Value& list = m.operand(i, 0);
    const auto k = static_cast<size_t>(m.operand(i, 1).integer());
    Value v = list.is_list() && k < list.items().size() ? list.items()[k] : Value();
    m.set(i, std::move(v));
}

void results_from(Machine& m, const Instr& i) {
    const Value& list = m.operand(i, 0);
    const auto k = m.operand(i, 1).integer();
    std::vector<Value> rest;
    if (list.is_list() && k < static_cast<int64_t>(list.items().size()))
        rest.assign(list.items().begin() + k, list.items().end());
    m.set(i, Value::list(std::move(rest)));
}

void list_at(Machine& m, const Instr& i) {
    std::vector<Value> list(static_cast<size_t>(m.operand(i, 0).integer()) + 1);
    list.back() = m.operand(i, 1);
    m.set(i, Value::list(std::move(list)));
}

void list_shift(Machine& m, const Instr& i) {
    std::vector<Value> list(static_cast<size_t>(m.operand(i, 0).integer()));
    const Value& rest = m.operand(i, 1);
    if (rest.is_list()) list.insert(list.end(), rest.items().begin(), rest.items().end());
    m.set(i, Value::list(std::move(list)));
}

void list_length(Machine& m, const Instr& i) {
    const Value& list = m.operand(i, 0);
    m.set(i, Value(static_cast<int64_t>(list.is_list() ? list.items().size() : 0)));
}

void cell(Machine& m, const Instr& i) {
    if (many_new_cells()) collect_cycles();
    m.set(i, make_object<LocalCell>(m.operand(i, 0)));
}
void cell_get(Machine& m, const Instr& i) { m.set(i, static_cast<Cell*>(m.operand(i, 0).object())->get()); }
void cell_set(Machine& m, const Instr& i) { static_cast<Cell*>(m.operand(i, 0).object())->set(m.operand(i, 1)); }

// Lua's rules for numeric loops: integers count their iterations beforehand, so that they never overflow.
void for_prepare(Machine& m, const Instr& i) {
    Value start = m.operand(i, 0), limit = m.operand(i, 1), step = m.operand(i, 2);
    static constexpr std::string_view kNames[] = {"initial value", "limit", "step"};
    const Value* values[] = {&start, &limit, &step};
    for (size_t k : {1, 2, 0})
        if (!values[k]->is_number())
            throw Error(ErrorKind::argument, "",
                        str("bad 'for' ", kNames[k], " (number expected, got ", m.host().describe(*values[k]), ")"));
    if (step.number() == 0) throw Error(ErrorKind::argument, "", "'for' step is zero");
    if (start.kind() == Value::Kind::integer && step.kind() == Value::Kind::integer) {
        const auto [last, count] = lua::turns_of(start.integer(), limit, step.integer());
        return m.set(i, Value::list({start, Value(last), step, Value(static_cast<int64_t>(count))}));
    }
    auto as_float = [](const Value& v) {
        Value f(v.number());
        f.set_marks(v.marks());
        return f;
    };
    m.set(i, Value::list({as_float(start), as_float(limit), as_float(step), Value(-1)}));
}

void for_more(Machine& m, const Instr& i) {
    const Value &at = m.operand(i, 0), &limit = m.operand(i, 1), &step = m.operand(i, 2), &count = m.operand(i, 3);
    const bool more = at.kind() == Value::Kind::integer ? count.integer() != 0
                      : step.number() > 0               ? at.number() <= limit.number()
                                                        : at.number() >= limit.number();
    m.set(i, Value(more));
}

void for_count(Machine& m, const Instr& i) { m.set(i, Value(m.operand(i, 0).integer() - 1)); }

void list_concat(Machine& m, const Instr& i) {
    Values list = m.values(m.slot(i, 0));
    for (Value& v : m.values(m.slot(i, 1))) list.push_back(std::move(v));
    uint16_t marks = 0;
    for (const Value& v : list) marks |= v.marks();
    Value v = std::move(list).list();
    v.set_marks(marks);
    m.set(i, std::move(v));
}

void accumulate_values(Machine& m, const Instr& i) {
    Value a = m.take(m.slot(i, 0)), b = m.take(m.slot(i, 1));
    const auto marks = static_cast<uint16_t>(a.marks() | b.marks());
    if (Value sum = sum_of_dense(a, b)) {
        sum.set_marks(marks);
        return m.set(i, std::move(sum));
    }
    m.set(i, accumulate(std::move(a), std::move(b)));
}

void to_number(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    if (!v.is_tensor()) return m.set(i, Value(v));
    Value only = only_element(v.tensor());
    Value n = watcher() ? watcher()->number_of(v) : std::move(only);
    n.set_marks(v.marks());
    m.set(i, std::move(n));
}

void overwrite(Machine& m, const Instr& i) {
    const Value written = m.operand(i, 0), value = m.operand(i, 1);
    if (!written.is_tensor() || !value.is_tensor())
        throw argument_error("overwrite", "two tensors are expected: what is written into, and what");
    if (Watcher* w = watcher(); w && w->records()) {
        static const Op& assign = registry().get("assign");
        const Value args[] = {written, value};
        w->run(assign, args);
    } else {
        Tensor(written.tensor()).assign("index", value.tensor());
    }
    m.set(i, written);
}

void content(Machine& m, const Instr& i) {
    const Value& v = m.operand(i, 0);
    const bool box = std::ranges::any_of(m.items(m.slot(i, 1)), [&](const Slot& s) { return !m.get(s).is_nil(); });
    // A value that was not written into yet needs no handle of its own: the first write keeps the old content.
    if (!box) return m.set(i, Value(v));
    m.set(i, own_handle(v));
}

void number_like(Machine& m, const Instr& i) {
    const Value &x = m.operand(i, 0), &t = m.operand(i, 1);
    if (!shown(x).is_number() || !t.is_tensor()) return m.set(i, Value(x));
    Value v = full(x, t.tensor().dtype(), t.tensor().shape());
    v.set_marks(x.marks());
    m.set(i, std::move(v));
}

void number_tensor(Machine& m, const Instr& i) {
    const Value& x = m.operand(i, 0);
    if (!shown(x).is_number()) return m.set(i, Value(x));
    Value v = full(x, m.operand(i, 1).dtype(), {});
    v.set_marks(x.marks());
    m.set(i, std::move(v));
}

}  // namespace

void handle_number(Machine& m, const Instr& i) {
    Values operands;
    uint16_t marks = 0;
    for (uint32_t k = 0; k < i.slot_count; ++k) {
        operands.push_back(m.operand(i, k));
        marks |= operands.back().marks();
    }
    Value result =
        std::ranges::any_of(operands, is_open) ? watcher()->compute(*i.op, operands) : lua::run_number(*i.op, operands);
    if (shown(result).kind() == Value::Kind::number) result.set_marks(marks);
    m.set(i, std::move(result));
}

std::span<const NamedHandler> value_handlers() {
    static constexpr NamedHandler list[] = {
        {"add", plain_arithmetic},
        {"sub", plain_arithmetic},
        {"mul", plain_arithmetic},
        {"div", plain_arithmetic},
        {"mod", plain_arithmetic},
        {"pow", plain_arithmetic},
        {"floor_div", plain_arithmetic},
        {"minus", plain_arithmetic},
        {"j_arith", j_arith},
        {"index", index},
        {"j_index", j_index},
        {"set_index", set_index},
        {"j_set_index", j_set_index},
        {"not", not_},
        {"table", table},
        {"new_table", new_table},
        {"table_extend", table_extend},
        {"raw_index", raw_index},
        {"raw_set", raw_set},
        {"spread", spread},
        {"result", result},
        {"results_from", results_from},
        {"list_at", list_at},
        {"list_shift", list_shift},
        {"list_length", list_length},
        {"cell", cell},
        {"cell_get", cell_get},
        {"cell_set", cell_set},
        {"for_prepare", for_prepare},
        {"for_more", for_more},
        {"for_count", for_count},
        {"stop_point", handle_stop_point},
        {"accumulate", accumulate_values},
        {"list_concat", list_concat},
        {"to_number", to_number},
        {"number_like", number_like},
        {"number_tensor", number_tensor},
        {"overwrite", overwrite},
        {"content", content},
    };
    return list;
}

bool settle_numbers(Values& args) {
    Watcher* w = watcher();
    if (!w || !w->records()) return false;
    bool changed = false;
    for (Value& v : args) {
        if (!v.is_list() && !is_open(v)) continue;
        v = w->settled(v);
        changed = true;
    }
    return changed;
}

}  // namespace lunaria::vm
