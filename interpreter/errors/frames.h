// The stack and its events as the program knows them: without the call that a prologue makes
// (interpreter/loader/prologue.h), in which the body of the Lua function around it is run by compiled code.
#pragma once

#include <lua.hpp>
#include <vector>

namespace lunaria {

// Which levels of the stack are the program's: all but the calls of prologues.
std::vector<int> program_levels(lua_State* thread);
// Of these those that a report of an error shows, from `first` on: without the functions of Lunaria's library and what
// they call, unless LUNARIA_LOG asks for them or there are no others, and without the call of the program by its host.
std::vector<int> reported_levels(lua_State* thread, int first);
// The line that the Lua function at the level is at, where compiled code does its work; 0: it runs by itself.
int compiled_line(lua_State* thread, int level);

// Whether a hook of debug.sethook wants to know of calls or lines of the thread, which compiled code has none of.
bool is_watched(lua_State* thread);

// Has the debug library keep to that, and leave the variables of prologues out; with type and string.dump it takes
// compiled functions for functions.
void install_frames(lua_State* L);

}  // namespace lunaria
