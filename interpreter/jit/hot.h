// Functions that graph mode compiles unasked: those of the user's that are called again and again and work with
// tensors. Their prologue (interpreter/loader/prologue.h) asks for each call; a function that gains nothing is left
// alone.
#pragma once

#include <lua.hpp>

namespace lunaria::jit {

// Makes the prologues ask, or stops them.
void watch_functions(lua_State* L, bool on);

// The table whose field `graph` tells whether graph mode is on: set by ms.set_context, read by the library.
void push_mode(lua_State* L);

// compiled(f): the compiled function of f, an object whose calls graph mode compiles; nil if there is none.
int compiled(lua_State* L);
// note_compiled(f, compiled): enters it for compiled(f).
int note_compiled(lua_State* L);
// all_compiled(): a list of {function or object, compiled function}.
int all_compiled(lua_State* L);

}  // namespace lunaria::jit
