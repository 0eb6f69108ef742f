// Formulas of Lua functions over scalars (core/custom/custom_op.h): arithmetic, comparisons, elementwise operators,
// Lua's own mathematics. Where the function decides by an input (if, and, or, a loop's condition), all branches are run
// and the formula selects among their results.
#pragma once

#include <memory>
#include <span>

#include "core/custom/custom_op.h"
#include "interpreter/host/lua_host.h"

namespace lunaria {

// Calls f in the Lua thread L with scalars of unknown values. Throws with the line of the user's text where something
// cannot be part of a formula.
std::unique_ptr<ir::Graph> trace_formula(lua_State* L, const Value& f, std::span<const CustomOp::Input> inputs);

}  // namespace lunaria
