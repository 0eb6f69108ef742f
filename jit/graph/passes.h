// The passes over a straight-line graph of tensor operators, before it is cut into kernels. Each returns whether it
// changed the graph, and keeps the results of eager mode, bit by bit except for the order of float sums.
#pragma once

#include <functional>

#include <unordered_set>

#include "core/ir/builder.h"

namespace lunaria::graph {

// The results of a composite operator's call as the operators that it is made of, which the builder writes.
Value expansion_of(const ir::Node& node, ir::GraphBuilder& builder);
// Expands composite operators for which the current device has no kernel.
bool expand_composites(ir::Graph& graph);
// Removes nodes that neither the result nor an effect needs. Random operators stay, since they advance the generator;
// so do operators that may raise an error.
bool remove_dead_code(ir::Graph& graph);
// The same where `must_run` says which nodes stay although no result needs them.
bool remove_dead_code(ir::Graph& graph, const std::function<bool(const ir::Node&)>& must_run);
// Keeps the first of equal computations; not across effects that may change their operands.
bool share_common_subexpressions(ir::Graph& graph);
// Evaluates nodes that depend on constants alone, unless the result has more elements than `most`, or
// they are calls of `except`.
bool fold_constants(ir::Graph& graph, int64_t most, const Op* except = nullptr);
// The same for a program that lives in memory: larger constants are cheaper to recompute than to keep.
bool fold_constants(ir::Graph& graph);
// Peephole rules: neutral elements, double negation, powers, chains of casts.
bool simplify_algebra(ir::Graph& graph);
// Sums of narrow matrix products, as the gradients of weights that a loop used in every step, become one product.
bool join_products(ir::Graph& graph);
// Products of rows of one value with one matrix become a product of them all.
bool batch_products(ir::Graph& graph);
// A weight that many products read across its order is copied into that order once.
bool lay_out_weights(ir::Graph& graph);
// softmax(q k' scale) v becomes one operator, which never holds all the scores.
bool fuse_attention(ir::Graph& graph);
// Convolutions of inference that follow one another keep the channels of a pixel side by side.
bool keep_channels_last(ir::Graph& graph);
// Applies operators after a product of matrices or a convolution, a bias or relu, to each part of the result as soon as
// it is computed. To be run after the passes above, which look for the separate operators.
bool fuse_epilogues(ir::Graph& graph);
// Views of views become one view of the original; those that change nothing vanish.
bool simplify_views(ir::Graph& graph);
// Computes values again that are needed long after their first use, where that is cheap and saves memory; returns the
// repeated nodes. To be run after all other passes, which would undo it.
std::unordered_set<const ir::Node*> recompute_cheap_values(ir::Graph& graph);

// All passes in their order but the last, until nothing changes, and fuse_epilogues at the end. With
// LUNARIA_DUMP=passes in the environment each pass that changed something prints the graph to the standard error
// stream.
void run_passes(ir::Graph& graph);

}  // namespace lunaria::graph
