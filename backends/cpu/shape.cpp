// CPU kernels: conversions. (The other operators of the family are views or host values.)
#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

void add_shape_kernels(KernelTable& table) {
    table.plain("cast", [](const KernelCall& call) {
        copy_elements(call.tensor(0), call.out[0]);
        return true;
    });
}

}  // namespace lunaria::cpu
