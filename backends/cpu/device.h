// The CPU as a device: host memory, kernels from the table.
#pragma once

#include "core/tensor/device.h"

namespace lunaria::cpu {

// The device that uses the fast kernels.
Device& device();
// The same device restricted to plain kernels: the reference that tests compare with.
Device& plain_device();

}  // namespace lunaria::cpu
