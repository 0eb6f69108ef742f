// Operators by themselves: those that are loops run as such.
#pragma once

#include <string>

#include "backends/gpu/queue.h"
#include "core/device.h"

namespace lunaria::gpu {

// False where the call is no loop that there is code for.
bool run_as_loop(Queue& queue, const std::string& target, const KernelCall& call);

}  // namespace lunaria::gpu
