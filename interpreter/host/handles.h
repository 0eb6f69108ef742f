// The objects that Lua has of tensors and of what the machine made. To Lua a tensor is the object that holds it: what
// it is found by as a key of a table, and what it is equal to. So what comes back from the machine is the object that
// went in, while the program has it.
#pragma once

#include <lua.hpp>

#include "core/tensor/tensor.h"

namespace lunaria {

class Handles {
  public:
    explicit Handles(lua_State* main);
    // What is at the index was made for a closure or a coroutine.
    void note(lua_State* L, int index, const void* body);
    // False, and nothing is pushed: the program has no object of it.
    bool push(lua_State* L, const void* body);
    // The same of a tensor, whose object is at the index; one is made where there is none.
    void note_tensor(lua_State* L, int index, TensorBody** place);
    void push_tensor(lua_State* L, const Tensor& t);

  private:
    int handles_;
};

// A new table with weak keys ("k") or values ("v") in the registry.
int weak_table(lua_State* L, const char* mode);

}  // namespace lunaria
