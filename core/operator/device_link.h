// Libraries by which ranks exchange the memory of a device without the host, as NCCL does for NVIDIA's processors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/operator/collective.h"
#include "core/tensor/dtype.h"

namespace lunaria::parallel {

// One call of such a library; several of them go together. `count` is that of the library: elements of the whole for
// all_reduce, reduce, broadcast, send and recv; of a rank's piece for all_gather and reduce_scatter.
struct LinkStep {
    Collective operation = Collective::barrier;
    DType dtype = DType::f32;
    Combine combine = Combine::sum;
    int other = 0;  // a place in the group: the root, or the other side of send and recv
    int64_t count = 0;
    const void* in = nullptr;
    void* out = nullptr;
};

// This rank in one group.
class DeviceLink {
  public:
    virtual ~DeviceLink() = default;
    // Behind all work that the device was given before; does not wait for it. `what`: the operator's name. Throws what
    // the library refuses.
    virtual void submit(std::span<const LinkStep> steps, std::string_view what) = 0;
    // For a thread that looks after the ranks while the program may wait for the device. What the library has found
    // wrong since; empty: nothing.
    virtual std::string failure() = 0;
    // Ends what is under way, for good. The next call that waits for the device throws the text.
    virtual void abort(const std::string& why) = 0;
};

class DeviceLinks {
  public:
    virtual ~DeviceLinks() = default;
    // Why the library cannot be used; empty: it can.
    virtual std::string missing() = 0;
    // The processor, by a name that no other of this host has: two ranks cannot share one.
    virtual std::string processor() = 0;
    virtual bool takes(DType dtype) const = 0;
    // What the members of a new group have to know of each other; one of them makes it.
    static constexpr size_t kIdSize = 128;
    virtual std::string make_id() = 0;
    // All members of the group join it. `meanwhile` is called while others have not come yet, and may throw.
    virtual std::unique_ptr<DeviceLink> join(const std::string& id, int rank, int size,
                                             const std::function<void()>& meanwhile) = 0;
};

}  // namespace lunaria::parallel
