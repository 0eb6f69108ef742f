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
// Where the argument is a level as the program counts, the level as Lua counts takes its place.
void use_program_level(lua_State* L, int argument, lua_State* thread);

// debug.sethook(...), by Lua's own `original`: the hook gets no events of prologues.
int set_program_hook(lua_State* L, lua_CFunction original);
// Whether such a hook wants to know of calls or lines of the thread, which compiled code has none of.
bool is_watched(lua_State* thread);

// Has debug.traceback, debug.gethook and debug.setlocal keep to that.
void install_frames(lua_State* L);

}  // namespace lunaria
