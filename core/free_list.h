// Small objects that come and go all the time: each thread keeps a list of the blocks that are free.
#pragma once

#include <new>
#include <utility>

#include "core/watched_memory.h"

namespace lunaria {

// Blocks for objects of class T; meant to be thread_local.
template <class T>
class FreeList {
  public:
    ~FreeList() {
        while (head_) ::operator delete(std::exchange(head_, head_->next));
        closed_ = true;
    }
    void* take() {
        if (!head_) return ::operator new(sizeof(T) > sizeof(Link) ? sizeof(T) : sizeof(Link));
        --count_;
        return std::exchange(head_, head_->next);
    }
    void give(void* block) {
        if (closed_ || count_ >= kMost) return ::operator delete(block);
        ++count_;
        head_ = new (block) Link{head_};
    }

  private:
    struct Link {
        Link* next;
    };
    static constexpr int kMost = kMemoryIsWatched ? 0 : 4096;
    Link* head_ = nullptr;
    int count_ = 0;
    bool closed_ = false;  // objects may outlive the thread's list
};

}  // namespace lunaria
