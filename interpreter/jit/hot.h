// Functions that graph mode compiles unasked: those of the user's that are called again and again and work with
// tensors. Their prologue (interpreter/loader/prologue.h) asks for each call; a function that gains nothing is left
// alone.
#pragma once

#include <lua.hpp>
#include <string_view>

#include "jit/trace/runner.h"

namespace lunaria::jit {

// Makes the prologues ask, or stops them.
void watch_functions(lua_State* L, bool on);

// The table of the settings of graph mode, set by ms.set_context, read by the library: `graph`, whether it is on;
// `jit_level`, the name of what is compiled then; `deterministic`.
void push_mode(lua_State* L);
// The level of what graph mode compiles unasked, and that of a name.
trace::Level level_of_mode(lua_State* L);
trace::Level level_named(std::string_view name);

// A compiled function is called: for the function that is watched, if there is one.
void note_call(lua_State* L);

// compiled(f): the compiled function of f, an object whose calls graph mode compiles; nil if there is none.
int compiled(lua_State* L);
// note_compiled(f, compiled): enters it for compiled(f).
int note_compiled(lua_State* L);
// all_compiled(): a list of {function or object, compiled function}.
int all_compiled(lua_State* L);

}  // namespace lunaria::jit
