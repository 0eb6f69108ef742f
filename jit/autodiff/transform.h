// J: from a function's graph to the graph of its derivative, by source transformation.
//
// J(f) computes what f computes and gives, beside f's results, a backpropagator: a closure that takes the cotangents of
// the results and gives those of the arguments (Pearlmutter and Siskind, "Reverse-mode AD in a functional framework",
// TOPLAS 2008). Blocks of control flow keep their tail calls: each hands on the backpropagator of what ran before it,
// so that a loop stays a loop in both directions.
//
// Tensors and floating-point numbers have cotangents, nil stands for zero. What has an identity (tables, variables,
// closures, parameters) has none; the cotangents of its parts are kept in its shadow in the context of the
// differentiation. The graphs that J makes consist of the same primitives that it knows how to differentiate, so J
// applies to its own results.
//
// Calling convention of a graph of order n (n times transformed): the contexts, outermost first; from order 1 on the
// closure that runs; then captures and parameters as before. Its result is the list of the results and the n
// backpropagators, outermost last.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::autodiff {

// The source of a block of a derivative: `begin` nodes precede the first of the source's own, and for each of those the
// length of the derivative's body after it.
struct Origin {
    const ir::Graph* block = nullptr;
    size_t begin = 0;
    std::vector<uint32_t> ends;
};
using Origins = std::unordered_map<const ir::Graph*, Origin>;

// `function` is a function made by lowering, a rule's graph, or a result of this. `origins`, if not null, takes the
// sources of the derivative's blocks.
std::unique_ptr<ir::Graph> differentiate(const ir::Graph& function, Origins* origins = nullptr);

// The backpropagator of a call with a derivative given by the program: a function of that function's needs and of all
// cotangents.
const ir::Graph& custom_back();

// The key of a pullback's operand in the shadow of its closure: argument i, item m of argument i (m < 0: the whole),
// or, for i < 0, result -1 - i.
constexpr int64_t operand_key(int64_t i, int64_t m) { return i + (m < 0 ? 0 : 4096 * (m + 1)); }

}  // namespace lunaria::autodiff
