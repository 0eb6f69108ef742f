// Lua's objects for tensors and for objects of the machine. To Lua a tensor is the object that holds it: as a key of a
// table it is found by that object, and it is equal to that object. So a tensor that comes back from the machine is the
// object that went in, as long as the program has it.
#pragma once

#include <lua.hpp>

#include "core/tensor/tensor.h"

namespace lunaria {

class Handles {
  public:
    explicit Handles(lua_State* main);
    // Notes that the value at the index was made for a closure or a coroutine.
    void note(lua_State* L, int index, const void* body);
    // False, with nothing pushed: the program has no object for it.
    bool push(lua_State* L, const void* body);
    // The same for a tensor, whose object is at the index; push_tensor makes one where there is none.
    void note_tensor(lua_State* L, int index, TensorBody** place);
    void push_tensor(lua_State* L, const Tensor& t);

  private:
    int handles_;
};

// A new table with weak keys ("k") or values ("v") in the registry.
int weak_table(lua_State* L, const char* mode);

}  // namespace lunaria
