// The primitives that derivatives consist of beside Lua's own: see jit/autodiff/transform.h.
#include "jit/language.h"

namespace lunaria::lua {

namespace {

void add_ordered(Registry& r) {
    r.add("j_arith(contexts: any, name: any, operands: any)")
        .doc("Arithmetic with Lua's rules; the result, and a backpropagator for each context.");
    r.add("j_index(contexts: any, object: any, key: any)").doc("object[key], and a backpropagator for each context.");
    r.add("j_set_index(contexts: any, object: any, key: any, value: any)")
        .doc("object[key] = value; nil, and a backpropagator for each context.")
        .effect(Effect::state);
    r.add("j_call(contexts: any, f: any, args: any)")
        .doc("The list of results of f(args...), and a backpropagator for each context.")
        .effect(Effect::state);
    r.add("j_pull(contexts: any, r: any, cotangents: any)")
        .doc(
            "What the backpropagator r gives for the cotangents, and a backpropagator for each context; nil gives nil.")
        .effect(Effect::state);
    r.add("pull(r: any, cotangents: any)")
        .doc("The list of cotangents that the backpropagator r gives for those of its results; nil gives none.")
        .effect(Effect::state);
    r.add("j_op(context: any, name: any, args: any, results: int)")
        .doc(
            "An operator's result and its pullback, nil when no operand is followed. `results`: how many are in the "
            "list that the result is; 0: it is no list.");
    r.add("make_pull(context: any, name: any, args: any, result: any, results: int)")
        .doc("The pullback of a call of an operator.");
}

void add_shadows(Registry& r) {
    r.add("source(context: any, holder: any, value: any)")
        .doc("The shadow that a value read from the holder reports to, nil when it is not followed.");
    r.add("touch(context: any, holder: any, values: any, key: any, from: any)")
        .doc(
            "The holder's shadow, made when one of the values is followed; nil when there is none. The values are "
            "written under the key, or as a list from behind the position `from` on.")
        .effect(Effect::state);
    r.add("shadow_of(context: any, object: any)").doc("The object's shadow, or nil.");
    r.add("box(context: any, tensor: any, value: any)")
        .doc(
            "The shadow of a tensor that is about to be overwritten, made when its content or the value is followed, "
            "or "
            "nil: what is computed from the tensor later reports to it, whoever holds the tensor.")
        .effect(Effect::state);
    r.add("box_of(context: any, x: any)")
        .doc("The shadow of a tensor that was overwritten in this differentiation, otherwise nil.");
    r.add("unless(shadow: any, cotangent: any)").doc("The cotangent, or nil when there is a shadow.");
    r.add("mark(context: any, shadow: any, value: any, key: any)")
        .doc("The value, followed from here on when there is a shadow; a number when it was followed under the key.");
    r.add("capture_key(closure: any, i: any)").doc("The key of capture i in the closure's shadow.");
    r.add("shadow_get(shadow: any, key: any)").doc("The cotangent of a part.").effect(Effect::state);
    r.add("shadow_take(shadow: any, key: any)")
        .doc("The cotangent of a part, which is zero afterwards.")
        .effect(Effect::state);
    r.add("shadow_put(shadow: any, key: any, cotangent: any)").doc("Sets a part's cotangent.").effect(Effect::state);
    r.add("shadow_add(shadow: any, key: any, cotangent: any)").doc("Adds to a part's cotangent.").effect(Effect::state);
    r.add("shadow_items(shadow: any, from: any, count: any)")
        .doc("The cotangents of parts from + 1 to from + count.")
        .effect(Effect::state);
    r.add("shadow_add_items(shadow: any, from: any, cotangents: any)")
        .doc("Adds to the cotangents of parts from + 1 on.")
        .effect(Effect::state);
    r.add("new_context(parameters: any)")
        .doc("A differentiation that follows the parameters in the list.")
        .effect(Effect::state);
    r.add("reset(contexts: any)")
        .doc(
            "Makes all cotangents in the last context's shadows zero; of several contexts, those of its shadows' "
            "shadows "
            "in the one before it, and so on.")
        .effect(Effect::state);
    r.add("mark_arguments(context: any, positions: any, args: any)")
        .doc("The arguments, those at the positions (a table that has them as keys, or one integer) followed.")
        .effect(Effect::state);
    r.add("seed(name: any, values: any)")
        .doc("A one like the first value, which must be a scalar; `name` is who asks.")
        .effect(Effect::state);
    r.add("unmark(context: any, values: any)")
        .doc("The values, no longer followed; the differentiation's forward part ends.")
        .effect(Effect::state);
}

void add_values(Registry& r) {
    r.add("accumulate(a: any, b: any)").doc("The sum of two cotangents; nil is zero.");
    r.add("list_at(i: any, value: any)").doc("A list with the value at i (from 0), nil before.");
    r.add("list_shift(i: any, list: any)").doc("The list behind i times nil.");
    r.add("list_length(list: any)").doc("The number of values in a list.");
    r.add("raw_index(table: any, key: any)").doc("table[key] without metamethods.");
    r.add("raw_set(table: any, key: any, value: any)")
        .doc("table[key] = value without metamethods.")
        .effect(Effect::state);
    r.add("new_table(positional: int, tail: any, fields: int)")
        .doc(
            "An empty table with room for that many elements, for those of the list tail behind them, and for fields.");
    r.add("table_extend(table: any, from: any, values: any)")
        .doc("Puts the values at from + 1 and what follows.")
        .effect(Effect::state);
    r.add("list_concat(a: any, b: any)").doc("The values of both lists.");
    r.add("follow(context: any, from: any, values: any)")
        .doc("The values, followed from here on if one in the list from is.");
    r.add("stop(x: any)").doc("The value, not followed.");
    r.add("custom_call(f: any, back: any, args: any)")
        .doc("The results of f(args...), whose backpropagator is back(args..., results..., cotangents...).")
        .effect(Effect::state);
    r.add("checkpoint_call(f: any, again: any, args: any)")
        .doc("The results of f(args...); when the backpropagator runs they are again(args...).")
        .effect(Effect::state);
    r.add("hold(args: any)").doc("The list with handles of its own on the tensors in it.").effect(Effect::state);
    r.add("watch(context: any, f: any, held: any, again: bool)")
        .doc(
            "The tensors in the list and those that f captures (all if it is to run again, else those that are "
            "followed), each with its version.")
        .effect(Effect::state);
    r.add("unwritten(name: any, args: any, held: any, watched: any, results: any)")
        .doc("The results, with an argument in the place of its handle; an error if what is watched was written into.")
        .effect(Effect::state);
    r.add("given_cotangents(args: any, cotangents: any)")
        .doc("The cotangents that a program gives for the arguments; an error where one has another shape.")
        .effect(Effect::state);
    r.add("unchanged(watched: any)").doc("An error if what is watched was written into.").effect(Effect::state);
    r.add("to_number(x: any)").doc("A tensor of one element as a number.");
    r.add("number_like(x: any, tensor: any)").doc("A number as a tensor of the dtype and shape of one of one element.");
    r.add("overwrite(tensor: any, value: any)")
        .doc("The tensor, whose handle has the other tensor's content from here on.")
        .effect(Effect::state);
    r.add("content(x: any, boxes: any)")
        .doc(
            "What a tensor of which one of the boxes is not nil holds at present, as a tensor that no write into the "
            "other changes; everything else as it is.")
        .effect(Effect::state);
    r.add("number_tensor(x: any, dtype: any)").doc("A number as a tensor of rank 0.");
    r.add("batched(size: any, f: any)").doc("The function f, run once for so many samples; see jit/vm/region.h.");
}

}  // namespace

void add_adjoint_primitives(Registry& r) {
    add_ordered(r);
    add_shadows(r);
    add_values(r);
}

}  // namespace lunaria::lua
