// CPU kernels: loss functions.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_loss_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
