// vmap of a straight line of operators: its graph for one sample becomes the graph for a whole batch, in which each
// operator is applied to all samples at once (core/batching/batching.h).
#pragma once

#include <memory>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::batch {

// `graph` consists of operators on tensors of known types and returns a list. mapped[i]: whether parameter i differs
// from sample to sample; then it gets the batch axis, of `size` samples, in front. Every result gets the batch axis
// too; a result that is the same for all samples is repeated. Null where an operator returns no tensor, is not in the
// registry, or is composite: such operators have to be expanded first.
std::unique_ptr<ir::Graph> transform(const ir::Graph& graph, const std::vector<bool>& mapped, int64_t size);

}  // namespace lunaria::batch
