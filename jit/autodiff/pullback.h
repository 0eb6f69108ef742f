// The reverse rules of operators as closed straight-line graphs, traced from the operators' own gradient rules at given
// types and kept for the next call. A rule's graph consists of operators that have such a graph again, so that the
// derivative of a derivative is the derivative of that graph.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::autodiff {

// The parameters of `graph` are the saved values (one per entry of `saved`), then one cotangent for each result of the
// operator that has one (`present`, in order). Its result is a list with one entry per parameter of the operator: a
// node, a list with a node or nil per item for a list of tensors, or nil for no gradient.
//
// A cotangent of a tensor has the tensor's own dtype and shape; that of a plain number in a tensor's place has rank 0.
// Integer and bool operands have none. The graph gets saved numbers as plain numbers.
struct Pullback {
    std::unique_ptr<ir::Graph> graph;
    // The sources of the saved values, with n parameters of the operator: i < n is argument i, n + j is result j.
    std::vector<int> saved;
    std::vector<int> saved_item;  // the item where argument i is a list of tensors, otherwise -1
};

// `args` and `result` are the operator's arguments and result. `active`: bit i means that argument i needs a cotangent;
// values that only others need are neither computed nor saved. `present`: bit j means that result j has a cotangent.
// Arguments and results from the 64th on count as active and present. A result that is no float tensor may be present:
// its parameter is there and not used.
//
// A composite operator without a rule of its own is refused with a state_error: differentiate its expansion. The graph
// is kept by its callers and by the cache of the calling thread, which drops graphs that were not used for long.
std::shared_ptr<const Pullback> pullback(const Op& op, std::span<const Value> args, const Value& result,
                                         uint64_t active, uint64_t present = ~uint64_t{0});

// Whether an operator has to be replaced by its expansion before it can be differentiated.
inline bool needs_expansion(const Op& op) { return op.expand_fn && !op.grad_fn && !op.no_grad_reason; }

// The number of results that an operator lists for complete arguments; 0: it has a single result, which is no list. (An
// operator with one named result lists any number; some list results without names.)
size_t count_results(const Op& op, std::span<const Value> args);

// The expansion of a composite operator at these types. Parameters: the arguments in a tensor's place in order (tensors
// and plain numbers; nil and bools are part of the graph), lists item by item; attributes are constants.
std::shared_ptr<const ir::Graph> expansion(const Op& op, std::span<const Value> args);

// A copy of a rule's graph with its composite operators expanded; null where there are none.
std::unique_ptr<ir::Graph> without_composites(const ir::Graph& graph);

// The rule of a primitive of jit/language.h on plain numbers: arithmetic of Lua and everything named num_…, by a graph
// of num_… primitives alone. Parameters, `saved` and result as above, with numbers in place of tensors. Never throws
// for a primitive that run_number knows (comparisons and bit operations have no cotangents).
std::shared_ptr<const Pullback> number_pullback(const Op& primitive, uint64_t active);

}  // namespace lunaria::autodiff
