// Memory of temporaries. Programs that do not run at the same time share it: the next one writes to the data that the
// last one left in the processor's caches, and many programs of one function (one for each length of a sequence) need
// no more memory than the largest of them.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "core/tensor/tensor.h"

namespace lunaria::graph {

class Arena {
  public:
    Arena(size_t bytes, Device* place);
    Arena(const Arena&) = delete;

    // False: another run has reserved it. Its content is undefined.
    bool reserve() { return !reserved_.exchange(true, std::memory_order_acquire); }
    void give_back() { reserved_.store(false, std::memory_order_release); }

  private:
    friend class ArenaShare;
    Device* const place_;
    const size_t bytes_;
    Tensor memory_;
    std::atomic<bool> reserved_ = false;
};

// A program's share of an arena of at least so many bytes, reserved for a run from the beginning.
class ArenaShare {
  public:
    ArenaShare(size_t bytes, Device* place);
    ~ArenaShare() { give_back(); }
    ArenaShare(const ArenaShare&) = delete;

    bool reserve() { return reserved_ = arena_->reserve(); }
    void give_back() {
        if (std::exchange(reserved_, false)) arena_->give_back();
    }
    char* data() const { return arena_->memory_.data<char>(); }

  private:
    std::shared_ptr<Arena> arena_;  // owned by all its shares
    bool reserved_ = true;
};

}  // namespace lunaria::graph
