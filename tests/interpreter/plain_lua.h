// Lua without Lunaria, to compare its library with what takes the place of parts of it.
#pragma once

#include <gtest/gtest.h>

#include <lua.hpp>
#include <memory>
#include <string>

namespace lunaria {

struct CloseState {
    void operator()(lua_State* L) const { lua_close(L); }
};
using PlainState = std::unique_ptr<lua_State, CloseState>;

// A Lua state without a session, of which its extra space tells.
inline lua_State* new_plain_state() {
    lua_State* L = luaL_newstate();
    *static_cast<void**>(lua_getextraspace(L)) = nullptr;
    return L;
}

// The text that the program gives, with its global `seed`, after `install` if there is one.
inline std::string run_seeded(const char* program, int seed, void (*install)(lua_State*) = nullptr) {
    const PlainState owner(new_plain_state());
    lua_State* L = owner.get();
    luaL_openlibs(L);
    if (install) install(L);
    lua_pushinteger(L, seed);
    lua_setglobal(L, "seed");
    EXPECT_EQ(luaL_dostring(L, program), LUA_OK) << lua_tostring(L, -1);
    size_t size = 0;
    const char* text = lua_tolstring(L, -1, &size);
    return text ? std::string(text, size) : std::string();
}

}  // namespace lunaria
