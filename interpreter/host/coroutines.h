// coroutine.resume and coroutine.wrap as in Lua's library, plus a note of the thread that runs: an interrupt sets its
// hook there, and stock Lua does not tell which thread that is.
#pragma once

#include <lua.hpp>

namespace lunaria {

void track_coroutines(lua_State* L);

// Whether it is coroutine.resume, which keeps errors from its caller.
bool is_coroutine_resume(lua_CFunction f);

}  // namespace lunaria
