// CPU kernels: pooling.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_pool_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
