// CPU kernels: reshaping, transposing, broadcasting, views.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_shape_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
