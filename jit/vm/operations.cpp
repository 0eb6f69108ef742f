// Lua's operations without a derivative: bits, comparisons, concatenation, length. On objects they call functions of
// the program, which are differentiated like any other.
#include <algorithm>

#include "core/base/warning.h"
#include "jit/language.h"
#include "jit/number.h"
#include "jit/vm/handlers.h"
#include "jit/vm/machine.h"
#include "jit/vm/watcher.h"

namespace lunaria::vm {

using lua::Operation;

namespace {

bool is_plain(const Value& v) { return v.is_number() || v.kind() == Value::Kind::string || v.is_tensor(); }

// In Lua a tensor and a number are never equal; the loader warns where the text shows it (jit/frontend/advice.h).
void warn_of_equality(Machine& m) {
    const std::string place = m.here();
    if (place.empty() || place.starts_with("lunaria:")) return;
    warn(place, "a tensor is compared with a number by == or ~=: for Lua they are never equal",
         "ops.equal(a, b) compares the elements, a:item() == b the only one");
}

// Where an operation on bits gets another number than an integer, the host tells its name.
Value result_of_numbers(Machine& m, const Op& primitive, std::span<const Value> operands) {
    if (!lua::facts(primitive).is_bits()) return lua::run_number(primitive, operands);
    try {
        return lua::run_number(primitive, operands);
    } catch (const Error&) {
        return m.host().arithmetic(primitive, operands.front(), operands.back());
    }
}

// The result of the operation when no function of the program is called.
Value plain_result(Machine& m, const Op& primitive, const Values& operands) {
    const lua::Facts& facts = lua::facts(primitive);
    const Value &a = operands[0], &b = operands[operands.size() - 1];
    if (a.is_number() && b.is_number() && lua::is_number_primitive(primitive))
        return result_of_numbers(m, primitive, operands);
    if (facts.operation == Operation::equal) {
        // A dtype is a value in a saved program, and an object in the field of a tensor.
        const bool dtypes = a.kind() == Value::Kind::dtype || b.kind() == Value::Kind::dtype;
        if (a.kind() != b.kind() && !dtypes) {
            if ((a.is_tensor() && b.is_number()) || (a.is_number() && b.is_tensor())) warn_of_equality(m);
            return Value(false);
        }
        if (a.is_nil()) return Value(true);
        if (a.kind() == Value::Kind::boolean) return Value(a.boolean() == b.boolean());
        if (a.kind() == Value::Kind::string) return Value(a.string() == b.string());
    }
    if (facts.is_comparison()) return Value(m.host().compare(primitive, a, b));
    if (facts.operation == Operation::length)
        return a.kind() == Value::Kind::string ? Value(static_cast<int64_t>(a.string().size())) : m.host().length(a);
    if (facts.operation != Operation::concat) {
        // A recording watcher has to see the operator.
        const bool fits = std::ranges::all_of(operands, [](const Value& v) { return v.is_tensor() || v.is_number(); });
        if (const Op* op = fits ? m.host().tensor_operator(primitive) : nullptr) return execute(*op, operands);
        return m.host().arithmetic(primitive, a, b);
    }
    Value text = m.host().concat(a, b);
    // The marks keep the text from becoming a number unnoticed.
    text.set_marks(a.marks() | b.marks());
    return text;
}

// The metamethod for the operation on these operands, or nil.
Value method_of(Machine& m, const lua::Facts& facts, const Value& a, const Value& b) {
    if (is_plain(a) && is_plain(b)) return {};
    if (facts.operation == Operation::equal &&
        (!m.host().is_table(a) || !m.host().is_table(b) || identity_of(a) == identity_of(b)))
        return {};
    return m.host().metamethod(a, b, facts.event);
}

void operation(Machine& m, const Instr& i) {
    Values operands;
    for (uint32_t k = 0; k < i.slot_count; ++k) operands.push_back(m.operand(i, k));
    if (method_of(m, lua::facts(*i.op), operands[0], operands.back()).is_nil())
        return m.set(i, plain_result(m, *i.op, operands));
    Destination to = Machine::destination(i);
    to.results = 1;
    operate(m, *i.op, {}, std::move(operands), to);
}

}  // namespace

void refuse_followed_text(std::span<const Value> contexts, const Values& operands) {
    for (const Value& v : operands)
        if (v.kind() == Value::Kind::string && (v.marks() & followed_by(contexts)))
            throw argument_error("grad",
                                 "no gradient flows through a text: a string that was made of a number that is "
                                 "differentiated is used as a number")
                .hint("keep the number itself");
}

void operate(Machine& m, const Op& primitive, std::span<const Value> contexts, Values operands, const Destination& to) {
    const lua::Facts& facts = lua::facts(primitive);
    const Value method = method_of(m, facts, operands[0], operands.back());
    if (method.is_nil()) {
        if (facts.is_bits() || (facts.is_comparison() && facts.operation != Operation::equal))
            refuse_followed_text(contexts, operands);
        return m.give(to, {plain_result(m, primitive, operands)}, {});
    }
    Values args{operands[0], operands.back()};
    if (!facts.is_comparison()) return m.call(method, contexts, std::move(args), to);
    const OperatorFunction& truth = prelude(Prelude::truth);
    m.call(make_object<Closure>(*truth.function, truth.owner, Values{method}), contexts, std::move(args), to);
}

std::span<const NamedHandler> operation_handlers() {
    static constexpr NamedHandler list[] = {
        {"bit_and", operation},     {"bit_or", operation},  {"bit_xor", operation},    {"shift_left", operation},
        {"shift_right", operation}, {"bit_not", operation}, {"concat", operation},     {"length", operation},
        {"equal", operation},       {"less", operation},    {"less_equal", operation},
    };
    return list;
}

}  // namespace lunaria::vm
