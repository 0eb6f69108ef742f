// CPU kernels: concatenation, splitting, tiling, padding.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_array_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
