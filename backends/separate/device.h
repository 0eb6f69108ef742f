// A device with memory of its own that needs no hardware: the CPU's kernels, run one after the other by a thread that
// alone can reach the memory (memory.h). It shows in every test run what touches a tensor without asking its device,
// and is the example for the next one.
#pragma once

#include <string>

#include "core/tensor/device.h"

namespace lunaria::separate {

Device& device();

// What another device of this kind is told of its work, in the order in which it is asked for, on the thread that asks.
class Watcher {
  public:
    virtual ~Watcher() = default;
    virtual void allocating(const void* block, size_t bytes) = 0;  // throws memory_error where there is no room for it
    virtual void released(const void* block, size_t bytes) noexcept = 0;
    virtual void launched(const KernelCall& call) = 0;
    virtual void copied(const Tensor& source, const Tensor& destination) = 0;
    // Copies that the program asks for between this memory and the host's.
    virtual void transferred(const void* block, size_t bytes, bool to_device) = 0;
    // On the device's thread: what a copy has written, at addresses that it can reach.
    virtual void written(const Tensor& source, const Tensor& destination) = 0;
};

// What another device of this kind does in ways of its own, on this one's thread and with addresses that it can reach.
struct Ways {
    std::string name = "Separate";
    std::span<const Kernel> (*kernels)(const Op&) = nullptr;  // instead of the CPU's
    graph::Backend* loops = nullptr;                          // instead of the CPU's
    Watcher* watcher = nullptr;
};
// Lives to the end of the process.
Device& make_device(const Ways& ways);

}  // namespace lunaria::separate
