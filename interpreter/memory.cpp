#include "interpreter/memory.h"

#include <cassert>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/address_space.h"
#include "core/base/interrupt.h"
#include "core/memory/memory.h"

namespace lunaria {

namespace {

constexpr size_t kInterruptible = size_t{16} << 20;  // bytes
constexpr size_t kLarge = size_t{64} << 10;

}  // namespace

LuaMemory::LuaMemory() : slabs_(16) {}

LuaMemory::~LuaMemory() {
    for (uintptr_t slab : slabs_) std::free(reinterpret_cast<void*>(slab));
}

void* LuaMemory::allocate(void* self, void* block, size_t old_size, size_t new_size) {
    auto& memory = *static_cast<LuaMemory*>(self);
    // A loop of Lua's library that reads, joins or moves without end asks for more memory now and then: the only place
    // where it can be stopped.
    if (new_size >= kInterruptible && (!block || new_size > old_size) && interrupt_requested()) [[unlikely]]
        return nullptr;
    if (new_size >= kLarge && new_size > old_size && !address_space_has(new_size + kAddressesLeft)) return nullptr;
    if (!block) {
        if (new_size == 0) return nullptr;  // Lua also frees blocks that it never had
        // For a new block Lua tells the kind of object instead of an old size.
        if (memory.expecting_handle_ && old_size == LUA_TUSERDATA) {
            memory.expecting_handle_ = false;
            if (memory.slot_size_ == 0) memory.slot_size_ = (new_size + 15) & ~size_t{15};
            return memory.last_block_ = memory.take_slot();
        }
        void* const fresh = std::malloc(new_size);
        if (fresh && new_size >= kInterruptible) use_huge_pages(fresh, new_size, true);
        return fresh;
    }
    if (new_size == 0) {
        // Only a block with the size of a handle is looked up.
        if (((old_size + 15) & ~size_t{15}) == memory.slot_size_ &&
            memory.find(reinterpret_cast<uintptr_t>(block) & ~(kSlab - 1))) {
            auto* body = *reinterpret_cast<TensorBody**>(static_cast<char*>(block) + memory.payload_offset_);
            memory.free_ = new (block) Link{memory.free_};
            if (body) Tensor::drop(body);
        } else {
            std::free(block);
        }
        return nullptr;
    }
    void* const larger = std::realloc(block, new_size);
    // A buffer that grows is about to be filled: a gigabyte would take a quarter of a million small pages.
    if (larger && new_size >= kInterruptible && new_size > old_size) use_huge_pages(larger, new_size, true);
    return larger;
}

void LuaMemory::push_handle(lua_State* L, Tensor tensor) {
    expecting_handle_ = true;
    last_block_ = nullptr;
    void* userdata = lua_newuserdatauv(L, 2 * sizeof(TensorBody*), 0);
    // When memory ran out at first, Lua may have found some elsewhere after a collection.
    if (std::exchange(expecting_handle_, false) || !handle(userdata)) throw std::bad_alloc();
    // Only once: a finalizer that Lua ran after it had the memory may have made handles, and the last block may be
    // another one.
    if (payload_offset_ == 0) payload_offset_ = static_cast<char*>(userdata) - static_cast<char*>(last_block_);
    note(static_cast<TensorBody**>(userdata)) = nullptr;
    *static_cast<TensorBody**>(userdata) = tensor.release();
}

bool LuaMemory::find(uintptr_t slab) {
    const size_t mask = slabs_.size() - 1;
    for (size_t i = slab / kSlab * 0x9E3779B1u & mask; slabs_[i]; i = (i + 1) & mask)
        if (slabs_[i] == slab) {
            recent_ = slab;
            return true;
        }
    return false;
}

void* LuaMemory::take_slot() {
    if (!free_ && !add_slab()) return nullptr;
    Link* slot = std::exchange(free_, free_->next);
    // The handle is empty until the tensor is put in: a collection may come in between.
    std::memset(static_cast<void*>(slot), 0, slot_size_);
    return slot;
}

// Called from within Lua, which handles a null pointer but no exception.
bool LuaMemory::add_slab() noexcept {
    if (!address_space_has(kSlab + kAddressesLeft)) return false;
    auto* slab = static_cast<char*>(std::aligned_alloc(kSlab, kSlab));
    if (!slab) return false;
    auto insert = [](std::vector<uintptr_t>& table, uintptr_t address) {
        const size_t mask = table.size() - 1;
        size_t i = address / kSlab * 0x9E3779B1u & mask;
        while (table[i]) i = (i + 1) & mask;
        table[i] = address;
    };
    if ((slab_count_ + 1) * 2 > slabs_.size()) try {
            std::vector<uintptr_t> larger(slabs_.size() * 2);
            for (uintptr_t old : slabs_)
                if (old) insert(larger, old);
            slabs_ = std::move(larger);
        } catch (const std::bad_alloc&) {
            std::free(slab);
            return false;
        }
    ++slab_count_;
    insert(slabs_, reinterpret_cast<uintptr_t>(slab));
    for (size_t at = kSlab / slot_size_ * slot_size_; at >= slot_size_; at -= slot_size_)
        free_ = new (slab + at - slot_size_) Link{free_};
    return true;
}

}  // namespace lunaria
