// Names of fields that were read, by a hash of the string's address, with the operator last found by each: a name is
// hashed by Lua and an operator recognised only once. References in Lua's registry keep the addresses from being used
// for something else.
#pragma once

#include <array>
#include <lua.hpp>

#include "core/tensor/value.h"

namespace lunaria {

class LuaHost;

class FieldNames {
  public:
    explicit FieldNames(LuaHost& host) : host_(host) {}
    struct Name {
        Value name;
        int key = LUA_NOREF, function = LUA_NOREF;
        const void* pointer = nullptr;
        Value found;
    };
    // Pushes the name, a string.
    Name& push(lua_State* L, const Value& name);
    // The value on top of the stack, which was found by the name.
    Value value_by(lua_State* L, Name& name);

  private:
    LuaHost& host_;
    std::array<Name, 256> names_;
};

}  // namespace lunaria
