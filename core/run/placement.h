// Where a call of an operator runs: where its operands are. Only asked once there is another place than host memory.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

// Travellers are host tensors that go along to the place of the others: constants of rules, tensors of rank 0, and one
// element that is seen as many. Throws argument_error where the others are on different devices.
struct Placement {
    Placement(const Op& op, std::span<const Value> args);
    // The arguments, the travellers among them in their place.
    std::vector<Value> moved(std::span<const Value> args) const;
    // What was computed of constants of rules alone, on the host, is one itself.
    Value marked(Value result) const;

    Device* place = nullptr;
    std::vector<size_t> travellers;  // arguments that are, or have, such tensors
    bool is_constant = false;
};

// Whether the host tensor goes along; where it does to.
bool is_traveller(const Tensor& t);
Tensor moved_to(const Tensor& t, Device* place);

// Asks the device's kernels, from the one numbered `first` on. Without any the host's are run on copies, unless that is
// not allowed: throws state_error then. Gives the number of the kernel, or of all when they declined.
size_t launch_or_fall_back(Device& device, std::span<const Kernel> kernels, size_t first, KernelCall& call);

}  // namespace lunaria
