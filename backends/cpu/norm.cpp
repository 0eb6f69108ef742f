// CPU kernels: normalisation.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_norm_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
