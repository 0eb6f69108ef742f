// A graph of operators as the program that plans are made for: its letters by the rules of the operators.
#pragma once

#include "core/ir/graph.h"
#include "core/parallel/strategies.h"

namespace lunaria::parallel {

struct ReadSettings {
    // Bytes of an element of a floating tensor that is computed with; 0: as its dtype says.
    int float_bytes = 0;
    // Parameters of the graph that are trained, by their names; the others are inputs, whose first axis is the batch.
    std::vector<std::string> trained;
};

// `graph`: a forward pass with known types. Operators that give no tensors are left out. Layers are found.
Program read_program(const ir::Graph& graph, const ReadSettings& settings);

}  // namespace lunaria::parallel
