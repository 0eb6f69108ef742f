// What the records of a compiled function refer to, kept by the function itself: it may be collected together with what
// only its records know. Objects and keys of questions lie a second time on the stack of a Lua thread that never runs,
// where guards find them by their place.
#pragma once

#include <lua.hpp>
#include <string>
#include <unordered_map>

#include "jit/trace/trace.h"

namespace lunaria {

class Kept {
  public:
    // What has to be free above what lies in the pool.
    static constexpr int kSpace = 40;

    // Begins anew: pushes the table and the thread, which the function has to keep.
    void begin(lua_State* L);
    // Has the objects of the tree's new steps kept in the table at the index, and tells the steps where they are.
    void keep(lua_State* L, int table, trace::Tree& tree);
    lua_State* pool() const { return pool_; }

  private:
    int place_of(lua_State* L, int table, const std::string& text);

    int keepers_ = LUA_NOREF, keeper_ = -1;  // see LuaReference
    lua_State* pool_ = nullptr;
    std::unordered_map<std::string, int> keys_;  // where the texts are that tables are indexed by
};

}  // namespace lunaria
