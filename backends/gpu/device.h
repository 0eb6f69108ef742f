// One of NVIDIA's processors, by its driver alone (driver.h).
#pragma once

#include "core/tensor/device.h"

namespace lunaria::gpu {

Device& device();

}  // namespace lunaria::gpu
