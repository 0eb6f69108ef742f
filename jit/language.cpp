#include "jit/language.h"

#include <array>
#include <utility>

namespace lunaria::lua {

namespace {

void add_operators(Registry& r) {
    r.add("add(a: any, b: any)").doc("a + b with Lua's rules for integers, floats, strings and metamethods.").exact();
    r.add("sub(a: any, b: any)").doc("a - b.").exact();
    r.add("mul(a: any, b: any)").doc("a * b.").exact();
    r.add("div(a: any, b: any)").doc("a / b, always a float for numbers.").exact();
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
        .doc("The function whose first parameters are bound to the captured values and cells.")
        .closes();
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
    r.add("for_turns(start: any, limit: any, step: any)").doc("How many turns a numeric loop over integers has.");
    r.add("for_count(count: any)").doc("The count after one more round.");
    r.add("stop_point(names: any, values: any)")
        .doc(
            "A place where a debugger may stop, of programs that are made for one: the visible variables by name, '^' "
            "before those of enclosing functions, '&' before those that closures share. A line of 0 only tells the "
            "variables.")
        .effect(Effect::state);
    r.add("to_close(value: any, name: string)")
        .doc("From here on the value is closed when an error leaves the function; an error if it cannot be closed.")
        .effect(Effect::state);
    r.add("closing(value: any)")
        .doc("The function that closes the last value to be closed; no error closes it any more.")
        .effect(Effect::state);
    r.add("pending()").doc("The last value to be closed, on the way of an error.").effect(Effect::state);
    r.add("caught()").doc("The error on whose way values are closed.").effect(Effect::state);
    r.add("guard(value: any)")
        .doc("Unless the value is nil or false, errors may be met from here on by the functions that run.")
        .effect(Effect::state);
    r.add("raise(value: any, level: any)")
        .doc("An error with that value; a text gets the place in the program, `level` calls further out.")
        .effect(Effect::state);
    r.add("keep(contexts: any, values: any)").doc("Values that are needed until here.").effect(Effect::state);
    r.add("meets_errors(coroutine: any)")
        .doc("Whether functions of the suspended coroutine meet errors or have variables to close.")
        .effect(Effect::state);
    r.add("backward(coroutine: any, k: any, order: any)")
        .doc("The coroutine that takes the cotangents of what resumption k gave; nil: there are none.")
        .effect(Effect::state);
    r.add("branch(condition: any, then: any, then_args: any, otherwise: any, otherwise_args: any)")
        .doc("Goes on with one of two blocks, by Lua's truth of the condition.")
        .branches();
}

// Arithmetic on plain numbers alone, without metamethods: what the derivatives of Lua's arithmetic and of its math
// library consist of. The set is closed under differentiation (jit/autodiff/number_rules.cpp).
void add_numbers(Registry& r) {
    r.add("num_add(a: any, b: any)").doc("a + b of numbers.");
    r.add("num_sub(a: any, b: any)").doc("a - b of numbers.");
    r.add("num_mul(a: any, b: any)").doc("a * b of numbers.");
    r.add("num_div(a: any, b: any)").doc("a / b of numbers.");
    r.add("num_mod(a: any, b: any)").doc("a % b of numbers.");
    r.add("num_pow(a: any, b: any)").doc("a ^ b of numbers.");
    r.add("num_floor_div(a: any, b: any)").doc("a // b of numbers.");
    r.add("num_neg(a: any)").doc("-a of a number.");
    r.add("num_abs(a: any)").doc("math.abs(a).");
    r.add("num_sign(a: any)").doc("-1.0, 0.0 or 1.0; NaN of NaN.");
    r.add("num_floor(a: any)").doc("math.floor(a).");
    r.add("num_ceil(a: any)").doc("math.ceil(a).");
    r.add("num_trunc(a: any)").doc("The first result of math.modf(a).");
    r.add("num_frac(a: any)").doc("The second result of math.modf(a).");
    r.add("num_fmod(a: any, b: any)").doc("math.fmod(a, b).");
    r.add("num_max(a: any, b: any)").doc("math.max(a, b).");
    r.add("num_min(a: any, b: any)").doc("math.min(a, b).");
    r.add("num_sqrt(a: any)").doc("math.sqrt(a).");
    r.add("num_exp(a: any)").doc("math.exp(a).");
    r.add("num_log(a: any)").doc("math.log(a).");
    r.add("num_log_base(a: any, base: any)").doc("math.log(a, base).");
    r.add("num_sin(a: any)").doc("math.sin(a).");
    r.add("num_cos(a: any)").doc("math.cos(a).");
    r.add("num_tan(a: any)").doc("math.tan(a).");
    r.add("num_asin(a: any)").doc("math.asin(a).");
    r.add("num_acos(a: any)").doc("math.acos(a).");
    r.add("num_atan(a: any)").doc("math.atan(a).");
    r.add("num_atan2(y: any, x: any)").doc("math.atan(y, x).");
    r.add("num_sinh(a: any)").doc("The hyperbolic sine of a.");
    r.add("num_cosh(a: any)").doc("The hyperbolic cosine of a.");
    r.add("num_tanh(a: any)").doc("The hyperbolic tangent of a.");
    r.add("num_deg(a: any)").doc("math.deg(a).");
    r.add("num_rad(a: any)").doc("math.rad(a).");
    r.add("num_equal(a: any, b: any)").doc("1 if a == b, otherwise 0.");
    r.add("num_less(a: any, b: any)").doc("1 if a < b, otherwise 0.");
    r.add("num_less_equal(a: any, b: any)").doc("1 if a <= b, otherwise 0.");
    r.add("num_select(condition: any, a: any, b: any)").doc("b if the condition is 0, otherwise a.");
}

// What the record of a call consists of beside them: questions to the outside, and what has to come of them.
void add_records(Registry& r) {
    r.add("argument_count()").doc("How many arguments the call has.");
    r.add("argument(i: int)").doc("Argument i of the call, from 0.");
    r.add("metatable(value: any)").doc("The metatable of a value; nil where it has none.");
    r.add("upvalue(f: any, i: int)").doc("Captured variable i of a function, from 1.");
    r.add("raw_length(table: any)").doc("The length of a table as rawlen gives it.");
    r.add("next_key(table: any, key: any)").doc("The key after that one; nil after the last.");
    r.add("decide(x: any)").doc("The number or type of x, on which what follows depends.");
    r.add("element(tensor: any)").doc("The element of a tensor that has one.");
    r.add("size_of(tensor: any, axis: int)").doc("The size of an axis.");
    r.add("make_table(items: int, fields: int, content: any)")
        .doc("A new table for so many items and fields; content: its metatable, then keys and values in their order.")
        .effect(Effect::state);
    r.add("set_upvalue(f: any, i: int, value: any)")
        .doc("Gives captured variable i of a function that value.")
        .effect(Effect::state);
    r.add("loop(depth: int, places: any, values: any)")
        .doc("What a turn of a loop begins with: values at places of a block, so many functions deep. The first turn.");
    r.add("again(depth: int, values: any)").doc("Whether another turn of the loop that is so deep begins with these.");
    r.add("finish(values: any)").doc("The call ends with these results.");
    r.add("error_of(call: any)").doc("The error that the call ends with.");
    r.add("expect(x: any, value: any)")
        .doc("A guard: x is that value, a number bit by bit, an object by its identity. Otherwise the record ends.")
        .effect(Effect::state);
    r.add("ways(list: any)")
        .doc("Goes on with the first of these functions whose guards hold; the record ends where there is none.")
        .effect(Effect::state);
}

}  // namespace

const Registry& language() {
    static const Registry* instance = [] {
        auto* r = new Registry;
        add_operators(*r);
        add_tables_and_calls(*r);
        add_state(*r);
        add_numbers(*r);
        add_adjoint_primitives(*r);
        add_records(*r);
        return r;
    }();
    return *instance;
}

const Op& primitive(std::string_view name) {
    if (const Op* op = language().find(name)) return *op;
    throw state_error("language", str("there is no primitive '", name, "'"));
}

const Op* tensor_operator(std::string_view primitive) {
    static const std::array<std::pair<std::string_view, const Op*>, 14> kOperators{
        {{"add", registry().find("add")},
         {"sub", registry().find("sub")},
         {"mul", registry().find("mul")},
         {"div", registry().find("div")},
         {"mod", registry().find("remainder")},
         {"pow", registry().find("pow")},
         {"floor_div", registry().find("floor_divide")},
         {"minus", registry().find("neg")},
         {"bit_and", registry().find("bitwise_and")},
         {"bit_or", registry().find("bitwise_or")},
         {"bit_xor", registry().find("bitwise_xor")},
         {"bit_not", registry().find("bitwise_not")},
         {"shift_left", registry().find("bitwise_left_shift")},
         {"shift_right", registry().find("bitwise_right_shift")}}};
    for (const auto& [name, op] : kOperators)
        if (name == primitive) return op;
    return nullptr;
}

}  // namespace lunaria::lua
