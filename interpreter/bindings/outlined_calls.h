// Rows of outlines as lists of tables, and functions that give such lists.
#pragma once

#include <span>

#include "backends/ascend/outline.h"

struct lua_State;

namespace lunaria {

void push_calls(lua_State* L, std::span<const ascend::OutlinedCall> calls);

// The function rank_step of "lunaria.ascend_core" (bind_ascend_step.cpp).
int rank_step(lua_State* L);

}  // namespace lunaria
