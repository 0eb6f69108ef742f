// CPU kernels: softmax and its kin.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_softmax_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
