// The passes over the graph of a light model, before it is planned. They need not keep results bit by bit: weights are
// constants here, so that what follows a product or a convolution by them becomes part of it.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace lunaria::lite {

struct PassOptions {
    // The type of weights: f32, f16, bf16, or q8_0 or q4_0, blocks of integers for products whose rows have whole
    // blocks.
    std::string weights = "f32";
};

// Kernels that compute in f32 get operands of that dtype instead of halves.
bool widen_halves(ir::Graph& graph);
bool merge_scales(ir::Graph& graph);
bool use_integer_kernels(ir::Graph& graph);
bool join_layers(ir::Graph& graph);
bool use_light_kernels(ir::Graph& graph, const PassOptions& options);
bool fuse_endings(ir::Graph& graph);

void run_passes(ir::Graph& graph, const PassOptions& options);

}  // namespace lunaria::lite
