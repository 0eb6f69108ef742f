// The treatment in a recording of functions of Lua and of the module that are written in C.
#pragma once

#include <lua.hpp>
#include <unordered_map>

#include "interpreter/library/library_functions.h"
#include "jit/trace/captured_numbers.h"

namespace lunaria {

class Natives {
  public:
    // Looks up the functions in the libraries as they are now.
    explicit Natives(lua_State* L);
    // For the C function at the index; a stand-in counts as the function that it replaces.
    Native find(lua_State* L, int index) const;

  private:
    std::unordered_map<lua_CFunction, Native> kinds_;
    lua_CFunction original_ = nullptr;
};

// For the libraries of a Lua state, looked up once.
const Natives& natives_of(lua_State* L);
// The same for the numbers in captured variables.
trace::CapturedNumbers& captured_numbers_of(lua_State* L);
// Destroys it, if it was made, before the state is closed.
void end_natives(lua_State* L);

}  // namespace lunaria
