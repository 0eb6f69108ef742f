// Stand-ins for functions that are not written in Lua, where a derivative is computed.
#pragma once

#include <lua.hpp>
#include <unordered_map>
#include <unordered_set>

#include "core/operator/op.h"

namespace lunaria {

class LuaHost;

class StandIns {
  public:
    StandIns(LuaHost& host, lua_State* main);
    // Wherever a derivative is computed, the function at `index` is replaced by the Lua function at `by`; `followed`:
    // only where its arguments hold active values.
    void set(lua_State* L, int index, int by, bool followed);
    // The function at the index makes stand-ins of methods such as add_: of the operator and the method itself.
    void set_in_place_maker(lua_State* L, int index);
    // See LibraryFunction.
    void set_harmless(lua_CFunction f) { harmless_.insert(f); }
    // The C function at the index runs itself where no derivative is computed, also while the call is recorded.
    void set_in_derivatives(lua_State* L, int index) { in_derivatives_.insert(lua_tocfunction(L, index)); }

    bool is_harmless(lua_CFunction f) const { return harmless_.contains(f); }
    bool is_in_derivatives(lua_CFunction f) const { return in_derivatives_.contains(f); }
    // Pushes the replacement of the function at the index wherever a derivative is computed, or nil.
    bool push_replacement(lua_State* L, int index) const;
    // The replacement of the function where its arguments hold active values; nil: there is none.
    Value find(const Value& f);

  private:
    LuaHost& host_;
    int replacements_, stand_ins_, in_place_maker_ = LUA_NOREF;
    std::unordered_map<const Op*, Value> operators_;
    std::unordered_set<lua_CFunction> harmless_, in_derivatives_;
};

}  // namespace lunaria
