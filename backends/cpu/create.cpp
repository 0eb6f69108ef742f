// CPU kernels: constructors.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_create_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
