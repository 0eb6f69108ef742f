// Names of fields that were read, by a hash of the string's address, with the operator that was found last by each: a
// name is hashed by Lua and an operator recognised once. What Lua has under the two references keeps it from using the
// addresses for something else.
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
    // A string, on the stack.
    Name& push(lua_State* L, const Value& name);
    // The value on top of the stack, found by the name.
    Value value_by(lua_State* L, Name& name);

  private:
    LuaHost& host_;
    std::array<Name, 256> names_;
};

}  // namespace lunaria
