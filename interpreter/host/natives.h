// What a recording makes of Lua's and the module's functions that are written in C.
#pragma once

#include <lua.hpp>
#include <unordered_map>

#include "interpreter/library/library_functions.h"
#include "jit/trace/captured_numbers.h"

namespace lunaria {

class Natives {
  public:
    // Looks the functions up in the libraries as they are now.
    explicit Natives(lua_State* L);
    // Of the C function at the index; seen through what stands for it.
    Native find(lua_State* L, int index) const;

  private:
    std::unordered_map<lua_CFunction, Native> kinds_;
    lua_CFunction original_ = nullptr;
};

// Of the libraries of a Lua state, looked up once.
const Natives& natives_of(lua_State* L);
// The same for the numbers in variables that are met.
trace::CapturedNumbers& captured_numbers_of(lua_State* L);
// Destroys it, if it was made: the state is about to be closed.
void end_natives(lua_State* L);

}  // namespace lunaria
