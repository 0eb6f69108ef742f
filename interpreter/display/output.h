// Lua's standard output as text for a hook instead of the process's streams: print, io.write and the files io.stdout
// and io.stderr. Output of C libraries does not pass through it.
#pragma once

#include <functional>
#include <lua.hpp>
#include <string_view>

namespace lunaria {

using OutputHook = std::function<void(bool is_error, std::string_view text)>;

// The hook must live until restore_output.
void redirect_output(lua_State* L, const OutputHook& hook);
void restore_output(lua_State* L);
bool is_output_redirected(lua_State* L);

}  // namespace lunaria
