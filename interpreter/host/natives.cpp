#include "interpreter/host/natives.h"

#include <new>
#include <type_traits>

#include "interpreter/state.h"

namespace lunaria {

Natives::Natives(lua_State* L) {
    const int top = lua_gettop(L);
    for_each_library_function([&](const LibraryFunction& row, std::string_view name) {
        if (row.recorded == Native::unknown) return;
        push_library_function(L, row, name);
        if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, row.recorded);
        lua_pop(L, 1);
    });

    // Arithmetic with strings.
    lua_pushliteral(L, "");
    if (lua_getmetatable(L, -1))
        for (const char* event : {"__add", "__sub", "__mul", "__mod", "__pow", "__div", "__idiv", "__unm"}) {
            lua_getfield(L, -1, event);
            if (lua_CFunction f = lua_tocfunction(L, -1)) kinds_.emplace(f, Native::pure);
            lua_pop(L, 1);
        }

    // The result of core.original: a function that calls another one.
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "lunaria.autodiff");
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "original");
        lua_getglobal(L, "select");
        if (lua_isfunction(L, -1) && lua_pcall(L, 1, 1, 0) == LUA_OK) original_ = lua_tocfunction(L, -1);
    }
    lua_settop(L, top);
}

Native Natives::find(lua_State* L, int index) const {
    lua_CFunction f = lua_tocfunction(L, index);
    if (!f) return Native::unknown;
    if (f == original_ && lua_getupvalue(L, index, 1)) {
        f = lua_tocfunction(L, -1);
        lua_pop(L, 1);
    }
    auto found = kinds_.find(f);
    return found == kinds_.end() ? Native::unknown : found->second;
}

namespace {
int natives_key;
}

const Natives& natives_of(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &natives_key) == LUA_TNIL) {
        // Not finalized by Lua: finalizers of programs may still need it.
        new (lua_newuserdatauv(L, sizeof(Natives), 0)) Natives(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &natives_key);
        lua_remove(L, -2);
    }
    auto* known = static_cast<Natives*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return *known;
}

trace::CapturedNumbers& captured_numbers_of(lua_State* L) {
    static const char key = 0;
    static_assert(std::is_trivially_destructible_v<trace::CapturedNumbers>);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TNIL) {
        lua_pop(L, 1);
        new (lua_newuserdatauv(L, sizeof(trace::CapturedNumbers), 0)) trace::CapturedNumbers;
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
    }
    auto* numbers = static_cast<trace::CapturedNumbers*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return *numbers;
}

void end_natives(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &natives_key) != LUA_TNIL)
        static_cast<Natives*>(lua_touserdata(L, -1))->~Natives();
    lua_pop(L, 1);
}

}  // namespace lunaria
