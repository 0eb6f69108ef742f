// Custom operators (core/custom/custom_op.h) run eagerly as compiled graphs of their own.
#pragma once

#include "core/tensor/device.h"

namespace lunaria::graph {

// A kernel for all custom operators: compiles the operator's formula for the operands' types, once for each
// combination, and runs it. Without the code generator its steps are the kernels of the formula's operators.
bool run_custom(const KernelCall& call);

}  // namespace lunaria::graph
