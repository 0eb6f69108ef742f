// The derivatives of the primitives, one rule each, which writes the node's part of the forward graph and its step of
// the backward pass. The rows of the primitives (jit/language*.cpp) refer to the rules; a primitive without a rule is
// copied and has no cotangent.
#pragma once

#include "jit/language.h"

namespace lunaria::autodiff {

using Rule = DerivativeRule;

namespace rules {

// Operators on tensors, arithmetic on plain numbers, Lua's operations; calls.
Rule operation, operation_again, make_pull, language_operation, index, set_index, call, pull, ordered, keep,
    custom_call, checkpoint_call;
// Objects with an identity.
Rule table, table_extend, raw_index, raw_set, closure, current_function, cell, cell_get, cell_set, overwrite, content;
// Cotangents in shadows.
Rule shadow_get, shadow_take, shadow_put, shadow_add, shadow_items, shadow_add_items, unless, reset;
// Primitives that pass values on unchanged: `lists_on` returns its last operand, a list.
Rule result, results_from, list_shift, list_at, list_concat, spread, accumulate, mark, lists_on, for_prepare, to_number,
    from_number;

// Reverse rules of primitives on plain numbers, where the rules of the operators with the same meaning do not suit.
using NumberRule = Grads(const GradRule&);
NumberRule num_div, num_mod, num_fmod, num_pow, num_max, num_min, num_log_base, num_asin, num_acos, num_atan, num_atan2,
    num_tanh, num_select;

}  // namespace rules
}  // namespace lunaria::autodiff
