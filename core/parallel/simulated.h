// Ranks as threads of one process, for tests and for teaching.
#pragma once

#include <functional>

#include "core/parallel/communicator.h"

namespace lunaria::parallel {

// Calls f once for each of `ranks` ranks, all at the same time, in threads of their own, whose world() is the
// communicator that f gets. Returns when all are done; throws what the rank that failed first threw.
void run_simulated(int ranks, const std::function<void(Communicator&)>& f);

}  // namespace lunaria::parallel
