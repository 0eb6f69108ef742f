// Lua values that the machine holds by reference: tables, functions, userdata, and the upvalues of Lua functions.
#pragma once

#include <lua.hpp>

#include "jit/vm/object.h"

namespace lunaria {

class LuaHost;

class LuaReference final : public Object {
  public:
    LuaReference(lua_State* main, lua_State* L, int index)
        : type(lua_type(L, index)), main_(main), pointer_(lua_topointer(L, index)) {
        lua_pushvalue(L, index);
        reference_ = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    ~LuaReference() override { luaL_unref(main_, LUA_REGISTRYINDEX, reference_); }

    void push(lua_State* L) const { lua_rawgeti(L, LUA_REGISTRYINDEX, reference_); }
    const void* identity() const override { return pointer_; }

    const int type;

  private:
    lua_State* main_;
    const void* pointer_;
    int reference_;
};

// A variable of a Lua function that its closures share.
class UpvalueCell final : public vm::Cell {
  public:
    UpvalueCell(LuaHost& host, Value function, lua_State* L, int index, int position);
    Value get() const override;
    void set(Value v) override;
    const void* identity() const override { return identity_; }

  private:
    LuaHost& host_;
    Value function_;
    int position_;
    const void* identity_;
};

}  // namespace lunaria
