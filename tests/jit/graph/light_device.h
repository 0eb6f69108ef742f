// The processor with the loops of the light runtime (core/lite/runtime/), for the tests of graph mode: its interpreter
// takes the place of generated code.
#pragma once

#include "core/tensor/device.h"

namespace lunaria::testing {

Device& light_device();
// The device whose loops the test program checks: the light one where the environment variable LUNARIA_TEST_LOOPS is
// "light".
Device& graph_device();

}  // namespace lunaria::testing
