// Operators as Lua functions: one closure per registry entry, for ops.name, the method and the operator sign.
#pragma once

#include <lua.hpp>

#include "core/operator/op.h"
#include "jit/vm/host.h"

namespace lunaria {

// Pushes the function that calls the operator.
void push_operator(lua_State* L, const Op& op);
// The same for an operator sign with one operand, which Lua passes twice.
void push_unary_operator(lua_State* L, const Op& op);

// The operator that the function at `index` calls; null for another function or value.
const Op* operator_at(lua_State* L, int index);

// Calls the operator with all values on the stack as arguments, pushes its results and returns their number.
int call_operator(lua_State* L, const Op& op);

// All arguments of a call, in the order of the signature, from the values on the stack: by position, by name in a
// trailing table, with sizes spelled out. Throws argument_error. `paths`, if not null: the source of each argument,
// with the value at stack index 1 as argument 0.
std::vector<Value> bind_arguments(lua_State* L, const Op& op,
                                  std::vector<std::vector<vm::Host::Bound::Path>>* paths = nullptr);

}  // namespace lunaria
