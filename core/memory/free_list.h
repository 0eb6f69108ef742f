// Free lists for small objects that come and go all the time: each thread keeps a list of free blocks.
#pragma once

#include <new>
#include <utility>

#include "core/memory/watched_memory.h"

namespace lunaria {

// Free blocks for objects of class T; a thread has one list: `constinit thread_local FreeList<T>`. It needs no
// construction or destruction, so that an access does not check whether the thread has it yet.
template <class T>
class FreeList {
  public:
    void* take() {
        if (!head_) return ::operator new(sizeof(T) > sizeof(Link) ? sizeof(T) : sizeof(Link));
        --count_;
        return std::exchange(head_, head_->next);
    }
    void give(void* block) {
        if (count_ >= most_ && !open()) return ::operator delete(block);
        ++count_;
        head_ = new (block) Link{head_};
    }

  private:
    struct Link {
        Link* next;
    };
    struct Closer {
        FreeList* list;
        ~Closer() { list->close(); }
    };
    // False: the list is full, or the thread ends.
    bool open() {
        if (kMemoryIsWatched || most_ != 0 || closed_) return false;
        thread_local Closer closer{this};
        most_ = 4096;
        return true;
    }
    void close() {
        while (head_) ::operator delete(std::exchange(head_, head_->next));
        count_ = most_ = 0;
        closed_ = true;  // objects may outlive it
    }

    Link* head_ = nullptr;
    int count_ = 0, most_ = 0;
    bool closed_ = false;
};

}  // namespace lunaria
