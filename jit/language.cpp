#include "jit/language.h"

namespace lunaria::lua {

namespace {

void add_operators(Registry& r) {
    r.add("add(a: any, b: any)").doc("a + b with Lua's rules for integers, floats, strings and metamethods.");
    r.add("sub(a: any, b: any)").doc("a - b.");
    r.add("mul(a: any, b: any)").doc("a * b.");
    r.add("div(a: any, b: any)").doc("a / b, always a float for numbers.");
    r.add("mod(a: any, b: any)").doc("a % b.");
    r.add("pow(a: any, b: any)").doc("a ^ b, always a float for numbers.");
    r.add("floor_div(a: any, b: any)").doc("a // b.");
    r.add("bit_and(a: any, b: any)").doc("a & b.");
    r.add("bit_or(a: any, b: any)").doc("a | b.");
    r.add("bit_xor(a: any, b: any)").doc("a ~ b.");
    r.add("shift_left(a: any, b: any)").doc("a << b.");
    r.add("shift_right(a: any, b: any)").doc("a >> b.");
    r.add("concat(a: any, b: any)").doc("a .. b.");
    r.add("equal(a: any, b: any)").doc("a == b, a boolean.");
    r.add("less(a: any, b: any)").doc("a < b, a boolean.");
    r.add("less_equal(a: any, b: any)").doc("a <= b, a boolean.");
    r.add("minus(a: any)").doc("-a.");
    r.add("not(a: any)").doc("not a, a boolean.");
    r.add("length(a: any)").doc("#a.");
    r.add("bit_not(a: any)").doc("~a.");
}

void add_tables_and_calls(Registry& r) {
    r.add("index(object: any, key: any)").doc("object[key] with metamethods.");
    r.add("set_index(object: any, key: any, value: any)")
        .doc("object[key] = value with metamethods.")
        .effect(Effect::state);
    r.add("table(keys: any, values: any, positional: int, tail: any)")
        .doc(
            "A new table of the keys and values given as lists; the results in tail, if not nil, follow the positional "
            "ones.");
    r.add("call(f: any, args: any)")
        .doc("The list of results of f(args...); args is a list or the list that spread gives.")
        .effect(Effect::state);
    r.add("spread(head: any, tail: any)").doc("The list of the values in head followed by all results in tail.");
    r.add("result(results: any, i: int)").doc("Result i (from 0) of a list of results, nil beyond its end.");
    r.add("results_from(results: any, i: int)").doc("The list of results from the i-th on.");
    r.add("closure(function: any, captures: any)")
        .doc("The function whose first parameters are bound to the captured values and cells.");
    r.add("current_function()").doc("The closure that runs.");
}

void add_state(Registry& r) {
    r.add("cell(value: any)").doc("A new variable that closures share.");
    r.add("cell_get(cell: any)").doc("What the variable holds.").effect(Effect::state);
    r.add("cell_set(cell: any, value: any)").doc("Changes the variable.").effect(Effect::state);
    r.add("for_prepare(start: any, limit: any, step: any)")
        .doc(
            "Checks a numeric loop and gives (start, limit, step, count): all integers and the number of rounds, or "
            "all floats and -1.");
    r.add("for_more(i: any, limit: any, step: any, count: any)").doc("Whether the loop runs another round.");
    r.add("for_count(count: any)").doc("The count after one more round.");
    r.add("refuse_close(value: any)").doc("An error unless the fourth value of a generic loop is nil or false.");
    r.add("branch(condition: any, then: any, then_args: any, otherwise: any, otherwise_args: any)")
        .doc("Goes on with one of two blocks, by Lua's truth of the condition.");
}

}  // namespace

const Registry& language() {
    static const Registry* instance = [] {
        auto* r = new Registry;
        add_operators(*r);
        add_tables_and_calls(*r);
        add_state(*r);
        return r;
    }();
    return *instance;
}

const Op& primitive(std::string_view name) {
    if (const Op* op = language().find(name)) return *op;
    throw state_error("language", str("there is no primitive '", name, "'"));
}

}  // namespace lunaria::lua
