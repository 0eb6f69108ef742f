#include "interpreter/values/callables.h"

#include <tuple>

namespace lunaria {

bool is_compiled(lua_State* L, int argument) {
    return lua_type(L, argument) == LUA_TUSERDATA && luaL_testudata(L, argument, jit::kMetatable);
}

void use_as_function(lua_State* L, int argument) {
    if (!is_compiled(L, argument)) return;
    luaL_checkstack(L, 4, "function");
    if (lua_getiuservalue(L, argument, jit::kCompiledStandIn) != LUA_TFUNCTION) {
        lua_pop(L, 1);
        luaL_getmetafield(L, argument, "__function");
        lua_pushvalue(L, argument);
        lua_call(L, 1, 1);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, argument, jit::kCompiledStandIn);
    }
    lua_replace(L, argument);
}

void use_target(lua_State* L, int argument) {
    if (!is_compiled(L, argument)) return;
    lua_getiuservalue(L, argument, jit::kCompiledTarget);
    if (lua_isfunction(L, -1)) return lua_replace(L, argument);
    // An object that can be called, such as a cell, is no function.
    lua_pop(L, 1);
    use_as_function(L, argument);
}

void replace_functions(lua_State* L, std::initializer_list<Replacement> replacements) {
    for (const auto& [library, name, function] : replacements) {
        lua_getglobal(L, library);
        lua_getfield(L, -1, name);
        lua_pushcclosure(L, function, 1);
        lua_setfield(L, -2, name);
        lua_pop(L, 1);
    }
}

}  // namespace lunaria
