// Lua's objects for tensors and for objects of the machine. To Lua a tensor is the object that holds it: as a key of a
// table it is found by that object, and it is equal to that object. So a tensor that comes back from the machine is the
// object that went in, as long as the program has it.
//
// Weak tables show whether an object still exists. In a program that has some, Lua's object lives as long as anything
// else holds the tensor, the closure or the coroutine, as if the machine's registers were variables of Lua.
#pragma once

#include <lua.hpp>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria {

class LuaHost;

class Handles {
  public:
    Handles(LuaHost& host, lua_State* main);
    // Notes that the value at the index was made for a closure or a coroutine, or came back as one.
    void note(lua_State* L, int index, const void* body);
    // An object of the machine that Lua gives back: its own is at the index.
    Value noted(lua_State* L, int index, Value object);
    // False, with nothing pushed: the program has no object for it.
    bool push(lua_State* L, const void* body);
    // The same for a tensor, whose object is at the index; push_tensor makes one where there is none.
    void note_tensor(lua_State* L, int index, TensorBody** place);
    void push_tensor(lua_State* L, const Tensor& t);

    // Whether objects are kept for the sake of weak tables.
    bool keeps(lua_State* L) { return keeps_ || begin_to_keep(L); }
    // Keeps no longer what has no other owner than its object: what was noted since the last time, or anything.
    void sweep_new(lua_State* L) {
        if (!new_.empty()) sweep(L, new_, &old_);
    }
    void sweep_all(lua_State* L);
    // Leaves the object to Lua's collector until it is noted again.
    void release(lua_State* L, const void* body);

  private:
    bool begin_to_keep(lua_State* L);
    void keep(lua_State* L, int index, const void* body);
    void sweep(lua_State* L, std::vector<const void*>& bodies, std::vector<const void*>* survivors);

    LuaHost& host_;
    int handles_;           // objects by tensor, closure or coroutine, as weak values
    int kept_ = LUA_NOREF;  // the same of those that are kept
    bool keeps_ = false;
    std::vector<const void*> new_, old_;  // keys of kept_: since the last sweep, before
    size_t settled_ = 0;                  // the size of old_ after its last sweep
    uint64_t swept_bytes_ = 0;            // thread_allocated_bytes() at the last sweep
};

// A new table with weak keys ("k") or values ("v") in the registry.
int weak_table(lua_State* L, const char* mode);

}  // namespace lunaria
