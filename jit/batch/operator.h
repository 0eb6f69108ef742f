// One operator applied to a whole batch (core/batching/batching.h) as a graph, which can be differentiated.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "core/ir/graph.h"

namespace lunaria::batch {

// The graph of a call for a batch of so many samples. `args` are those of one sample; `is_batched` tells whether a
// tensor among them differs from sample to sample. Parameters: the arguments in a tensor's place in order, lists item
// by item, tensors that differ with the batch as first axis; plain numbers as they are. Its result is the list of the
// results, each with the batch axis. Null: there is no rule for the call, and the operator is made of others.
std::shared_ptr<const ir::Graph> operator_graph(const Op& op, std::span<const Value> args,
                                                const std::function<bool(const Value&)>& is_batched, int64_t size);

// Whether argument i is a constant inside that graph, and inside an expansion, rather than a parameter.
bool is_fixed(const Op& op, std::span<const Value> args, size_t i);

}  // namespace lunaria::batch
