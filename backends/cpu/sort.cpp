// CPU kernels: sorting, top-k, search.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_sort_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
