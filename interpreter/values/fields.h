// Fields of the table on top of the stack.
#pragma once

#include "interpreter/values/values.h"

namespace lunaria {

inline void set_text(lua_State* L, const char* name, std::string_view text) {
    push(L, text);
    lua_setfield(L, -2, name);
}
inline void set_number(lua_State* L, const char* name, double number) {
    lua_pushnumber(L, number);
    lua_setfield(L, -2, name);
}
inline void set_integer(lua_State* L, const char* name, int64_t number) {
    lua_pushinteger(L, static_cast<lua_Integer>(number));
    lua_setfield(L, -2, name);
}

}  // namespace lunaria
