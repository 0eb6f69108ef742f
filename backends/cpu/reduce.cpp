// CPU kernels: reductions and scans.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_reduce_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
