// The passes over a straight-line graph of tensor operators, before it is cut into kernels. Each answers whether it
// changed the graph, and keeps what eager mode would give, bit by bit for everything but the order of float sums.
#pragma once

#include <unordered_set>

#include "core/ir/graph.h"

namespace lunaria::graph {

// Composite operators that the current device has no kernel for become what they are made of.
bool expand_composites(ir::Graph& graph);
// Takes out what neither the result nor an effect needs. Random operators stay: they move the generator on. So do
// those that may raise an error.
bool remove_dead_code(ir::Graph& graph);
// Of equal computations the first one stays; not across effects that may change their operands.
bool share_common_subexpressions(ir::Graph& graph);
// Runs what depends on constants alone, unless its result is large.
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
// What follows a product of matrices or a convolution, a bias or relu, is done to each part of its result as soon as
// that is there. To be run after those above, which know the operators that these are made of.
bool fuse_epilogues(ir::Graph& graph);
// Views of views become one view of the original; those that change nothing vanish.
bool simplify_views(ir::Graph& graph);
// Values that are needed again long after they were made are made again where that is cheap and spares memory; gives
// the nodes that do. To be run after all others, which would undo it.
std::unordered_set<const ir::Node*> recompute_cheap_values(ir::Graph& graph);

// All of them in their order but the last, until nothing changes, and fuse_epilogues at the end. With
// LUNARIA_DUMP=passes in the environment each pass that changed something prints the graph to the standard error
// stream.
void run_passes(ir::Graph& graph);

}  // namespace lunaria::graph
