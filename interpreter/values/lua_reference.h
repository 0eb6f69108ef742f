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
    // The same by `position` in a table that is kept alive elsewhere, as entry `keeper` of the registry's table
    // `keepers`, whose values are weak: so that an owner of the reference that its target keeps alive can be collected.
    LuaReference(const LuaReference& other, int keepers, int keeper, int position)
        : type(other.type),
          main_(other.main_),
          pointer_(other.pointer_),
          reference_(position),
          keepers_(keepers),
          keeper_(keeper) {}
    ~LuaReference() override {
        if (keeper_ < 0) luaL_unref(main_, LUA_REGISTRYINDEX, reference_);
    }

    void push(lua_State* L) const {
        if (keeper_ < 0) {
            if (reference_ == LUA_NOREF) [[unlikely]]
                end_collection(L);
            lua_rawgeti(L, LUA_REGISTRYINDEX, reference_);
            return;
        }
        lua_rawgeti(L, LUA_REGISTRYINDEX, keepers_);
        // The keeper is gone if it was collected together with everything that had this reference.
        if (lua_rawgeti(L, -1, keeper_) == LUA_TTABLE)
            lua_rawgeti(L, -1, reference_);
        else
            lua_pushnil(L);
        lua_replace(L, -3);
        lua_pop(L, 1);
    }
    bool is_kept() const { return keeper_ >= 0; }
    int position() const { return reference_; }  // for a kept one
    const void* identity() const override { return pointer_; }
    // Releases the object, and takes it back: see boxes.cpp.
    void weaken() {
        luaL_unref(main_, LUA_REGISTRYINDEX, reference_);
        reference_ = LUA_NOREF;
    }
    void strengthen(lua_State* L, int index) {
        if (reference_ != LUA_NOREF) return;
        lua_pushvalue(L, index);
        reference_ = luaL_ref(L, LUA_REGISTRYINDEX);
    }

    const int type;

  private:
    static void end_collection(lua_State* L);
    lua_State* main_;
    const void* pointer_;
    int reference_;
    int keepers_ = LUA_NOREF, keeper_ = -1;
};

// A variable of a Lua function that its closures share.
class UpvalueCell final : public vm::Cell {
  public:
    UpvalueCell(LuaHost& host, Value function, lua_State* L, int index, int position);
    Value get() const override;
    void set(Value v) override;
    const void* identity() const override { return identity_; }
    void for_each_owned(const std::function<void(const Value&)>& f) const override { f(function_); }

  private:
    LuaHost& host_;
    Value function_;
    int position_;
    const void* identity_;
};

}  // namespace lunaria
