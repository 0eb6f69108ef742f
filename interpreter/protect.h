// The one place where a C++ exception becomes a Lua error. Every C function that Lua can call is passed to it as
// protect<function>.
//
// Lua is the C++ build: its own errors are exceptions as well. They are not derived from std::exception, pass through
// here untouched and run the destructors of the frames that they cross; that is why nothing above a Lua call may catch
// (...).
#pragma once

#include <exception>
#include <lua.hpp>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace lunaria {

// The prefix of the names of the Lua library's chunks.
inline constexpr std::string_view kLibraryChunks = "@lunaria:";

// Raises a Lua error with the exception's message, preceded by current_place().
// Messages of syntax errors name a place already and are left alone.
[[noreturn]] void raise_error(lua_State* L, const std::exception& e);

// "file:line: " of the innermost running Lua function outside of the library; empty when there is none.
std::string current_place(lua_State* L);

template <lua_CFunction F>
int protect(lua_State* L) {
    try {
        return F(L);
    } catch (const std::exception& e) {
        raise_error(L, e);
    }
}

}  // namespace lunaria
