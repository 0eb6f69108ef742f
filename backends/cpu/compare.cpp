// CPU kernels: comparisons, logic, selection.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

// All of them are elementwise: see add_elementwise_kernels.
void add_compare_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
