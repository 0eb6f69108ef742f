// Functions that graph mode compiles: ms.jit(f) is a userdata that holds a tree of traces and, as its user value, f.
#pragma once

#include <lua.hpp>
#include <string>

namespace lunaria::jit {

struct Tree;

inline constexpr const char* kMetatable = "lunaria.jit";

// The table whose field `graph` tells whether graph mode is on: set by ms.set_context, read by the library.
void push_mode(lua_State* L);
// Whether a program that is run again is to give the same bits: what it does must not depend on times or on what is in
// caches (set_context{deterministic = }).
bool is_deterministic(lua_State* L);

// The module behind lunaria/graph.lua, on the stack.
int open(lua_State* L);

// The records of the compiled function at `index`; throws a Lua error where there is none.
Tree& tree_at(lua_State* L, int index);

// lowered(f): what was made of each stretch of operators, compiled now if it was not yet: a list of tables.
int lowered(lua_State* L);

}  // namespace lunaria::jit
