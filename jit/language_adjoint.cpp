// The primitives of derivatives, beside Lua's own: see jit/autodiff/transform.h.
#include "jit/language_rows.h"

namespace lunaria::lua {

namespace rules = autodiff::rules;

namespace {

void add_ordered(Rows& r) {
    r.add("j_arith(contexts: any, name: any, operands: any)",
          "Arithmetic with Lua's rules; the result, and a backpropagator for each context.",
          {.ordered = true, .names = true, .derivative = rules::ordered});
    r.add("j_index(contexts: any, object: any, key: any)", "object[key], and a backpropagator for each context.",
          {.access = Access::reads_field, .ordered = true, .derivative = rules::ordered});
    r.add("j_set_index(contexts: any, object: any, key: any, value: any)",
          "object[key] = value; nil, and a backpropagator for each context.",
          {.effect = Effect::state, .access = Access::writes_field, .ordered = true, .derivative = rules::ordered});
    r.add("j_call(contexts: any, f: any, args: any)",
          "The list of results of f(args...), and a backpropagator for each context.",
          {.effect = Effect::state, .moves = true, .ordered = true, .calls = true, .derivative = rules::ordered});
    r.add("j_pull(contexts: any, r: any, cotangents: any)",
          "What the backpropagator r gives for the cotangents, and a backpropagator for each context; nil gives nil.",
          {.effect = Effect::state, .moves = true, .ordered = true, .calls = true, .derivative = rules::ordered});
    r.add("pull(r: any, cotangents: any)",
          "The list of cotangents that the backpropagator r gives for those of its results; nil gives none.",
          {.effect = Effect::state, .moves = true, .calls = true, .hands_over = true, .derivative = rules::pull});
    r.add("j_op(context: any, name: any, args: any, results: int)",
          "An operator's result and its pullback, nil when no operand is followed. `results`: how many are in the list "
          "that the result is; 0: it is no list.",
          {.ordered = true, .names = true, .derivative = rules::operation_again});
    r.add("make_pull(context: any, name: any, args: any, result: any, results: int)",
          "The pullback of a call of an operator.", {.names = true, .derivative = rules::make_pull});
}

void add_shadows(Rows& r) {
    r.add("source(context: any, holder: any, value: any)",
          "The shadow that a value read from the holder reports to, nil when it is not followed.",
          {.moves = true, .spare = true});
    r.add("touch(context: any, holder: any, values: any, key: any, from: any)",
          "The holder's shadow, made when one of the values is followed; nil when there is none. The values are "
          "written under the key, or as a list from behind the position `from` on.",
          {.effect = Effect::state, .moves = true});
    r.add("shadow_of(context: any, object: any)", "The object's shadow, or nil.");
    r.add("box(context: any, tensor: any, value: any)",
          "The shadow of a tensor that is about to be overwritten, made when its content or the value is followed, or "
          "nil: what is computed from the tensor later reports to it, whoever holds the tensor.",
          {.effect = Effect::state});
    r.add("box_of(context: any, x: any)",
          "The shadow of a tensor that was overwritten in this differentiation, otherwise nil.", {.moves = true});
    r.add("unless(shadow: any, cotangent: any)", "The cotangent, or nil when there is a shadow.",
          {.moves = true, .derivative = rules::unless});
    r.add("mark(context: any, shadow: any, value: any, key: any)",
          "The value, followed from here on when there is a shadow; a number when it was followed under the key.",
          {.moves = true, .spare = true, .derivative = rules::mark});
    r.add("capture_key(closure: any, i: any)", "The key of capture i in the closure's shadow.", {.spare = true});
    r.add("shadow_get(shadow: any, key: any)", "The cotangent of a part.",
          {.effect = Effect::state, .spare = true, .derivative = rules::shadow_get});
    r.add("shadow_take(shadow: any, key: any)", "The cotangent of a part, which is zero afterwards.",
          {.effect = Effect::state, .moves = true, .derivative = rules::shadow_take});
    r.add("shadow_put(shadow: any, key: any, cotangent: any)", "Sets a part's cotangent.",
          {.effect = Effect::state, .moves_last = true, .derivative = rules::shadow_put});
    r.add("shadow_add(shadow: any, key: any, cotangent: any)", "Adds to a part's cotangent.",
          {.effect = Effect::state, .moves_last = true, .derivative = rules::shadow_add});
    r.add("shadow_items(shadow: any, from: any, count: any)", "The cotangents of parts from + 1 to from + count.",
          {.effect = Effect::state, .moves_last = true, .derivative = rules::shadow_items});
    r.add("shadow_add_items(shadow: any, from: any, cotangents: any)", "Adds to the cotangents of parts from + 1 on.",
          {.effect = Effect::state, .moves_last = true, .derivative = rules::shadow_add_items});
    r.add("new_context(parameters: any)", "A differentiation that follows the parameters in the list.",
          {.effect = Effect::state});
    r.add("reset(contexts: any)",
          "Makes all cotangents in the last context's shadows zero; of several contexts, those of its shadows' shadows "
          "in the one before it, and so on.",
          {.effect = Effect::state, .derivative = rules::reset});
    r.add("mark_arguments(context: any, positions: any, args: any)",
          "The arguments, those at the positions (a table that has them as keys, or one integer) followed.",
          {.effect = Effect::state, .moves_last = true, .derivative = rules::lists_on});
    r.add("seed(name: any, values: any)",
          "A one like the first value, which must be a scalar; `name` is the function that asks for it.",
          {.effect = Effect::state});
    r.add("unmark(context: any, values: any)",
          "The values, no longer followed; the differentiation's forward part ends.",
          {.effect = Effect::state, .moves = true, .derivative = rules::lists_on});
    r.add("give_out(context: any, cotangents: any)",
          "The cotangents as the differentiation gives them: not followed by it, tensors with handles of their own.",
          {.effect = Effect::state, .moves = true, .derivative = rules::lists_on});
}

void add_values(Rows& r) {
    r.add("accumulate(a: any, b: any)", "The sum of two cotangents; nil is zero.",
          {.moves = true, .spare = true, .derivative = rules::accumulate});
    r.add("list_at(i: any, value: any)", "A list with the value at i (from 0), nil before.",
          {.moves = true, .spare = true, .derivative = rules::list_at});
    r.add("list_shift(i: any, list: any)", "The list behind i times nil.",
          {.moves = true, .spare = true, .derivative = rules::list_shift});
    r.add("list_length(list: any)", "The number of values in a list.", {.moves = true, .spare = true});
    r.add("raw_index(table: any, key: any)", "table[key] without metamethods.",
          {.access = Access::reads_field, .derivative = rules::raw_index});
    r.add("raw_set(table: any, key: any, value: any)", "table[key] = value without metamethods.",
          {.effect = Effect::state, .access = Access::writes_field, .derivative = rules::raw_set});
    r.add("new_table(positional: int, tail: any, fields: int)",
          "An empty table with room for that many elements, for those of the list tail behind them, and for fields.",
          {.moves = true});
    r.add("table_extend(table: any, from: any, values: any)", "Puts the values at from + 1 and what follows.",
          {.effect = Effect::state, .moves = true, .derivative = rules::table_extend});
    r.add("list_concat(a: any, b: any)", "The values of both lists.",
          {.moves = true, .derivative = rules::list_concat});
    r.add("follow(context: any, from: any, values: any)",
          "The values, followed from here on if one in the list from is, or if its last one is true.",
          {.moves = true, .derivative = rules::lists_on});
    r.add("stop(x: any)", "The value, not followed.", {.moves = true});
    r.add("custom_call(f: any, back: any, args: any)",
          "The results of f(args...), whose backpropagator is back(args..., results..., cotangents...).",
          {.effect = Effect::state, .calls = true, .derivative = rules::custom_call});
    r.add("checkpoint_call(f: any, again: any, args: any)",
          "The results of f(args...); when the backpropagator runs they are again(args...).",
          {.effect = Effect::state, .calls = true, .derivative = rules::checkpoint_call});
    r.add("hold(args: any)", "The list with handles of its own on the tensors in it.",
          {.effect = Effect::state, .moves = true, .derivative = rules::lists_on});
    r.add("watch(context: any, f: any, held: any, again: bool)",
          "The tensors in the list and those that f captures (all if it is to run again, else those that are "
          "followed), each with its version.",
          {.effect = Effect::state});
    r.add("unwritten(name: any, args: any, held: any, watched: any, results: any)",
          "The results, with an argument in the place of its handle; an error if what is watched was written into.",
          {.effect = Effect::state, .derivative = rules::lists_on});
    r.add("given_cotangents(args: any, cotangents: any)",
          "The cotangents that a program gives for the arguments; an error where one has another shape.",
          {.effect = Effect::state, .derivative = rules::lists_on});
    r.add("unchanged(watched: any)", "An error if what is watched was written into.", {.effect = Effect::state});
    r.add("to_number(x: any)", "A tensor of one element as a number.", {.moves = true, .derivative = rules::to_number});
    r.add("number_like(x: any, tensor: any)", "A number as a tensor of the dtype and shape of one of one element.",
          {.moves = true, .derivative = rules::from_number});
    r.add("overwrite(tensor: any, value: any)", "The tensor, whose handle has the other tensor's content from here on.",
          {.effect = Effect::state, .derivative = rules::overwrite});
    r.add("content(x: any, boxes: any)",
          "What a tensor of which one of the boxes is not nil holds at present, as a tensor that no write into the "
          "other changes; everything else as it is.",
          {.effect = Effect::state, .moves = true, .derivative = rules::content});
    r.add("number_tensor(x: any, dtype: any)", "A number as a tensor of rank 0.",
          {.moves = true, .derivative = rules::from_number});
    r.add("batched(size: any, f: any)", "The function f, run once for so many samples; see jit/vm/region.h.");
}

}  // namespace

void add_adjoint_primitives(Rows& r) {
    add_ordered(r);
    add_shadows(r);
    add_values(r);
}

}  // namespace lunaria::lua
