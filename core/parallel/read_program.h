// A graph of operators as the program that plans are made for: its letters by the rules of the operators.
#pragma once

#include <map>

#include "core/ir/graph.h"
#include "core/parallel/strategies.h"

namespace lunaria::parallel {

struct ReadSettings {
    // Bytes of an element of a floating tensor that is computed with; 0: as its dtype says.
    int float_bytes = 0;
    // Parameters of the graph that are trained, by their names; the others are inputs, whose first axis is the batch.
    std::vector<std::string> trained;
};

// The program with the nodes of the graph, which must outlive it.
struct GraphProgram {
    Program program;
    std::vector<const ir::Node*> nodes;                   // of each operator
    std::map<const ir::Node*, std::vector<int>> tensors;  // those that a node stands for
};

// `graph`: a forward pass with known types. Operators that give no tensors are left out. Layers are found.
GraphProgram read_program(const ir::Graph& graph, const ReadSettings& settings);

}  // namespace lunaria::parallel
