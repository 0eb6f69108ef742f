// The device's memory: segments of the driver, cut into blocks. A released block serves the next allocation at once:
// all work runs in the order in which it is submitted, so that later users of a block come after the present ones.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "backends/gpu/driver.h"
#include "core/tensor/device.h"

namespace lunaria::gpu {

class Memory {
  public:
    explicit Memory(const Driver& driver) : driver_(driver) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // 0: neither the driver nor the cache has enough memory. `position`: the number of pieces of work submitted so far.
    Address allocate(size_t bytes, uint64_t position = 0);
    // The same, after everything cached has been given back; no work may be queued.
    Address allocate_by_all_means(size_t bytes, uint64_t position = 0);
    // A block in lost memory is only forgotten.
    void release(Address block, uint64_t position = 0) noexcept;
    // For the block that contains this address: when it was allocated, and since when nothing had used it before that.
    struct Age {
        uint64_t allocated = 0, free_since = 0;
    };
    Age age_of(Address address) const;
    // Gives unused segments back to the driver; no work may be queued.
    void empty_cache() noexcept;

    // The context is lost: its memory must not be used any more, though tensors may still be in it.
    void lose();
    bool is_lost(Address address) const;

    DeviceMemory stats() const { return stats_; }
    void reset_peak() { stats_.peak = stats_.live; }

  private:
    struct Block {
        size_t bytes = 0;
        Address segment = 0;
        bool is_free = false;
        Age age{};
    };
    using Blocks = std::map<Address, Block>;
    using FreeList = std::set<std::pair<size_t, Address>>;

    FreeList& list_of(const Block& block);
    // `any`: a block of any larger size.
    Blocks::iterator find_free(size_t bytes, bool any = false);
    Blocks::iterator add_segment(size_t bytes);
    void take(Blocks::iterator at, size_t bytes);
    Address take_for(Blocks::iterator at, size_t bytes, uint64_t position);
    void join(Blocks::iterator at);
    bool overlaps_lost(Address start, size_t bytes) const;

    const Driver& driver_;
    Blocks blocks_;                       // all, by address
    std::map<Address, size_t> segments_;  // their sizes
    FreeList small_, large_;              // by size: blocks of segments for small ones, and of others
    // Blocks of lost contexts that still hold tensors. The driver may give out the same addresses again: such memory is
    // not used before the last of these tensors is released.
    Blocks lost_;
    DeviceMemory stats_;
};

}  // namespace lunaria::gpu
