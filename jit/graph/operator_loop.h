// The loops of single operators, for devices (core/loops/operator_loop.h).
#pragma once

namespace lunaria::graph {

void offer_operator_loops();

}  // namespace lunaria::graph
