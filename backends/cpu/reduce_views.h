// Reductions of operands that other kernels get as dense ones of at least 32 bits (core/run/operand_layouts.h).
#pragma once

#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

// To be added before the other kernels of reductions.
void add_view_reduce_kernels(KernelTable& table);
bool reduces_views(const Op& op);
bool reduces_halves(const Op& op);

}  // namespace lunaria::cpu
