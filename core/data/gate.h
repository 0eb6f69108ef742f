// A place that rows pass only after a consent: what sync_wait and sync_update are.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

// Rows beyond `count` since the last consent are an error, as nothing else could give it while the row is waited for.
// No row below or above is drawn ahead of its turn.
NodePtr gate(NodePtr child, std::string name, int64_t count, uint64_t function);

// Lets `count` more rows pass at the gate of that name in the pipeline, or as many as the gate was made for. False
// where there is no such gate; `function`: the one that the gate was made with.
bool consent(const Node& node, std::string_view name, std::optional<int64_t> count, uint64_t& function);

}  // namespace lunaria::data
