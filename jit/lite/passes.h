// The passes over the graph of a light model, before it is planned. They need not keep results bit by bit: weights are
// constants here, so that what follows a product or a convolution by them becomes part of it.
#pragma once

#include "core/ir/graph.h"

namespace lunaria::lite {

void run_passes(ir::Graph& graph);

}  // namespace lunaria::lite
