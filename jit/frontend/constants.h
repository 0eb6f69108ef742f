// Compile-time values of `local x <const> = …`, by stock Lua's rules: such a variable is not stored and never an
// upvalue, so that folding more or less than stock Lua would give other upvalue lists.
#pragma once

#include <optional>

#include "jit/frontend/ast.h"

namespace lunaria::lua {

std::optional<Constant> fold_constant(const Expr& expr);

}  // namespace lunaria::lua
