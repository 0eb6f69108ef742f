// Operators that ask other ranks: by NCCL where there is one and each rank has a processor of its own, else the host
// does it with copies.
#include "backends/gpu/launcher.h"
#include "backends/gpu/nccl.h"
#include "backends/gpu/operators.h"
#include "core/operator/ranks.h"

namespace lunaria::gpu {

namespace {

bool ask(Launcher& launcher, const KernelCall& call) { return ranks().run_on(nccl_links(launcher.queue()), call); }

}  // namespace

void add_communication_kernels(KernelTable& table) {
    for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "all_to_all_v", "broadcast_from",
                           "reduce_to", "gather_to", "scatter_from", "send", "recv", "barrier"})
        table.add_request(op, ask);
}

}  // namespace lunaria::gpu
