// ms.io.draft: a file that takes the place of another one once it is complete.
#pragma once

#include <lua.hpp>

#include "core/io/file.h"

namespace lunaria {

// The draft at `index`, still open; throws argument_error for another value, and for a draft that has ended.
FileSink& draft_at(lua_State* L, int index, std::string_view where);

// Adds `draft` to the table at the top.
void bind_draft(lua_State* L);

}  // namespace lunaria
