// The interface of back ends: memory, copies and kernels for primitive operators.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/tensor/value.h"

namespace lunaria {

class Op;

// The arguments of a kernel. Tensor parameters arrive as tensors of the dtype `dtype` where the signature says so (see
// ArgType), dense unless the operator accepts strides; elementwise operators may also get plain numbers. Outputs are
// allocated dense by the caller, except where inference left a size unknown: then the kernel assigns them.
struct KernelCall {
    const Op& op;
    std::span<const Value> args;
    std::span<Tensor> out;
    DType dtype = DType::f32;  // of the promoted operands
    uint64_t seed = 0;         // random operators: key and first counter of the Philox stream that belongs to this call
    uint64_t counter = 0;

    const Tensor& tensor(size_t i) const { return args[i].tensor(); }
    bool has(size_t i) const { return !args[i].is_nil(); }
};

// False: this kernel does not handle the case (layout, dtype, size) and the next one is tried; the last one must not
// decline.
using Kernel = bool (*)(const KernelCall&);

// Memory of a device's tensors, in bytes.
struct DeviceMemory {
    int64_t live = 0, peak = 0, cached = 0, allocations = 0;
};

namespace graph {
class Backend;
}

class Device {
  public:
    virtual ~Device() = default;
    virtual std::string_view name() const = 0;
    // Whether its tensors lie in host memory (core/memory/memory.h); their storage then names no device.
    virtual bool is_host() const { return false; }

    // A device does its work in the order in which it is asked for; only functions that return data to the host wait
    // for it. A block may be released while work on it is queued.
    virtual void* allocate(size_t bytes) = 0;  // throws memory_error
    virtual void release(void* block, size_t bytes) noexcept = 0;
    virtual void copy_from_host(void* device, const void* host, size_t bytes) = 0;
    virtual void copy_to_host(void* host, const void* device, size_t bytes) = 0;  // waits
    // lunaria::copy_elements for two tensors of this device.
    virtual void copy_elements(const Tensor& source, const Tensor& destination) = 0;
    // Kernels of the operator in the order in which they are to be tried; empty when there is none.
    virtual std::span<const Kernel> kernels(const Op& op) const = 0;
    // Whether its kernels of an operator compute in float16 and bfloat16 themselves, where those of other devices do
    // not.
    virtual bool takes_halves(const Op&) const { return false; }
    // Tries the kernels from `first` on; returns the one that took the call, or their number when all declined. A
    // device may run the kernels later and accept the call at once, where the operator does not refuse values. An error
    // of late work is thrown by the next call that waits.
    virtual size_t launch(std::span<const Kernel> kernels, size_t first, KernelCall& call) {
        while (first < kernels.size() && !kernels[first](call)) ++first;
        return first;
    }
    virtual graph::Backend* graphs() { return nullptr; }  // null: it runs only single operators
    // Runs the operator with all that belongs to it (conversions, views, expansion), and gives the result. A device
    // does so whose tensors are no blocks of memory, such as pieces on several ranks; others leave it to the executor:
    // false.
    virtual bool run(const Op&, std::span<const Value> given, Value& result) {
        static_cast<void>(given), static_cast<void>(result);
        return false;
    }

    // Waits for all work that was asked for.
    virtual void synchronize() {}
    // A mark in the order of work, after all work asked for until now. done_at tells when that work was done (in
    // seconds of a clock of its own); negative: not yet known.
    virtual uint64_t record() { return 0; }
    virtual double done_at(uint64_t) { return 0; }
    virtual void wait(uint64_t) {}

    virtual DeviceMemory memory() const = 0;
    virtual void reset_peak_memory() = 0;
    virtual void empty_cache() = 0;
};

// The devices that tensors may be on, by their names; the first one is the host's. Set once by the program.
void set_devices(std::span<Device* const> devices);
std::span<Device* const> devices();
Device* find_device(std::string_view name);  // whether usable or not; null when there is none

namespace detail {
inline constinit thread_local Device* current_place = nullptr;
inline constinit std::atomic<bool> has_places{false};
}  // namespace detail

// The device for host memory.
Device* host_device();  // throws state_error when none has been set
// The place of this thread's results when no operand decides it: null is the host, as in Storage.
inline Device* current_place() { return detail::current_place; }
// The same as a device.
inline Device* current_device() { return detail::current_place ? detail::current_place : host_device(); }
// Sets the place for this thread; a device for host memory is set for all threads from then on.
void set_current_device(Device* device);
// Whether there may be tensors or operators outside of host memory.
inline bool has_places() { return detail::has_places.load(std::memory_order_relaxed); }

// Sets another place for this thread while it lives.
class PlaceScope {
  public:
    explicit PlaceScope(Device* place) : before_(detail::current_place) { detail::current_place = place; }
    ~PlaceScope() { detail::current_place = before_; }
    PlaceScope(const PlaceScope&) = delete;
    PlaceScope& operator=(const PlaceScope&) = delete;

  private:
    Device* before_;
};

// Operators without a kernel on their device that ran on the host, with copies of all their operands and results.
struct Fallback {
    const Op* op = nullptr;
    Device* device = nullptr;
    int64_t calls = 0, bytes = 0;
};
std::vector<Fallback> fallbacks();
void add_fallback(const Op& op, Device& device, int64_t bytes);
void forget_fallbacks();
// Whether such fallbacks are allowed (the default) or an error.
bool allows_fallback();
void allow_fallback(bool allowed);

}  // namespace lunaria
