// Batches: rows stacked on top of each other.
#pragma once

#include <optional>
#include <vector>

#include "core/data/node.h"

namespace lunaria::data {

// The padding of rows with different shapes.
struct Padding {
    std::vector<int64_t> shape;  // size of each axis, -1: the largest in the batch; none: the largest for every axis
    Value value;                 // without a value 0, or the empty text
};
using Paddings = std::vector<std::optional<Padding>>;  // one for each column, or none at all

struct BatchOptions {
    int64_t size = 1;
    bool drop_remainder = false;
    std::optional<int> workers;  // threads; without a value as many as the epoch says
    Paddings pads{};
};

struct BucketOptions {
    size_t length = 0;  // the column whose first axis, or whose value, is the length of a row
    bool by_value = false;
    std::vector<int64_t> boundaries;  // ascending: rows shorter than the first are in the first bucket
    std::vector<int64_t> sizes;       // sizes of batches, one more than boundaries
    bool drop_remainder = false;
    bool to_boundary = false;  // rows are padded to the boundary of their bucket less one
    Paddings pads{};
};

// Joins the values of one column, which must have one shape and dtype, into a tensor with one axis more; texts become a
// list.
NodePtr batch(NodePtr child, BatchOptions options);
// The values of a column as a list, not joined, for a function of whole batches.
NodePtr gather(NodePtr child, BatchOptions options);

// Batches of rows whose lengths are in the same range. The remaining rows come at the end, bucket by bucket.
NodePtr bucket(NodePtr child, BucketOptions options);

// One batch of rows. `where` names the operation in messages, `number` is the number of the first row.
Row join(std::string_view where, const Names& columns, std::span<Row> rows, int64_t number, const Paddings& pads = {});

}  // namespace lunaria::data
