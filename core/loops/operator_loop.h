// An operator by itself as a loop: its kernel on a device that makes code for loops.
#pragma once

#include <optional>
#include <vector>

#include "core/loops/loop.h"
#include "core/tensor/device.h"

namespace lunaria::graph {

struct OperatorLoop {
    LoopProgram program;
    std::vector<int64_t> sizes;  // as LoopTask has them (core/loops/graph_backend.h)
    int64_t rows = 1, inner = 1;
    struct Operand {
        bool is_result = false;
        size_t argument = 0;  // the argument otherwise, whose elements are dense
        int64_t offset = 0;   // the first element that the loop reads
        // Not empty: the loop reads a dense copy of these elements of the argument.
        Shape copied{};
        Strides copied_strides{};
    };
    std::vector<Operand> operands;
};

// Nothing where there is no loop for operands of these types with these attributes.
std::optional<OperatorLoop> operator_loop(const KernelCall& call);

// Sets the function that writes such loops: the graph runtime knows which formulas an operator consists of.
void set_operator_loops(std::optional<OperatorLoop> (*write)(const KernelCall&));

}  // namespace lunaria::graph
