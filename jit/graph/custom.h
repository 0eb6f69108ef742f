// Custom operators (core/custom/custom_op.h) run eagerly as compiled graphs of their own.
#pragma once

#include "core/tensor/device.h"

namespace lunaria::graph {

// A kernel for every custom operator: compiles what it is made of for the operands' types, the first time for each, and
// runs that. Without the code generator its steps are the kernels of what it is made of.
bool run_custom(const KernelCall& call);

}  // namespace lunaria::graph
