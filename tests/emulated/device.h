// The test device (backends/separate) with the kernels of processors that run threads in blocks: those that the code
// generator writes for them, compiled for this processor, every thread a fiber (tests/jit/graph/fibers.h). Operators
// that no code is generated for have no kernel and are left to the host.
#pragma once

#include "core/tensor/device.h"

namespace lunaria::emulated {

Device& device();

}  // namespace lunaria::emulated
