// The progress of a call in its record, and the values that it has found on the way.
#pragma once

#include <vector>

#include "jit/trace/steady.h"
#include "jit/trace/trace.h"

namespace lunaria::trace {

// A set of distinct objects.
class Seen {
  public:
    // False: the set has it already.
    bool insert(const void* object) {
        if (2 * ++count_ > entries_.size()) grow();
        Entry* at = find(object);
        if (at->round == round_) {
            --count_;
            return false;
        }
        *at = {object, round_};
        order_.push_back(object);
        return true;
    }
    void clear() {
        ++round_;
        count_ = 0;
        order_.clear();
    }
    size_t count() const { return count_; }
    // Removes all but the first ones.
    void forget_from(size_t count) {
        if (count == count_) return;
        std::vector<const void*> kept = std::move(order_);
        clear();
        for (size_t i = 0; i < count; ++i) insert(kept[i]);
    }

  private:
    struct Entry {
        const void* object = nullptr;
        uint64_t round = 0;  // in which it was entered
    };
    Entry* find(const void* object) {
        const size_t mask = entries_.size() - 1;
        size_t i = (reinterpret_cast<uintptr_t>(object) >> 4) * 0x9E3779B97F4A7C15u >> 32 & mask;
        while (entries_[i].round == round_ && entries_[i].object != object) i = (i + 1) & mask;
        return &entries_[i];
    }
    void grow() {
        std::vector<Entry> before(entries_.empty() ? 16 : 2 * entries_.size());
        entries_.swap(before);
        for (const Entry& e : before)
            if (e.round == round_) *find(e.object) = e;
    }
    std::vector<Entry> entries_;      // a power of two
    std::vector<const void*> order_;  // in the order of insertion
    uint64_t round_ = 1;
    size_t count_ = 0;
};

// How far a call has come.
struct Progress {
    std::vector<Value> slots;
    std::vector<Value> handles;  // by slot, where the very handle of a tensor is needed outside again
    std::vector<Block*> path;    // the blocks that the call went through, the root first
    size_t done = 0;             // steps carried out, over all blocks
    bool effects = false;        // one of them was an effect
    // The next step was carried out as well, but had a new result (observed), or raised an error (failed).
    bool observed = false, failed = false;
    vm::Values results;
    Value error;
    // The sizes of tensors from outside that may have any sizes, by slot. Their slots may be empty by now.
    std::vector<std::pair<int32_t, Shape>> sizes;
    // Tensors and tables whose identities were compared.
    Seen bodies, tables;
    std::vector<Tensor> inputs, outputs;  // of a compiled graph
    std::vector<Value> numbers;           // likewise: numbers for which it is compiled
    Steady* steady = nullptr;             // in a loop of calls between which nothing else runs

    void clear() {
        for (Value& v : slots) v = Value();
        path.clear();
        handles.clear();
        sizes.clear();
        bodies.clear();
        tables.clear();
        results.clear();
        error = Value();
        done = 0;
        effects = observed = failed = false;
    }
};

}  // namespace lunaria::trace
