// Writes the program of a generated kernel (loop.h) for a piece of a graph.
#pragma once

#include <functional>
#include <optional>

#include "core/loops/loop.h"
#include "jit/graph/fusion.h"

namespace lunaria::graph {

// The memory of a kernel's operand: that of a root, at an offset.
struct LoopBinding {
    const ir::Node* root = nullptr;
    int64_t offset = 0;
    bool written = false;
    // Not empty: the kernel reads a dense copy of these elements of the root, made in the step before.
    Shape copied{};
    Strides copied_strides{};
};

struct Loop {
    LoopProgram program;
    std::vector<LoopBinding> operands;
    std::vector<int64_t> sizes;  // as LoopTask has them
    int64_t rows = 1, inner = 1;
};

// Whether a value of this shape has one element per row of the domain, whose first `rows` axes count rows.
bool is_per_row(const Shape& shape, const Shape& domain, int rows);

// Whether the operands of `node` within the piece are available where it is computed: the same element, or the value of
// the same row.
bool can_compute(const Piece& piece, const ir::Node& node, const Arrangements& arrangements);

// `is_needed` tells whether a value is read outside the piece. Nothing where an operand's layout has no run of elements
// along the rows.
std::optional<Loop> build_loop(const Piece& piece, const Arrangements& arrangements,
                               const std::function<bool(const ir::Node*)>& is_needed);

}  // namespace lunaria::graph
