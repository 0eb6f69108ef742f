// A processor of NVIDIA, used through its driver alone (driver.h).
#pragma once

#include "core/tensor/device.h"

namespace lunaria::gpu {

Device& device();

}  // namespace lunaria::gpu
