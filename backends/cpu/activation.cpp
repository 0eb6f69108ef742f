// CPU kernels: activation functions.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_activation_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
