#include "jit/trace/symbolic_numbers.h"

#include <algorithm>

#include "jit/language.h"
#include "jit/number.h"
#include "jit/trace/recording.h"
#include "jit/trace/symbolic_sizes.h"

namespace lunaria::trace {

Value scalar_tensor(const Value& number, DType dtype) {
    return Value(Tensor::full(
        dtype, {}, number.kind() == Value::Kind::integer ? static_cast<double>(number.integer()) : number.number()));
}

Value compute_plain(vm::Host& host, const Op& op, std::span<const Value> args) {
    const lua::Operation operation = lua::facts(op).operation;
    if (operation == lua::Operation::concat) return host.concat(args[0], args[1]);
    if (std::ranges::all_of(args, &Value::is_number)) return lua::run_number(op, args);
    if (operation == lua::Operation::equal) return Value(identical(args[0], args[1]));
    if (operation == lua::Operation::length) return host.length(args[0]);
    return Value(host.compare(op, args[0], args[1]));
}

namespace {

// Whether the machine follows numbers through the instruction without reading them: arithmetic, and functions of
// numbers within Lua's own.
bool has_rule(const lua::Facts& facts, const vm::Instr& i, bool listed) {
    return (facts.is_arithmetic() || facts.operation == lua::Operation::none) && (listed || i.order == 0);
}

}  // namespace

// The instruction in its written form; forms in derivatives have their operands in a list.
struct SymbolicNumbers::Instruction {
    Instruction(vm::Machine& machine, const vm::Instr& instr) : m(machine), i(instr) {
        static const Op &arithmetic = lua::primitive("j_arith"), &operation = lua::primitive("j_op");
        of_language = i.op && lua::is_primitive(*i.op);
        is_operation = i.node && i.node->op == &operation;
        listed = i.node && (i.node->op == &arithmetic || is_operation) && m.slot(i, 2).items >= 0;
        if (listed) {
            const auto items = m.items(m.slot(i, 2));
            slots.assign(items.begin(), items.end());
        } else {
            for (uint32_t k = 0; k < i.slot_count; ++k) slots.push_back(m.slot(i, k));
        }
        spelled = std::ranges::all_of(slots, [](const vm::Slot& s) { return s.items < 0; });
    }
    void give(Value v) const {
        if (!listed) return m.set(i, std::move(v));
        if (is_operation) {
            if (i.r_out >= 0) m.reg(i.r_out) = Value();
            return m.set(i, std::move(v));
        }
        vm::Destination to = vm::Machine::destination(i);
        to.results = 1;
        to.returns = false;
        m.give_one(to, std::move(v), {});
    }
    // Writes into tables only pass on the last operand.
    bool writes() const { return facts.access == lua::Access::writes_field; }

    vm::Machine& m;
    const vm::Instr& i;
    const lua::Facts& facts = lua::facts(i.op);
    bool of_language = false, is_operation = false, listed = false, spelled = false;
    std::vector<vm::Slot> slots;
};

bool SymbolicNumbers::takes_tensors(const Op& op) { return op.is_exact; }

bool SymbolicNumbers::holds(const Value& v) {
    if (symbolic_number(v)) return true;
    return v.is_list() && std::any_of(v.items().begin(), v.items().end(), holds);
}

bool SymbolicNumbers::any(const vm::Machine& m, const vm::Instr& i) {
    bool found = false;
    auto look = [&](const auto& self, const vm::Slot& s) -> void {
        if (s.items >= 0) {
            for (const vm::Slot& item : m.items(s)) self(self, item);
        } else if (s.at >= 0) {
            found |= holds(m.get(s));
        }
    };
    for (uint32_t k = 0; k < i.slot_count; ++k) look(look, m.slot(i, k));
    return found;
}

bool SymbolicNumbers::step(vm::Machine& m, const vm::Instr& i) {
    if (!any(m, i)) return false;
    const Instruction it(m, i);
    if (r_.records()) {
        if (hands_on(it)) return false;
        if (it.spelled && (reads_texts(it) || differs_in_kind(it))) return true;
        if (it.spelled && it.of_language && lua::is_number_primitive(*i.op))
            if (const std::optional<bool> done = calculates(it)) return *done;
    }
    if (it.spelled && it.slots.size() >= 2) put_beside(m, i, it.slots[0], it.slots[1]);
    settle(it);
    return false;
}

// Whether it only returns its operands.
bool SymbolicNumbers::hands_on(const Instruction& it) {
    static const Op &begins = lua::primitive("seed"), &touches = lua::primitive("touch"),
                    &marks = lua::primitive("mark_arguments");
    vm::Machine& m = it.m;
    const vm::Instr& i = it.i;
    if (!i.op || it.facts.moves) {
        if (i.op == &touches && vm::marks_of(m.value(m.slot(i, 2))) != 0)
            keep_key(m, m.operand(i, 0), m.operand(i, 1), m.operand(i, 3));
        return true;
    }
    if (it.facts.moves_last) {
        // A shadow with a single part has it under any key.
        const auto* shadow = vm::object_as<vm::Shadow>(m.operand(i, 0));
        const bool parts = i.op == &marks || (shadow && !shadow->single());
        if (const vm::Slot& key = m.slot(i, 1); parts && key.at >= 0 && holds(m.get(key)))
            m.reg(key.at) = r_.decided(m.get(key));
        return true;
    }
    if (i.op != &begins) return false;
    // A number, whose cotangent is a number.
    const Value& values = m.operand(i, 1);
    const SymbolicNumber* first =
        values.is_list() && !values.items().empty() ? symbolic_number(values.items()[0]) : nullptr;
    return first && first->value.is_number();
}

// Concatenation, comparison and length of texts.
bool SymbolicNumbers::reads_texts(const Instruction& it) {
    const bool joins = it.facts.operation == lua::Operation::concat;
    if (!joins && it.facts.operation != lua::Operation::length && !it.facts.is_comparison()) return false;
    vm::Values args, real;
    uint16_t marks = 0;
    for (const vm::Slot& slot : it.slots) {
        args.push_back(it.m.get(slot));
        real.push_back(r_.plain(args.back()));
        marks |= args.back().marks();
        if (real.back().kind() != Value::Kind::string && !(joins && real.back().is_number())) return false;
    }
    if (marks != 0 && !joins) return false;
    Step s(Step::Kind::number, *it.i.op, r_.operands(args), {});
    Value result = r_.event(std::move(s),
                            [&](vm::Values& values) { values.push_back(compute_plain(r_.host, *it.i.op, real)); })[0];
    // The marks keep the text from becoming a number unnoticed.
    result.set_marks(marks);
    it.give(std::move(result));
    return true;
}

// A number never equals a value of another type, nor does a text.
bool SymbolicNumbers::differs_in_kind(const Instruction& it) {
    if (it.facts.operation != lua::Operation::equal || it.slots.size() != 2) return false;
    const Value &a = vm::shown(it.m.get(it.slots[0])), &b = vm::shown(it.m.get(it.slots[1]));
    const auto is_text = [](const Value& v) { return v.kind() == Value::Kind::string; };
    if (a.is_number() == b.is_number() && is_text(a) == is_text(b)) return false;
    it.give(Value(false));
    return true;
}

// Arithmetic and comparisons. True: carried out. False: the machine computes and the recorder follows. None: neither.
std::optional<bool> SymbolicNumbers::calculates(const Instruction& it) {
    vm::Values args, real;
    bool plain_numbers = true, tensor = false, marked = false;
    for (const vm::Slot& slot : it.slots) {
        const Value& v = it.m.get(slot);
        tensor |= v.is_tensor();
        marked |= v.marks() != 0;
        plain_numbers &= v.is_number() || symbolic_number(v);
        args.push_back(v);
        real.push_back(r_.plain(v));
    }
    // A differentiated number stands for itself; whether it is less than another has no derivative.
    if (plain_numbers && (!marked || it.facts.is_comparison())) {
        Step s(Step::Kind::number, *it.i.op, r_.operands(args), {});
        Value result;
        try {
            result = lua::run_number(*it.i.op, real);
        } catch (const Error&) {
            // For these numbers the machine raises the error.
            return {};
        }
        it.give(r_.event(std::move(s), [&](vm::Values& values) { values.push_back(result); })[0]);
        return true;
    }
    // The machine computes it and keeps the values that its rule needs.
    if (plain_numbers) return has_rule(it.facts, it.i, it.listed) ? std::optional<bool>(false) : std::nullopt;
    if (!tensor || !it.facts.is_arithmetic() || args.size() > 2) return {};
    // The machine asks for the operands in a form that it can follow.
    if (it.listed) {
        vm::Values kept;
        const bool follows = marked || it.is_operation || vm::Machine::has_box(it.m.contexts_of(it.i, kept), args);
        if (follows) return false;
    }
    const Op* op = r_.host.tensor_operator(*it.i.op);
    const bool fits =
        std::ranges::all_of(args, [](const Value& v) { return v.is_tensor() || v.is_number() || symbolic_number(v); });
    if (marked || !fits || !op) return {};
    const Value first = args[0], last = args.back();
    args[0] = beside(first, last, *it.i.op);
    if (args.size() > 1) args.back() = beside(last, first, *it.i.op);
    for (size_t k = args.size(); k < op->signature.params.size(); ++k)
        args.push_back(op->signature.params[k].default_value);
    it.give(r_.run(*op, args));
    return true;
}

// All other instructions need the numbers themselves.
void SymbolicNumbers::settle(const Instruction& it) {
    vm::Machine& m = it.m;
    auto settle = [&](const auto& self, const vm::Slot& s) -> void {
        if (s.items >= 0) {
            for (const vm::Slot& item : m.items(s)) self(self, item);
        } else if (s.at >= 0 && holds(m.get(s))) {
            m.reg(s.at) = r_.decided(m.get(s));
        }
    };
    const bool writes = it.writes();
    const uint32_t count = writes && r_.records() ? it.i.slot_count - 1 : it.i.slot_count;
    const bool any_key = writes ? leaves_key(m, it.i) : reads_by_any_key(it);
    for (uint32_t k = 0; k < count; ++k)
        if (!any_key || k + 1 != count) settle(settle, m.slot(it.i, k));
}

// Whether the instruction reads by a key that may differ next time: the key of a table from outside without a shadow,
// whose parts are identified by their keys.
bool SymbolicNumbers::reads_by_any_key(const Instruction& it) {
    if (!r_.records() || it.listed || it.m.region()) return false;
    static const Op& raw = lua::primitive("raw_index");
    if (it.facts.access != lua::Access::reads_field) return false;
    if (it.i.op == &raw && it.m.code().graph->order > 0) return false;
    const bool plain = !it.facts.ordered;
    const Value &table = it.m.operand(it.i, it.i.slot_count - 2), &key = it.m.operand(it.i, it.i.slot_count - 1);
    if (!symbolic_number(key) || key.marks()) return false;
    if (table.is_tensor()) return is_position(key);
    if (!r_.host.is_table(table) || r_.tables.find(table)) return false;
    vm::Values kept;
    const std::span<const Value> contexts = plain ? std::span<const Value>() : it.m.contexts_of(it.i, kept);
    Value holder = table;
    for (int k = 0; !contexts.empty() && k < vm::kMostMetatables && r_.host.is_table(holder); ++k) {
        const auto has_shadow = [&](const Value& c) { return static_cast<vm::Context*>(c.object())->find(holder); };
        if (std::ranges::any_of(contexts, has_shadow)) return false;
        holder = r_.questions.meta(holder, "__index");
    }
    return true;
}

// Not within the expansion of an operator's call, which has registers of its own.
void SymbolicNumbers::put_beside(vm::Machine& m, const vm::Instr& i, const vm::Slot& a, const vm::Slot& b) {
    if (!i.op || i.op->belongs_to(lua::language()) || !takes_tensors(*i.op)) return;
    const Value first = m.get(a), second = m.get(b);
    if (symbolic_number(first)) m.reg(a.at) = beside(first, second, *i.op);
    if (symbolic_number(second)) m.reg(b.at) = beside(second, first, *i.op);
}

// Whether the key under which the instruction writes may differ next time.
bool SymbolicNumbers::leaves_key(vm::Machine& m, const vm::Instr& i) {
    if (!r_.records() || i.slot_count < 3) return false;
    const auto* key = symbolic_number(m.operand(i, i.slot_count - 2));
    const Value &object = m.operand(i, i.slot_count - 3), &value = m.operand(i, i.slot_count - 1);
    if (!key || key->value.kind() != Value::Kind::integer) return false;
    if (object.is_tensor()) return i.order == 0 && value.marks() == 0 && !m.region();
    if (i.order > 1 || (value.marks() != 0 && (i.order == 0 || m.depth > 1))) return false;
    if (!r_.questions.takes_any_key(object)) return false;
    vm::Values kept;
    const std::span<const Value> contexts = i.order > 0 ? m.contexts_of(i, kept) : std::span<const Value>();
    auto known = open_keys_.find(vm::identity_of(object));
    for (const Value& c : contexts)
        if (known == open_keys_.end() && static_cast<vm::Context*>(c.object())->find(object)) return false;
    if (value.marks() != 0) note_open_key(object, m.operand(i, i.slot_count - 2));
    return true;
}

bool SymbolicNumbers::is_position(const Value& key) {
    const SymbolicNumber* number = symbolic_number(key);
    return number && number->value.kind() == Value::Kind::integer;
}

// The position of an integer on an axis of a tensor, if the integer or the size is open: as a tensor without axes, or
// counted from 0. The record is then valid only for integers within the axis, on this side of zero; nil: it is not
// open.
Value SymbolicNumbers::position_of(const Value& key, const Value& tensor, int axis) {
    static const Op &less = lua::primitive("less"), &add = lua::primitive("add");
    if (axis >= tensor.tensor().rank()) return {};
    const auto is_less = [&](const Value& a, const Value& b) {
        const Value operands[] = {a, b};
        return compute(less, operands).boolean();
    };
    const Value size = size_of(r_, tensor, axis);
    Value at = key;
    if (is_less(at, Value(0))) {
        const Value operands[] = {at, size};
        at = compute(add, operands);
    }
    if (is_less(at, Value(0)) || !is_less(at, size)) return {};
    return symbolic_number(at) ? tensor_of(at, DType::i64, {}) : at;
}

// The same for an index that is such an integer or a table of integers, one for each axis.
Value SymbolicNumbers::positions_of(const Value& key, const Value& tensor) {
    if (!r_.records() || key.marks()) return {};
    const bool list = r_.tables.find(key) != nullptr;
    if (!list && vm::shown(key).kind() != Value::Kind::integer) return {};
    const bool symbolic_sizes = r_.sizes.of(tensor);
    if (!list) return is_position(key) || symbolic_sizes ? position_of(key, tensor, 0) : Value();
    vm::Values items;
    bool open = symbolic_sizes;
    for (int64_t k = 1;; ++k) {
        items.push_back(r_.host.raw_get(key, Value(k)));
        if (items.back().is_nil()) break;
        if (vm::shown(items.back()).kind() != Value::Kind::integer || items.back().marks()) return {};
        open |= is_position(items.back());
    }
    if (!open) return {};
    const Value made = r_.host.new_table(items.size(), 0);
    for (size_t k = 0; k + 1 < items.size(); ++k) {
        const Value at = position_of(items[k], tensor, static_cast<int>(k));
        if (at.is_nil()) return {};
        r_.host.raw_set(made, Value(static_cast<int64_t>(k) + 1), at);
    }
    return made;
}

// Called before a differentiated value is written into a table under an open key.
void SymbolicNumbers::keep_key(vm::Machine& m, const Value& context, const Value& table, const Value& key) {
    const SymbolicNumber* number = symbolic_number(key);
    if (!number || number->value.kind() != Value::Kind::integer || m.depth != 1 || !r_.questions.takes_any_key(table))
        return;
    const bool known = open_keys_.contains(vm::identity_of(table));
    if (known || !static_cast<vm::Context*>(context.object())->find(table)) note_open_key(table, key);
}

void SymbolicNumbers::note_open_key(const Value& table, const Value& key) {
    OpenKeys& open = open_keys_[vm::identity_of(table)];
    open.table = table;
    open.keys.push_back(key);
}

void SymbolicNumbers::decide_keys(const Value& table) {
    if (open_keys_.empty() || r_.machine.depth == 0) return;
    auto found = open_keys_.find(vm::identity_of(table));
    if (found == open_keys_.end()) return;
    const vm::Values keys = std::move(found->second.keys);
    open_keys_.erase(found);
    for (const Value& key : keys) r_.decided(key);
}

// A tensor goes into graphs and has rules for derivatives; a number would split the graph.
Value SymbolicNumbers::beside(const Value& v, const Value& other, const Op& primitive) {
    const auto* number = symbolic_number(v);
    if (!number) return v;
    const bool fits =
        other.is_tensor() && (other.tensor().dtype() == DType::f32 || other.tensor().dtype() == DType::f64);
    if (!fits || !number->value.is_number() || v.marks() || !r_.records() || !takes_tensors(primitive)) return v;
    return tensor_of(v, other.tensor().dtype(), {});
}

Value SymbolicNumbers::tensor_of(const Value& v, DType dtype, const Shape& shape) {
    const SymbolicNumber* number = symbolic_number(v);
    if (!r_.records()) return Value(Tensor::full(dtype, shape, number->value.number()));
    if (shape.rank() > 0) {
        static const Op& spread = registry().get("broadcast_to");
        const Value args[] = {tensor_of(v, dtype, {}), Value::ints(shape)};
        return r_.run(spread, args);
    }
    const char kind = dtype == DType::f32 ? 'f' : dtype == DType::i64 ? 'i' : 'd';
    const std::string id = question(kind, nullptr, Value(static_cast<int64_t>(number->slot)));
    if (auto found = r_.questions.answers().find(id); found != r_.questions.answers().end()) return found->second;
    Step s(Step::Kind::scalar, {r_.node_at(number->slot), Value(dtype)});
    const Value tensor =
        r_.event(std::move(s), [&](vm::Values& values) { values.push_back(scalar_tensor(number->value, dtype)); })[0];
    if (r_.records()) r_.questions.answers()[id] = tensor;
    return tensor;
}

Value SymbolicNumbers::compute(const Op& primitive, std::span<const Value> operands) {
    vm::Values real;
    for (const Value& v : operands) real.push_back(r_.plain(v));
    if (!r_.records()) return lua::run_number(primitive, real);
    Value result;
    try {
        result = lua::run_number(primitive, real);
    } catch (const Error&) {
        // It is an error for these numbers.
        for (const Value& v : operands) r_.decided(v);
        throw;
    }
    return r_.event(Step(Step::Kind::number, primitive, r_.operands(operands), {}),
                    [&](vm::Values& values) { values.push_back(result); })[0];
}

// An open number is computed with as it is, or becomes a tensor beside one.
void SymbolicNumbers::settle_operands(const Op& primitive, vm::Values& operands) {
    if (std::ranges::none_of(operands, [](const Value& v) { return symbolic_number(v) != nullptr; })) return;
    bool numbers = true, tensor = false, exact = true;
    for (const Value& v : operands) {
        numbers &= v.is_tensor() || vm::shown(v).is_number();
        tensor |= v.is_tensor();
        if (v.is_tensor()) exact &= v.tensor().dtype() == DType::f32 || v.tensor().dtype() == DType::f64;
    }
    if (r_.records() && numbers && !tensor) return;
    const Value first = operands[0], last = operands.back();
    operands[0] = beside(first, last, primitive);
    if (operands.size() > 1) operands.back() = beside(last, first, primitive);
    if (r_.records() && numbers && exact) return;
    for (Value& v : operands) v = r_.decided(v);
}

}  // namespace lunaria::trace
