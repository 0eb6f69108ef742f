// Batches: rows put on top of each other.
#pragma once

#include "core/data/node.h"

namespace lunaria::data {

struct BatchOptions {
    int64_t size = 1;
    bool drop_remainder = false;
    std::optional<int> workers;  // threads; without it as many as the epoch says
};

// Tensors of one column must have one shape and dtype, and become a tensor with an axis more; texts become a list.
NodePtr batch(NodePtr child, BatchOptions options);
// The values of a column as a list, not joined: what a function of whole batches gets.
NodePtr gather(NodePtr child, BatchOptions options);

// One batch of rows, in the name of `where`. `number` is that of its first row, for messages.
Row join(std::string_view where, const Names& columns, std::span<Row> rows, int64_t number);

}  // namespace lunaria::data
