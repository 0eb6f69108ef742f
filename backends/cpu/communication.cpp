// CPU kernels: requests to other ranks, which the communicator of the program carries out.
#include "core/operator/ranks.h"

#include "backends/cpu/kernel_table.h"

namespace lunaria::cpu {

namespace {

bool ask(const KernelCall& call) {
    ranks().run(call);
    return true;
}

}  // namespace

void add_communication_kernels(KernelTable& table) {
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_v", "broadcast_from",
                           "reduce_to", "gather_to", "scatter_from", "send", "recv", "barrier", "give_gradient"})
        table.plain(op, ask);
}

}  // namespace lunaria::cpu
