// CPU kernels: gather, scatter, masks.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_index_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
