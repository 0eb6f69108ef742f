// The allocator of a Lua state's memory. Tensor handles (userdata of two pointers) live in slabs of their own, which
// has three advantages: a handle is recognised by its address alone, whatever metatable a program gave it; making and
// freeing one is a push and a pop on a list; and it needs no finalizer, because the tensor is dropped when Lua frees
// the memory. A finalizer would cost a call and a second round of the collector for every temporary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <lua.hpp>
#include <vector>

#include "core/tensor/tensor.h"

namespace lunaria {

class LuaMemory {
  public:
    LuaMemory();
    ~LuaMemory();
    LuaMemory(const LuaMemory&) = delete;
    LuaMemory& operator=(const LuaMemory&) = delete;

    // A lua_Alloc; `self` is the LuaMemory.
    static void* allocate(void* self, void* block, size_t old_size, size_t new_size);

    // Pushes a new handle that owns the tensor's reference. It has no metatable yet.
    void push_handle(lua_State* L, Tensor tensor);

    // The tensor's place in the handle at `userdata` (as lua_touserdata gives it); null when it is anything else. The
    // place holds null after the tensor was released by hand.
    TensorBody** handle(void* userdata) {
        const auto address = reinterpret_cast<uintptr_t>(userdata) & ~(kSlab - 1);
        if (address == recent_) [[likely]]
            return static_cast<TensorBody**>(userdata);
        return find(address) ? static_cast<TensorBody**>(userdata) : nullptr;
    }
    // A second field beside the tensor's place, for a record of handles: null in a new handle.
    static TensorBody*& note(TensorBody** place) { return place[1]; }

  private:
    static constexpr uintptr_t kSlab = 256 * 1024;

    struct Link {
        Link* next;
    };
    bool find(uintptr_t slab);
    void* take_slot();
    bool add_slab() noexcept;

    uintptr_t recent_ = 1;          // slab of the handle that was last looked up; never a null pointer's
    std::vector<uintptr_t> slabs_;  // open addressing, 0 is free, size a power of two
    size_t slab_count_ = 0;
    Link* free_ = nullptr;
    size_t slot_size_ = 0;           // of a handle's block; 0 until the first one
    ptrdiff_t payload_offset_ = 0;   // from block to userdata
    bool expecting_handle_ = false;  // the next block of userdata is a handle
    void* last_block_ = nullptr;
};

}  // namespace lunaria
