// Operations that neither look into rows nor make new ones.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

// Each row out of the next `buffer` ones, by chance. The order changes with the epoch.
NodePtr shuffle(NodePtr child, int64_t buffer, uint64_t seed);
// kEndless: for ever. Every turn has an order of its own.
NodePtr repeat(NodePtr child, int64_t count);
NodePtr skip(NodePtr child, int64_t count);
NodePtr take(NodePtr child, int64_t count);
// The columns at these positions, under these names.
NodePtr select(NodePtr child, std::vector<size_t> positions, Names names);
// Rows side by side, as long as all have one. Column names must differ.
NodePtr zip(std::vector<NodePtr> children);
// One after the other. Column names must be the same.
NodePtr concat(std::vector<NodePtr> children);
// The same part of the rows in every epoch: `count` rows from `begin` on, of an order that the seed decides, or of the
// child's own.
NodePtr part(NodePtr child, int64_t begin, int64_t count, bool shuffled, uint64_t seed);

}  // namespace lunaria::data
