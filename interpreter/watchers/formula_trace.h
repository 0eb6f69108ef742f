// What a Lua function computes from scalars, as a formula (core/custom/custom_op.h): arithmetic, comparisons, operators
// that work element by element, Lua's own mathematics. Where it decides by an input (if, and, or, a loop's condition),
// every way is followed and the formula chooses among their results.
#pragma once

#include <memory>
#include <span>

#include "core/custom/custom_op.h"
#include "interpreter/host/lua_host.h"

namespace lunaria {

// Calls f in the Lua thread L with scalars that nobody knows the values of. Throws with the line of the user's text
// where something cannot be part of a formula.
std::unique_ptr<ir::Graph> trace_formula(lua_State* L, const Value& f, std::span<const CustomOp::Input> inputs);

}  // namespace lunaria
