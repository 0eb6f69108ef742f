#include "interpreter/display/output.h"

#include <cstdio>
#include <string>

#include "interpreter/protect.h"

namespace lunaria {

namespace {

constexpr const char* kSaved = "lunaria.saved_output";

const OutputHook& hook_of(lua_State* L) {
    return *static_cast<const OutputHook*>(lua_touserdata(L, lua_upvalueindex(1)));
}

std::string joined(lua_State* L, int first, const char* separator) {
    std::string text;
    for (int i = first; i <= lua_gettop(L); ++i) {
        size_t size = 0;
        if (i > first) text += separator;
        const char* part = luaL_tolstring(L, i, &size);
        text.append(part, size);
        lua_pop(L, 1);
    }
    return text;
}

int print(lua_State* L) {
    hook_of(L)(false, joined(L, 1, "\t") + "\n");
    return 0;
}

void check_written(lua_State* L, int first) {
    for (int i = first; i <= lua_gettop(L); ++i) luaL_checklstring(L, i, nullptr);
}

// 0 for other files, 1 for standard output, 2 for standard error.
int standard_file(lua_State* L, int index) {
    const auto* file = static_cast<luaL_Stream*>(luaL_testudata(L, index, LUA_FILEHANDLE));
    if (!file || !file->closef) return 0;
    return file->f == stdout ? 1 : file->f == stderr ? 2 : 0;
}

// file:write(...); upvalue 2 is Lua's own function.
int write_file(lua_State* L) {
    if (const int which = standard_file(L, 1)) {
        check_written(L, 2);
        hook_of(L)(which == 2, joined(L, 2, ""));
        lua_settop(L, 1);
        return 1;
    }
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

// io.write(...); upvalue 2 is Lua's own function, for when io.output() is another file.
int write(lua_State* L) {
    lua_getglobal(L, LUA_IOLIBNAME);
    lua_getfield(L, -1, "output");
    lua_call(L, 0, 1);
    lua_remove(L, -2);
    lua_insert(L, 1);
    if (const int which = standard_file(L, 1)) {
        check_written(L, 2);
        hook_of(L)(which == 2, joined(L, 2, ""));
        lua_settop(L, 1);
        return 1;
    }
    lua_remove(L, 1);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

// Pushes the table of methods of files.
void push_file_methods(lua_State* L) {
    luaL_getmetatable(L, LUA_FILEHANDLE);
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
}

void push_hooked(lua_State* L, const OutputHook& hook, lua_CFunction function, int original) {
    lua_pushlightuserdata(L, const_cast<OutputHook*>(&hook));
    lua_pushvalue(L, original);
    lua_pushcclosure(L, function, 2);
}

}  // namespace

void redirect_output(lua_State* L, const OutputHook& hook) {
    const int top = lua_gettop(L);
    lua_createtable(L, 0, 3);
    const int saved = top + 1;
    lua_getglobal(L, "print");
    push_hooked(L, hook, protect<print>, lua_gettop(L));
    lua_setglobal(L, "print");
    lua_setfield(L, saved, "print");

    lua_getglobal(L, LUA_IOLIBNAME);
    lua_getfield(L, -1, "write");
    push_hooked(L, hook, protect<write>, lua_gettop(L));
    lua_setfield(L, -3, "write");
    lua_setfield(L, saved, "write");

    push_file_methods(L);
    lua_getfield(L, -1, "write");
    push_hooked(L, hook, protect<write_file>, lua_gettop(L));
    lua_setfield(L, -3, "write");
    lua_setfield(L, saved, "write_file");

    lua_pushvalue(L, saved);
    lua_setfield(L, LUA_REGISTRYINDEX, kSaved);
    lua_settop(L, top);
}

void restore_output(lua_State* L) {
    const int top = lua_gettop(L);
    if (lua_getfield(L, LUA_REGISTRYINDEX, kSaved) == LUA_TTABLE) {
        lua_getfield(L, -1, "print");
        lua_setglobal(L, "print");
        lua_getglobal(L, LUA_IOLIBNAME);
        lua_getfield(L, top + 1, "write");
        lua_setfield(L, -2, "write");
        push_file_methods(L);
        lua_getfield(L, top + 1, "write_file");
        lua_setfield(L, -2, "write");
        lua_pushnil(L);
        lua_setfield(L, LUA_REGISTRYINDEX, kSaved);
    }
    lua_settop(L, top);
}

bool is_output_redirected(lua_State* L) {
    const bool redirected = lua_getfield(L, LUA_REGISTRYINDEX, kSaved) == LUA_TTABLE;
    lua_pop(L, 1);
    return redirected;
}

}  // namespace lunaria
