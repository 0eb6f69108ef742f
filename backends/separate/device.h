// A device with memory of its own that needs no hardware: the CPU's kernels, run one after the other by a thread that
// alone can reach the memory (memory.h). It shows in every test run what touches a tensor without asking its device,
// and is the example for the next one.
#pragma once

#include "core/device.h"

namespace lunaria::separate {

Device& device();

}  // namespace lunaria::separate
