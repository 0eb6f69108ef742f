// Graphs on laid-out tensors as compiled graphs of their pieces.
#pragma once

#include <memory>

#include "jit/graph/divided.h"

namespace lunaria::parallel {

// What graph::set_make_divided takes.
std::unique_ptr<graph::Divided> make_divided();

}  // namespace lunaria::parallel
