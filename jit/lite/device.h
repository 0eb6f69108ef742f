// The light runtime as a device of the graph runtime, for planning only: which operators it has kernels for, and that
// it runs loops. Nothing is computed on it but constants, by the host's kernels.
#pragma once

#include "core/tensor/device.h"

namespace lunaria::lite {

Device& light_device();

}  // namespace lunaria::lite
