// Offers devices the loops of operators by themselves (core/loops/operator_loop.h).
#pragma once

namespace lunaria::graph {

void offer_operator_loops();

}  // namespace lunaria::graph
