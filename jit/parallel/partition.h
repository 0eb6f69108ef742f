// A graph in pieces: the pass of graph mode that divides the operators of a graph among the ranks of meshes.
//
// Operators run in the order of the graph. For each of them the layouts of its operands are known; its rule and the
// division that moves the least (core/parallel/division.h) say what every rank computes, and where a value has to be in
// another layout a node of communication brings it there. These are the decisions of calls that run one by one
// (core/parallel/dispatch.h), made once for all runs, so that values, layouts and movements are theirs.
//
// The result is one graph of ordinary operators, which holds the pieces of all positions that this process holds: of
// one where ranks are processes, of all where they are simulated. Positions that hold the same piece share its nodes.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"
#include "core/parallel/laid.h"
#include "core/parallel/rule.h"
#include "jit/parallel/move_op.h"

namespace lunaria::parallel {

// The place of a value of the graph before: its layout, and for each piece that this process holds its number among the
// parameters or results of the graph in pieces.
struct Placed {
    const Distribution* layout = nullptr;  // null: whole, with one piece
    bool is_host = true;                   // of whole ones: an ordinary tensor, none of the mesh device
    DType dtype = DType::f32;
    Shape shape;
    std::vector<size_t> pieces;
};

struct Partition {
    std::unique_ptr<ir::Graph> graph;
    std::vector<Placed> inputs, outputs;
    // Inputs that are incomplete sums, which an operator completed: they stay so (as dispatch does it).
    struct Completed {
        size_t input = 0;
        Placed value;
    };
    std::vector<Completed> completed;
    bool moves = false;  // it has communication
    // The types of the nodes of the graph before, with layouts, Float32[8@dp, 4@tp], by the ids of the nodes.
    std::unordered_map<int, std::string> types;
    // What nodes of the graph refer to.
    std::vector<std::unique_ptr<const Rule>> rules;
    std::vector<std::unique_ptr<MoveOp>> operators;
};

// The graph, which is changed, for inputs that lie like these; their pieces are not read. Throws Error where it holds
// something that only single calls can do.
Partition partition(ir::Graph& graph, std::span<const Placed> inputs);

}  // namespace lunaria::parallel
