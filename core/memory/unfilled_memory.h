// Memory for tensors whose shapes alone matter: all large blocks are one reserved piece of address space, which is
// never filled, so that networks of any size fit. Reading it gives undefined elements.
#pragma once

#include <cstddef>

namespace lunaria {

// While such an object lives, large blocks that this thread asks core/memory/memory.h for are in the reserved piece.
// They may be released at any time, by any thread.
class UnfilledMemory {
  public:
    UnfilledMemory();
    ~UnfilledMemory();
    UnfilledMemory(const UnfilledMemory&) = delete;

    // For core/memory/memory.cpp. A part of the piece for a block of so many bytes; null: the block is to be allocated
    // as usual.
    static void* piece_for(size_t bytes);
    static bool owns(const void* block);
    // Whether such an object lives in this thread.
    static bool is_wanted();

  private:
    bool before_;
};

}  // namespace lunaria
