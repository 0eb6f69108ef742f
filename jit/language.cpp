#include "core/custom/custom_op.h"
#include "jit/language_rows.h"

namespace lunaria::lua {

namespace rules = autodiff::rules;

namespace {

void add_operators(Rows& r) {
    r.operation("add(a: any, b: any)", "a + b with Lua's rules for integers, floats, strings and metamethods.",
                Operation::add, "__add", "add", {.exact = true, .total = true});
    r.operation("sub(a: any, b: any)", "a - b.", Operation::sub, "__sub", "sub", {.exact = true, .total = true});
    r.operation("mul(a: any, b: any)", "a * b.", Operation::mul, "__mul", "mul", {.exact = true, .total = true});
    r.operation("div(a: any, b: any)", "a / b, always a float for numbers.", Operation::div, "__div", "div",
                {.exact = true});
    r.operation("mod(a: any, b: any)", "a % b.", Operation::mod, "__mod", "remainder");
    r.operation("pow(a: any, b: any)", "a ^ b, always a float for numbers.", Operation::pow, "__pow", "pow");
    r.operation("floor_div(a: any, b: any)", "a // b.", Operation::floor_div, "__idiv", "floor_divide");
    r.operation("bit_and(a: any, b: any)", "a & b.", Operation::bit_and, "__band", "bitwise_and");
    r.operation("bit_or(a: any, b: any)", "a | b.", Operation::bit_or, "__bor", "bitwise_or");
    r.operation("bit_xor(a: any, b: any)", "a ~ b.", Operation::bit_xor, "__bxor", "bitwise_xor");
    r.operation("shift_left(a: any, b: any)", "a << b.", Operation::shift_left, "__shl", "bitwise_left_shift");
    r.operation("shift_right(a: any, b: any)", "a >> b.", Operation::shift_right, "__shr", "bitwise_right_shift");
    r.operation("concat(a: any, b: any)", "a .. b.", Operation::concat, "__concat", nullptr);
    r.operation("equal(a: any, b: any)", "a == b, a boolean.", Operation::equal, "__eq", "equal");
    r.operation("less(a: any, b: any)", "a < b, a boolean.", Operation::less, "__lt", "less");
    r.operation("less_equal(a: any, b: any)", "a <= b, a boolean.", Operation::less_equal, "__le", "less_equal");
    r.operation("minus(a: any)", "-a.", Operation::minus, "__unm", "neg");
    r.add("not(a: any)", "not a, a boolean.", {.moves = true, .saved = true});
    r.operation("length(a: any)", "#a.", Operation::length, "__len", nullptr);
    r.operation("bit_not(a: any)", "~a.", Operation::bit_not, "__bnot", "bitwise_not");
}

void add_tables_and_calls(Rows& r) {
    r.add("index(object: any, key: any)", "object[key] with metamethods.",
          {.access = Access::reads_field, .saved = true, .derivative = rules::index});
    r.add("set_index(object: any, key: any, value: any)", "object[key] = value with metamethods.",
          {.effect = Effect::state, .access = Access::writes_field, .saved = true, .derivative = rules::set_index});
    r.add("table(keys: any, values: any, positional: int, tail: any)",
          "A new table of the keys and values given as lists; the results in tail, if not nil, follow the positional "
          "ones.",
          {.moves = true, .saved = true, .derivative = rules::table});
    r.add("call(f: any, args: any)", "The list of results of f(args...); args is a list or the list that spread gives.",
          {.effect = Effect::state,
           .moves = true,
           .saved = true,
           .calls = true,
           .hands_over = true,
           .derivative = rules::call});
    r.add("spread(head: any, tail: any)", "The list of the values in head followed by all results in tail.",
          {.moves = true, .spare = true, .saved = true, .derivative = rules::spread});
    r.add("result(results: any, i: int)", "Result i (from 0) of a list of results, nil beyond its end.",
          {.moves = true, .spare = true, .saved = true, .derivative = rules::result});
    r.add("results_from(results: any, i: int)", "The list of results from the i-th on.",
          {.moves = true, .spare = true, .saved = true, .derivative = rules::results_from});
    r.add("closure(function: any, captures: any)",
          "The function whose first parameters are bound to the captured values and cells.",
          {.moves = true, .saved = true, .closes = true, .derivative = rules::closure});
    r.add("current_function()", "The closure that runs.",
          {.moves = true, .saved = true, .derivative = rules::current_function});
}

void add_state(Rows& r) {
    r.add("cell(value: any)", "A new variable that closures share.",
          {.access = Access::makes_cell, .moves = true, .saved = true, .derivative = rules::cell});
    r.add("cell_get(cell: any)", "What the variable holds.",
          {.effect = Effect::state,
           .access = Access::reads_cell,
           .moves = true,
           .saved = true,
           .derivative = rules::cell_get});
    r.add("cell_set(cell: any, value: any)", "Changes the variable.",
          {.effect = Effect::state,
           .access = Access::writes_cell,
           .moves = true,
           .saved = true,
           .derivative = rules::cell_set});
    r.add("for_prepare(start: any, limit: any, step: any)",
          "Checks a numeric loop and gives (start, limit, step, count): all integers and the number of rounds, or all "
          "floats and -1.",
          {.saved = true, .derivative = rules::for_prepare});
    r.add("for_more(i: any, limit: any, step: any, count: any)", "Whether the loop runs another round.",
          {.saved = true});
    r.add("for_count(count: any)", "The count after one more round.", {.saved = true});
    r.add("stop_point(names: any, values: any)",
          "A place where a debugger may stop, of programs that are made for one: the visible variables by name, '^' "
          "before those of enclosing functions, '&' before those that closures share. A line of 0 only tells the "
          "variables.",
          {.effect = Effect::state, .moves = true, .stops = true});
    r.add("to_close(value: any, name: string)",
          "From here on the value is closed when an error leaves the function; an error if it cannot be closed.",
          {.effect = Effect::state});
    r.add("closing(value: any)", "The function that closes the last value to be closed; no error closes it any more.",
          {.effect = Effect::state});
    r.add("pending()", "The last value to be closed, on the way of an error.", {.effect = Effect::state});
    r.add("caught()", "The error on whose way values are closed.", {.effect = Effect::state});
    r.add("guard(value: any)",
          "Unless the value is nil or false, errors may be met from here on by the functions that run.",
          {.effect = Effect::state, .goes_elsewhere = true});
    r.add("raise(value: any, level: any)",
          "An error with that value; a text gets the place in the program, `level` calls further out.",
          {.effect = Effect::state});
    r.add("keep(contexts: any, values: any)", "Values that are needed until here.",
          {.effect = Effect::state, .derivative = rules::keep});
    r.add("backward(coroutine: any, k: any, order: any)",
          "The coroutine that takes the cotangents of what resumption k gave; nil: there are none.",
          {.effect = Effect::state});
    r.add("branch(condition: any, then: any, then_args: any, otherwise: any, otherwise_args: any)",
          "Goes on with one of two blocks, by Lua's truth of the condition.", {.saved = true, .branches = true});
}

// The record of a call also has questions to the outside and the required answers.
void add_records(Rows& r) {
    r.add("argument_count()", "How many arguments the call has.");
    r.add("argument(i: int)", "Argument i of the call, from 0.");
    r.add("metatable(value: any)", "The metatable of a value; nil where it has none.");
    r.add("upvalue(f: any, i: int)", "Captured variable i of a function, from 1.");
    r.add("raw_length(table: any)", "The length of a table as rawlen gives it.");
    r.add("next_key(table: any, key: any)", "The key after that one; nil after the last.");
    r.add("decide(x: any)", "The number or type of x, on which what follows depends.");
    r.add("element(tensor: any)", "The element of a tensor that has one.");
    r.add("size_of(tensor: any, axis: int)", "The size of an axis.");
    r.add("make_table(items: int, fields: int, content: any)",
          "A new table for so many items and fields; content: its metatable, then keys and values in their order.",
          {.effect = Effect::state});
    r.add("set_upvalue(f: any, i: int, value: any)", "Gives captured variable i of a function that value.",
          {.effect = Effect::state});
    r.add("loop(depth: int, places: any, values: any)",
          "What a turn of a loop begins with: values at places of a block, so many functions deep. The first turn.");
    r.add("again(depth: int, values: any)", "Whether another turn of the loop that is so deep begins with these.");
    r.add("finish(values: any)", "The call ends with these results.");
    r.add("error_of(call: any)", "The error that the call ends with.");
    r.add("expect(x: any, value: any)",
          "A guard: x is that value, a number bit by bit, an object by its identity. Otherwise the record ends.",
          {.effect = Effect::state});
    r.add("ways(list: any)",
          "Goes on with the first of these functions whose guards hold; the record ends where there is none.",
          {.effect = Effect::state});
}

const Rows& rows() {
    static const Rows* instance = [] {
        auto* r = new Rows;
        add_operators(*r);
        add_tables_and_calls(*r);
        add_state(*r);
        add_number_primitives(*r);
        add_adjoint_primitives(*r);
        add_records(*r);
        return r;
    }();
    return *instance;
}

}  // namespace

const Registry& language() { return rows().registry; }

const Op& primitive(std::string_view name) {
    if (const Op* op = language().find(name)) return *op;
    throw state_error("language", str("there is no primitive '", name, "'"));
}

bool is_primitive(const Op& op) { return op.belongs_to(language()); }

const Facts& facts(const Op* op) {
    static const Facts none;
    const Rows& all = rows();
    return op && op->belongs_to(all.registry) ? all.facts[static_cast<size_t>(op->id)] : none;
}

const Op& named_operation(const ir::Node& node) {
    const std::string& name = node.args[1].string();
    const Op* found = language().find(name);
    static const Op& arithmetic = primitive("j_arith");
    return found && (node.op == &arithmetic || facts(*found).of_numbers) ? *found : operator_named(name);
}

}  // namespace lunaria::lua
