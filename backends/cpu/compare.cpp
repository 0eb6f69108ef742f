// CPU kernels: comparisons, logic, selection.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_compare_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
