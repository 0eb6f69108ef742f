// Tables of parts in C functions, so that completion, which runs no code of Lua, may call them.
#include "interpreter/values/parts.h"

#include "interpreter/protect.h"

namespace lunaria {

namespace {

// __index of such a table. Upvalue 1: a function that returns the value of a name or raises an error.
int index_part(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, 1);
    return 1;
}

int next_item(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    if (lua_next(L, 1)) return 2;
    lua_pushnil(L);
    return 1;
}

// __pairs of such a table: all of its names. Upvalue 1 as above; upvalue 2: a table with the names as keys.
int all_parts(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_pushnil(L);
    while (lua_next(L, lua_upvalueindex(2))) {
        lua_pop(L, 1);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 1) == LUA_TNIL) {
            lua_pushvalue(L, lua_upvalueindex(1));
            lua_pushvalue(L, -3);
            lua_call(L, 1, 1);
            lua_pushvalue(L, -3);
            lua_insert(L, -2);
            lua_rawset(L, 1);
        }
        lua_settop(L, 2);
    }
    lua_pushcfunction(L, next_item);
    lua_pushvalue(L, 1);
    return 2;
}

// set_parts(table, load, names): from now on the table has all names; load(name) returns the value of each when it is
// used.
int set_parts(lua_State* L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, protect<index_part>, 1);
    lua_setfield(L, -2, "__index");
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_pushcclosure(L, protect<all_parts>, 2);
    lua_setfield(L, -2, "__pairs");
    lua_setmetatable(L, 1);
    lua_settop(L, 1);
    return 1;
}

}  // namespace

int open_parts(lua_State* L) {
    lua_pushcfunction(L, protect<set_parts>);
    return 1;
}

bool load_parts(lua_State* L, int table) {
    const int top = lua_gettop(L);
    table = lua_absindex(L, table);
    if (luaL_getmetafield(L, table, "__pairs") != LUA_TFUNCTION || lua_tocfunction(L, -1) != protect<all_parts>) {
        lua_settop(L, top);
        return false;
    }
    lua_pushvalue(L, table);
    const bool loaded = lua_pcall(L, 1, 0, 0) == LUA_OK;
    lua_settop(L, top);
    return loaded;
}

}  // namespace lunaria
