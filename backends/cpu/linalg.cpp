// CPU kernels: matrix products and linear algebra.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_linalg_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
