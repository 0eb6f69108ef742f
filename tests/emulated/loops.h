// Loops of compiled graphs as kernels of threads in blocks, run on fibers.
#pragma once

#include "core/loops/graph_backend.h"

namespace lunaria::emulated {

graph::Backend& loops();

}  // namespace lunaria::emulated
