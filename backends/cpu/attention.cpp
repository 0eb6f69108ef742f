// CPU kernels: attention, embedding, dropout.
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_attention_kernels(KernelTable&) {}

}  // namespace lunaria::cpu
