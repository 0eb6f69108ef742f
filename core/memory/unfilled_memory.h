// Memory that is asked for and never filled: while somebody only wants to know the shapes of tensors, all large blocks
// are one reserved piece of address space, so that networks of any size fit. Reading one gives whatever is there.
#pragma once

#include <cstddef>

namespace lunaria {

// While one of these lives, large blocks that this thread asks core/memory/memory.h for are such. They may be released
// at any time, by any thread.
class UnfilledMemory {
  public:
    UnfilledMemory();
    ~UnfilledMemory();
    UnfilledMemory(const UnfilledMemory&) = delete;

    // For core/memory/memory.cpp. The piece, where a block of so many bytes is to be a part of it; else null.
    static void* piece_for(size_t bytes);
    static bool owns(const void* block);

  private:
    bool before_;
};

}  // namespace lunaria
