// CPU kernels: activation functions.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

// All of them are elementwise: see add_elementwise_kernels.
void add_activation_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
