// coroutine.resume and coroutine.wrap as in Lua's library, plus a note of the running thread: an interrupt sets its
// hook there, and stock Lua does not tell which thread runs.
#pragma once

#include <lua.hpp>

namespace lunaria {

void track_coroutines(lua_State* L);

// Whether the function is coroutine.resume, which keeps errors from its caller.
bool is_coroutine_resume(lua_CFunction f);

}  // namespace lunaria
