#include "interpreter/library/library_functions.h"

#include <algorithm>

#include "interpreter/state.h"

namespace lunaria {

namespace {

// Methods of tensors, as open_autodiff finds them.
bool push_methods(lua_State* L) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, State::of(L).tensor_metatable);
    lua_getfield(L, -1, "__index");
    return lua_getupvalue(L, -1, 1) != nullptr;
}

bool push_module(lua_State* L, const char* name, bool load) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, name) == LUA_TNIL && load) {
        lua_getglobal(L, "require");
        lua_pushstring(L, name);
        lua_call(L, 1, 1);
    }
    return lua_istable(L, -1);
}

}  // namespace

void push_library_function(lua_State* L, const LibraryFunction& row, std::string_view name, bool load) {
    luaL_checkstack(L, 6, "library");
    const int top = lua_gettop(L);
    bool found = row.library == std::string_view("tensor") ? push_methods(L) : push_module(L, row.library, load);
    while (found && !name.empty()) {
        const size_t end = std::min(name.find('.'), name.size());
        lua_pushlstring(L, name.data(), end);
        name.remove_prefix(std::min(end + 1, name.size()));
        if (load)
            lua_gettable(L, -2);
        else
            lua_rawget(L, -2);
        found = name.empty() || lua_istable(L, -1);
    }
    if (!found) lua_pushnil(L);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

}  // namespace lunaria
