// Generated loops of compiled graphs on the processor, split among threads.
#pragma once

#include "core/loops/graph_backend.h"

namespace lunaria::cpu {

graph::Backend& graph_backend();

}  // namespace lunaria::cpu
