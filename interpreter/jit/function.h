// Functions that graph mode compiles: ms.jit(f) is a userdata that holds a tree of traces and, as its user value, f.
#pragma once

#include <lua.hpp>
#include <string>

namespace lunaria::jit {

inline constexpr const char* kMetatable = "lunaria.jit";

// The table whose field `graph` tells whether graph mode is on: set by ms.set_context, read by the library.
void push_mode(lua_State* L);

// The module behind lunaria/graph.lua, on the stack.
int open(lua_State* L);

}  // namespace lunaria::jit
