// The device's memory: segments of the driver, cut into blocks. What is released serves the next allocation at once:
// all work is done in the order in which it is asked for, so that what uses a block then is behind what uses it now.
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

    // 0: the driver has no memory left, nor is there any that is cached. `position`: how much work has been given.
    Address allocate(size_t bytes, uint64_t position = 0);
    // The same, after everything that is cached has been given back; nothing may be queued.
    Address allocate_by_all_means(size_t bytes, uint64_t position = 0);
    // A block that lies in lost memory is forgotten.
    void release(Address block, uint64_t position = 0) noexcept;
    // Of the block that has this address in it: when it was allocated, and from when on nothing used it before that.
    struct Age {
        uint64_t allocated = 0, free_since = 0;
    };
    Age age_of(Address address) const;
    // Gives segments that nobody uses back to the driver; nothing may be queued.
    void empty_cache() noexcept;

    // The context is lost: its memory is nobody's from now on, though tensors may still lie there.
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
    // `any`: a block however much larger.
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
    // Blocks of lost contexts in which tensors lie. The driver may give out the same addresses again: such memory is
    // not used before the last of these tensors is released.
    Blocks lost_;
    DeviceMemory stats_;
};

}  // namespace lunaria::gpu
