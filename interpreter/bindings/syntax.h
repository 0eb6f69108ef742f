// The tree of a Lua text as tables, and the names of the library's parts, for what looks at programs and at the
// library.
#pragma once

#include <lua.hpp>

namespace lunaria {

// The module behind lunaria/check/.
int open_syntax(lua_State* L);

}  // namespace lunaria
