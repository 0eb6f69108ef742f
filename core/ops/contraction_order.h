// The order in which the operands of a sum of products (einsum) are multiplied, two at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lunaria {

// Labels of axes, one bit each.
using LabelSet = uint64_t;
using LabelSizes = std::array<double, 64>;

// The number of multiplications for two terms with these labels together.
double contraction_cost(LabelSet labels, const LabelSizes& sizes);

struct ContractionOrder {
    // Terms are numbered: the operands first, then the product of each step.
    std::vector<std::pair<size_t, size_t>> steps;
    double cost = 0;  // multiplications in all
};

// The order with the fewest multiplications for up to eight operands; for more, repeatedly the pair whose product saves
// the most memory. A label is summed over as soon as neither another term nor the result has it.
ContractionOrder contraction_order(std::span<const LabelSet> operands, LabelSet result, const LabelSizes& sizes);

}  // namespace lunaria
