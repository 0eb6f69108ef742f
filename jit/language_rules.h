// The derivatives of the primitives, one rule each: what a node becomes in the forward graph, and what the backward
// pass does for it. The rows of the primitives (jit/language*.cpp) refer to them; a primitive without a rule is copied
// and has no cotangent.
#pragma once

#include "jit/language.h"

namespace lunaria::autodiff {

using Rule = DerivativeRule;

namespace rules {

// Operators on tensors, arithmetic on plain numbers, Lua's operations; calls.
Rule operation, operation_again, make_pull, language_operation, index, set_index, call, pull, ordered, keep,
    custom_call, checkpoint_call;
// What has an identity.
Rule table, table_extend, raw_index, raw_set, closure, current_function, cell, cell_get, cell_set, overwrite, content;
// Cotangents that are kept in shadows.
Rule shadow_get, shadow_take, shadow_put, shadow_add, shadow_items, shadow_add_items, unless, reset;
// What moves values around without changing them: `lists_on` gives its last operand, a list.
Rule result, results_from, list_shift, list_at, list_concat, spread, accumulate, mark, lists_on, for_prepare, to_number,
    from_number;

// The reverse rules of primitives on plain numbers, where those of the operators that compute the same do not serve.
using NumberRule = Grads(const GradRule&);
NumberRule num_div, num_mod, num_fmod, num_pow, num_max, num_min, num_log_base, num_asin, num_acos, num_atan, num_atan2,
    num_tanh, num_select;

}  // namespace rules
}  // namespace lunaria::autodiff
