#include "core/parallel/connect.h"

#include <cstdlib>
#include <string_view>

#include "core/base/error.h"
#include "core/parallel/phantom.h"
#include "core/parallel/shared.h"

namespace lunaria::parallel {

std::unique_ptr<Communicator> connect(const Environment& environment) {
    const auto rank = static_cast<int>(environment.rank), ranks = static_cast<int>(environment.ranks);
    if (environment.phantom) return std::make_unique<PhantomCommunicator>(rank, ranks);
    if (ranks == 1 || environment.scheduler) return nullptr;
    const char* wish = std::getenv("LUNARIA_ENGINE");
    const std::string_view engine = wish && *wish ? wish : "shared";
    if (engine != "shared")
        throw value_error("communication", str("LUNARIA_ENGINE is \"", engine, "\"; there is only \"shared\""));
    if (!environment.one_host)
        throw state_error("communication", "ranks of several hosts cannot be connected by shared memory")
            .hint("start all of them on one host");
    return std::make_unique<SharedCommunicator>(std::make_shared<Arena>(environment.job, rank, ranks), rank);
}

}  // namespace lunaria::parallel
