// Argument types of functions of Lua's standard library, for those that the machine runs in its own way. It does so
// only with arguments about which Lua's function raises no error and of which it converts none. With all others Lua's
// own function is called, and the user sees its message.
#pragma once

#include <lua.hpp>

#include <span>
#include <string_view>
#include <unordered_map>

#include "core/tensor/value.h"

namespace lunaria {

class LuaArguments {
  public:
    // Letters of arguments_fit() (jit/vm/native.h); "": not known.
    std::string_view of(lua_State* L, lua_CFunction f);
    void note(lua_State* L, lua_CFunction f, std::string_view kinds);
    static bool fit(std::string_view kinds, std::span<const Value> args);

  private:
    void note_library(lua_State* L);

    std::unordered_map<lua_CFunction, std::string_view> kinds_;
};

}  // namespace lunaria
