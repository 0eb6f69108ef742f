// Operations that neither look at values nor make new ones.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

// Draws each row at random out of the next `buffer` rows. The order changes with the epoch.
NodePtr shuffle(NodePtr child, int64_t buffer, uint64_t seed);
// kEndless: for ever. Every turn has its own order.
NodePtr repeat(NodePtr child, int64_t count);
NodePtr skip(NodePtr child, int64_t count);
NodePtr take(NodePtr child, int64_t count);
// Only the columns at these positions, under these names.
NodePtr select(NodePtr child, std::vector<size_t> positions, Names names);
// Rows side by side, until one child ends. Column names must differ.
NodePtr zip(std::vector<NodePtr> children);
// The rows of one child after those of another. Column names must be the same.
NodePtr concat(std::vector<NodePtr> children);
// The same part of the rows in every epoch: `count` rows from `begin` on, in an order that the seed decides, or in the
// child's own.
NodePtr part(NodePtr child, int64_t begin, int64_t count, bool shuffled, uint64_t seed);

}  // namespace lunaria::data
