// Functions that graph mode compiles without being asked: those of the user's that are called again and again and work
// with tensors. Their prologue (interpreter/loader/prologue.h) asks for each call; a function that turns out to gain
// nothing is left alone.
#pragma once

#include <lua.hpp>

namespace lunaria::jit {

// Has the prologues ask, or no longer ask.
void watch_functions(lua_State* L, bool on);

// The table whose field `graph` tells whether graph mode is on: set by ms.set_context, read by the library.
void push_mode(lua_State* L);

// compiled(f): the compiled function that stands for f, an object whose calls graph mode compiles; nil if there is
// none.
int compiled(lua_State* L);
// note_compiled(f, compiled): makes it known.
int note_compiled(lua_State* L);
// all_compiled(): a list of {function or object, compiled function}.
int all_compiled(lua_State* L);

}  // namespace lunaria::jit
