// CPU kernels: random numbers.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_random_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
