// Tensor memory on the host: 64-byte aligned blocks, cached by size class, with accounting.
// Small blocks come back from a per-thread cache without a lock; large ones from a shared list. Cached blocks count as
// neither live nor leaked and are given back to the system when the cache passes its limit or an allocation fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lunaria {

inline constexpr size_t kAlignment = 64;

struct MemoryStats {
    int64_t live_bytes = 0;    // in tensors now
    int64_t peak_bytes = 0;    // highest live_bytes since reset_peak_memory
    int64_t cached_bytes = 0;  // free, kept for reuse
    int64_t allocations = 0;   // since the start of the program; some are missed when several threads allocate at once
};

// A 64-byte aligned block of at least `bytes`; contents undefined. Before it throws memory_error it runs the pressure
// handlers and empties the cache. It never asks the system for more than is available, since the system would kill the
// process instead.
void* allocate(size_t bytes);
// `bytes` as given to allocate.
void release(void* block, size_t bytes) noexcept;
// For memory that will be written once and then read from end to end many times: asks the system for large pages, which
// are slow to get and fast to read. The contents are lost, unless `keeps_content`: pages that are there then stay
// small.
void use_huge_pages(void* block, size_t bytes, bool keeps_content = false) noexcept;

MemoryStats memory_stats();
void reset_peak_memory();
// Gives all cached blocks back to the system.
void empty_memory_cache();
// Gives back the cached blocks that only wait for a loop to take them again; called where a program rests.
void trim_memory_cache();

// Called before an allocation fails (the Lua collector frees unreachable tensors there); true when something was freed.
void set_memory_pressure_handler(std::function<bool()> handler);
bool relieve_memory_pressure();  // calls it

// Bytes allocated by this thread since it started: the Lua session paces its collector by the difference.
uint64_t thread_allocated_bytes();
// Adds memory that was allocated elsewhere, on a device, to that count.
void count_allocation(size_t bytes);

}  // namespace lunaria
