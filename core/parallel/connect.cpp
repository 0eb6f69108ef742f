#include "core/parallel/connect.h"

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/parallel/mpi.h"
#include "core/parallel/partner.h"
#include "core/parallel/phantom.h"
#include "core/parallel/shared.h"
#include "core/parallel/tcp.h"

namespace lunaria::parallel {

std::unique_ptr<Communicator> connect(const Environment& environment) {
    constexpr double kForEver = 1e9;  // seconds
    const auto rank = static_cast<int>(environment.rank), ranks = static_cast<int>(environment.ranks);
    if (environment.phantom) return std::make_unique<PhantomCommunicator>(rank, ranks);
    if (ranks == 1 || environment.scheduler) return nullptr;
    const bool by_mpi = environment.launcher == Launcher::openmpi || environment.launcher == Launcher::mpich;
    const char* wish = std::getenv("LUNARIA_ENGINE");
    const std::string_view engine = wish && *wish ? wish : by_mpi ? "mpi" : environment.one_host ? "shared" : "tcp";
    if (engine == "mpi") return make_mpi();
    if (engine == "tcp") return make_tcp(environment, patience() > 0 ? patience() : kForEver);
    if (engine != "shared")
        throw value_error("communication",
                          str("LUNARIA_ENGINE is \"", engine, "\"; there are \"shared\", \"tcp\" and \"mpi\""));
    if (!environment.one_host)
        throw state_error("communication", "ranks of several hosts cannot be connected by shared memory")
            .hint("leave out LUNARIA_ENGINE, or start all of them on one host");
    return std::make_unique<SharedCommunicator>(std::make_shared<Arena>(environment.job, rank, ranks), rank);
}

}  // namespace lunaria::parallel
