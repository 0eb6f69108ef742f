// Functions that graph mode compiles: ms.jit(f) is a userdata that holds a tree of traces and, as user values, the
// objects that it keeps alive (interpreter/values/callables.h).
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>

#include "core/ir/graph.h"

namespace lunaria::trace {
struct Tree;
}

namespace lunaria::jit {

// The module behind lunaria/graph.lua, on the stack.
int open(lua_State* L);

// The records of the compiled function at `index`; throws a Lua error where there is none.
trace::Tree& tree_at(lua_State* L, int index);

// For hot.cpp, in the form of Lua functions: with the metatable as upvalue 1, the compiled function as argument 1.
// try_call(f, arguments...): whether the call is done; take(f): its results then.
int try_call(lua_State* L);
int take(lua_State* L);
// Pushes the compiled function for the Lua function at the index, compiled unasked: it is left to Lua where that is
// likely to be faster.
void make_for_entry(lua_State* L, int function);
bool is_left_to_lua_for_good(lua_State* L, int compiled);
// Whether Lua has collected it: it can be found for as long as its original can still be finalized.
bool is_collected(lua_State* L, int compiled);

// lowered(f): the compiled form of each stretch of operators, compiled now if it was not yet: a list of tables.
int lowered(lua_State* L);
// whole(f, name): the call as one graph, as text; name(kind, object, key) gives a name to what it finds outside, and an
// example of a tensor.
int whole(lua_State* L);
// The same as a graph, with the function and the namer at these places of the stack.
std::unique_ptr<ir::Graph> whole_graph(lua_State* L, int function, int namer);

}  // namespace lunaria::jit
