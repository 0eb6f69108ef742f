// What is known of Lua's and the module's functions that are written in C.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <lua.hpp>
#include <unordered_map>

namespace lunaria::jit {

enum class Native : uint8_t {
    unknown,  // it may do anything
    pure,     // plain arguments give plain results, always the same
    text,     // the same, and all that it gives are texts
    reader,   // looks at its arguments' content; changes nothing and calls nobody
    local,    // an effect that leaves all tables and variables as they are
    type_of,
    select,
    get_metatable,
    set_metatable,
    next_key,
    pairs,
    ipairs,
    raw_equal,
    raw_length,
    item,
    is_tensor,
    is_parameter,
    error,
    handler,  // xpcall
    check,    // assert
    itself,   // its first argument
    inside,   // whether this is a recording
    ignored,  // nothing that a result depends on
    refused,  // whoever calls it is left to Lua
    shape,    // of tensors: what their type tells
    rank,     // of tensors: what their type tells, but for the sizes
};

class Natives {
  public:
    // Looks the functions up in the libraries as they are now.
    explicit Natives(lua_State* L);
    // Of the C function at the index; seen through what stands for it.
    Native find(lua_State* L, int index) const;

  private:
    void note(lua_State* L, const char* library, std::initializer_list<const char*> names, Native kind);
    std::unordered_map<lua_CFunction, Native> kinds_;
    lua_CFunction original_ = nullptr;
};

// Of the libraries of a Lua state, looked up once.
const Natives& natives_of(lua_State* L);
// Destroys it, if it was made: the state is about to be closed.
void end_natives(lua_State* L);

}  // namespace lunaria::jit
