// CPU kernels: convolutions.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_conv_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
