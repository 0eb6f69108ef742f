// CPU kernels: elementwise arithmetic, exponentials, trigonometry, rounding.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_math_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
