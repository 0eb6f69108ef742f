#include "interpreter/host/callables.h"

#include <tuple>

#include "interpreter/jit/function.h"
#include "interpreter/loader/frames.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

bool is_compiled(lua_State* L, int argument) {
    return lua_type(L, argument) == LUA_TUSERDATA && luaL_testudata(L, argument, jit::kMetatable);
}

// The library's own function, in this very call of ours.
int original(lua_State* L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

int sethook(lua_State* L) {
    use_as_function(L, lua_isthread(L, 1) ? 2 : 1);
    return set_program_hook(L, original);
}

int getlocal(lua_State* L) {
    const int argument = lua_isthread(L, 1) ? 2 : 1;
    use_target(L, argument);
    use_program_level(L, argument, argument == 2 ? lua_tothread(L, 1) : L);
    return original(L);
}

int type(lua_State* L) {
    if (!is_compiled(L, 1)) return original(L);
    lua_pushstring(L, lua_typename(L, LUA_TFUNCTION));
    return 1;
}

int dump(lua_State* L) {
    use_target(L, 1);
    return original(L);
}

}  // namespace

void use_target(lua_State* L, int argument) {
    if (!is_compiled(L, argument)) return;
    lua_getiuservalue(L, argument, jit::kCompiledTarget);
    lua_replace(L, argument);
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

void replace_functions(lua_State* L, std::initializer_list<Replacement> replacements) {
    for (const auto& [library, name, function] : replacements) {
        lua_getglobal(L, library);
        lua_getfield(L, -1, name);
        lua_pushcclosure(L, function, 1);
        lua_setfield(L, -2, name);
        lua_pop(L, 1);
    }
}

void install_callables(lua_State* L) {
    replace_functions(L, {{LUA_GNAME, "type", protect<type>},
                          {LUA_STRLIBNAME, "dump", protect<dump>},
                          {LUA_DBLIBNAME, "sethook", protect<sethook>},
                          {LUA_DBLIBNAME, "getlocal", protect<getlocal>}});
}

}  // namespace lunaria
