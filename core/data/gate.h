// A gate that rows pass only after a consent, for sync_wait and sync_update.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

// Rows beyond `count` since the last consent are an error, since no consent can come while the program waits for the
// row. No row below or above the gate is drawn ahead of its turn.
NodePtr gate(NodePtr child, std::string name, int64_t count, uint64_t function);

// Lets `count` more rows pass at the gate of that name in the pipeline, or as many as the gate was made for. False
// where there is no such gate. `function`: the function that the gate was made with.
bool consent(const Node& node, std::string_view name, std::optional<int64_t> count, uint64_t& function);

}  // namespace lunaria::data
