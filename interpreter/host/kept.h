// Objects that the records of a compiled function refer to. The function itself keeps them, so that it can be collected
// together with objects that only its records refer to. Objects and keys of guards are also on the stack of a Lua
// thread that never runs, where guards find them by their place.
#pragma once

#include <lua.hpp>
#include <string>
#include <unordered_map>

#include "jit/trace/trace.h"

namespace lunaria {

class Kept {
  public:
    // The free space needed above the pool's content.
    static constexpr int kSpace = 40;

    // Begins anew: pushes the table and the thread, which the function has to keep.
    void begin(lua_State* L);
    // Keeps the objects of the tree's new steps in the table at the index, and tells the steps their places.
    void keep(lua_State* L, int table, trace::Tree& tree);
    lua_State* pool() const { return pool_; }

  private:
    int place_of(lua_State* L, int table, const std::string& text);

    int keepers_ = LUA_NOREF, keeper_ = -1;  // see LuaReference
    lua_State* pool_ = nullptr;
    std::unordered_map<std::string, int> keys_;       // places of the texts that are keys of tables
    std::unordered_map<const void*, int> positions_;  // of objects, which stay in the table
};

}  // namespace lunaria
