// The place where a call of an operator runs: that of its operands. Only asked once there is another place than host
// memory.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

// The interface of devices that run operators with all that belongs to them (Device::run), and not kernels. They take
// tensors in host memory beside their own, and graphs run on them operator by operator.
class WholeOperators {
  public:
    virtual ~WholeOperators() = default;
};
bool runs_whole_operators(Device* device);

// Travellers are host tensors that are moved to the place of the other operands: constants of rules, tensors of rank 0,
// and single elements that are broadcast. Throws argument_error where the other operands are on different devices.
struct Placement {
    Placement(const Op& op, std::span<const Value> args);
    // The arguments, with the travellers moved to the place.
    std::vector<Value> moved(std::span<const Value> args) const;
    // A result that was computed on the host from constants of rules alone is marked as such a constant itself.
    Value marked(Value result) const;

    Device* place = nullptr;
    std::vector<size_t> travellers;  // arguments that are, or contain, such tensors
    bool is_constant = false;
};

// Whether the host tensor may travel; the tensor at that place.
bool is_traveller(const Tensor& t);
Tensor moved_to(const Tensor& t, Device* place);

// Asks the device's kernels, beginning with number `first`. If the device has none for the operator, the host's kernels
// run on copies; throws state_error where that is not allowed. Returns the number of the kernel that ran, or the number
// of all kernels when they declined.
size_t launch_or_fall_back(Device& device, std::span<const Kernel> kernels, size_t first, KernelCall& call);

}  // namespace lunaria
