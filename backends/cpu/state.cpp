// CPU kernels: assignment, printing, ordering.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_state_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
