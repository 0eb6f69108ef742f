// The stack and its events as the program sees them: without the call that a prologue makes
// (interpreter/loader/prologue.h), in which compiled code runs the body of the Lua function around it.
#pragma once

#include <lua.hpp>
#include <vector>

namespace lunaria {

// The levels of the stack that belong to the program: all but the calls of prologues.
std::vector<int> program_levels(lua_State* thread);
// The levels that a report of an error shows, from `first` on: without functions of Lunaria's library and those that
// they call, unless LUNARIA_LOG asks for them or there are no others, and without the call of the program by its host.
std::vector<int> reported_levels(lua_State* thread, int first);
// The current line of the Lua function at the level, if compiled code runs in its place; 0: Lua runs it.
int compiled_line(lua_State* thread, int level);

// Whether a hook of debug.sethook watches calls or lines of the thread, which compiled code does not have.
bool is_watched(lua_State* thread);

// Makes the debug library follow these rules and hide the variables of prologues; together with type and string.dump it
// treats compiled functions as functions.
void install_frames(lua_State* L);

}  // namespace lunaria
