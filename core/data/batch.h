// Batches: rows put on top of each other.
#pragma once

#include <optional>
#include <vector>

#include "core/data/node.h"

namespace lunaria::data {

// What rows of different shapes are filled up with.
struct Padding {
    std::vector<int64_t> shape;  // -1: the largest in the batch; none: so for every axis
    Value value;                 // without one 0, or the empty text
};
using Paddings = std::vector<std::optional<Padding>>;  // one for each column, or none at all

struct BatchOptions {
    int64_t size = 1;
    bool drop_remainder = false;
    std::optional<int> workers;  // threads; without it as many as the epoch says
    Paddings pads{};
};

struct BucketOptions {
    size_t length = 0;  // the column whose first axis, or whose value, says how long a row is
    bool by_value = false;
    std::vector<int64_t> boundaries;  // ascending: rows shorter than the first are in the first bucket
    std::vector<int64_t> sizes;       // of batches, one more than boundaries
    bool drop_remainder = false;
    bool to_boundary = false;  // rows are filled up to the boundary of their bucket less one
    Paddings pads{};
};

// Tensors of one column must have one shape and dtype, and become a tensor with an axis more; texts become a list.
NodePtr batch(NodePtr child, BatchOptions options);
// The values of a column as a list, not joined: what a function of whole batches gets.
NodePtr gather(NodePtr child, BatchOptions options);

// Batches of rows whose lengths are in the same range. What is left at the end comes by bucket.
NodePtr bucket(NodePtr child, BucketOptions options);

// One batch of rows, in the name of `where`. `number` is that of its first row, for messages.
Row join(std::string_view where, const Names& columns, std::span<Row> rows, int64_t number, const Paddings& pads = {});

}  // namespace lunaria::data
