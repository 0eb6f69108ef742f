// A device with memory of its own that needs no hardware: the CPU's kernels, run one after the other by a thread that
// alone can access the memory (memory.h). Code that touches a tensor without asking its device fails in every test run;
// the folder is also an example for new devices.
#pragma once

#include <string>

#include "core/tensor/device.h"

namespace lunaria::separate {

Device& device();

// The events of its work that a device of this kind reports to another one built on it, in the order of requests, on
// the requesting thread.
class Watcher {
  public:
    virtual ~Watcher() = default;
    virtual void allocating(const void* block, size_t bytes) = 0;  // throws memory_error where there is no room for it
    virtual void released(const void* block, size_t bytes) noexcept = 0;
    virtual void launched(const KernelCall& call) = 0;
    virtual void copied(const Tensor& source, const Tensor& destination) = 0;
    // Copies that the program asks for between this memory and the host's.
    virtual void transferred(const void* block, size_t bytes, bool to_device) = 0;
    // On the device's thread: a copy was written, at addresses that it can access.
    virtual void written(const Tensor& source, const Tensor& destination) = 0;
};

// The differences of another device of this kind; its functions run on this one's thread with addresses that it can
// access.
struct Ways {
    std::string name = "Separate";
    std::span<const Kernel> (*kernels)(const Op&) = nullptr;  // instead of the CPU's
    graph::Backend* loops = nullptr;                          // instead of the CPU's
    Watcher* watcher = nullptr;
};
// Lives to the end of the process.
Device& make_device(const Ways& ways);

}  // namespace lunaria::separate
