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
// node, for a list of tensors a list with a node or nil per item, or nil: no gradient.
//
// A cotangent of a tensor has the tensor's own dtype and shape; that of a plain number in a tensor's place has rank 0.
// Integer and bool operands have none. Saved numbers are given to the graph as the numbers they are.
struct Pullback {
    std::unique_ptr<ir::Graph> graph;
    // What the first parameters stand for, with n parameters of the operator: i < n is argument i, n + j is result j.
    std::vector<int> saved;
    std::vector<int> saved_item;  // the item where argument i is a list of tensors, otherwise -1
};

// `args` and `result` are what the operator was called with and gave. `active`: bit i says that argument i needs a
// cotangent; what only serves others is neither computed nor saved. `present`: bit j says that result j has a
// cotangent. Arguments and results from the 64th on count as active and present. A result that is no float tensor may
// be present: its parameter is there and not used.
//
// An operator that is made of others and has no rule of its own is refused with a state_error: differentiate its
// expansion. The graph stays valid for as long as someone holds it: callers and the cache of the calling thread, which
// forgets what was not used for long.
std::shared_ptr<const Pullback> pullback(const Op& op, std::span<const Value> args, const Value& result,
                                         uint64_t active, uint64_t present = ~uint64_t{0});

// Whether an operator has to be replaced by its expansion before it can be differentiated.
inline bool needs_expansion(const Op& op) { return op.expand_fn && !op.grad_fn && !op.no_grad_reason; }

// How many results an operator lists for complete arguments; 0: it has one, which is no list. (An operator with one
// named result lists any number, some list what they have no name for.)
size_t count_results(const Op& op, std::span<const Value> args);

// What an operator that needs expansion is made of at these types. Parameters: the arguments in a tensor's place in
// order (tensors and plain numbers; nil and bools are part of the graph), lists item by item; attributes are constants.
std::shared_ptr<const ir::Graph> expansion(const Op& op, std::span<const Value> args);

// A copy of a rule's graph in which composite operators are what they are made of; null where there are none.
std::unique_ptr<ir::Graph> without_composites(const ir::Graph& graph);

// The rule of a primitive of jit/language.h on plain numbers: arithmetic of Lua and everything named num_…, by a graph
// of num_… primitives alone. Parameters, `saved` and result as above, with numbers in place of tensors; never throws
// for a primitive that run_number knows (comparisons and bit operations have no cotangents).
std::shared_ptr<const Pullback> number_pullback(const Op& primitive, uint64_t active);

}  // namespace lunaria::autodiff
