// A vector for intermediate data of a kernel: it comes from the memory of tensors and is not initialised. Filling
// hundreds of megabytes with zeros would take as long as many kernels themselves, without noticing interrupts.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/memory/memory.h"

namespace lunaria::cpu {

template <class T>
struct ScratchAllocator {
    using value_type = T;
    ScratchAllocator() = default;
    template <class U>
    ScratchAllocator(const ScratchAllocator<U>&) {}

    T* allocate(size_t count) { return static_cast<T*>(lunaria::allocate(count * sizeof(T))); }
    void deallocate(T* block, size_t count) noexcept { release(block, count * sizeof(T)); }
    template <class U>
    void construct([[maybe_unused]] U* at) noexcept {
        if constexpr (!std::is_trivially_copyable_v<U>) ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Arguments>
    void construct(U* at, Arguments&&... arguments) {
        std::construct_at(at, std::forward<Arguments>(arguments)...);
    }
    bool operator==(const ScratchAllocator&) const { return true; }
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace lunaria::cpu
