// Graphs on devices that run whole operators (WholeOperators in core/run/placement.h), whose tensors lie in pieces on
// ranks. jit/parallel/ divides such graphs; the program tells graph mode of it, which knows nothing of ranks itself.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::graph {

class Executable;

// The divided forms of one graph, by the layouts and sizes of its inputs.
class Divided {
  public:
    // A call of the graph. `graph` makes it for the types of the inputs; null: an operator does not fit.
    struct Call {
        std::span<const Tensor> inputs;
        std::span<const Value> numbers;  // that the graph holds as constants, and another call as other ones
        const std::function<std::unique_ptr<ir::Graph>()>& graph;
    };
    virtual ~Divided() = default;
    // Runs the form for these inputs, which it makes at first. `last` is called with the outputs in their places, when
    // no input is held any more. False: the operators have to run one by one.
    virtual bool run(const Call& call, std::span<Tensor> outputs, const std::function<void()>& last) = 0;
    // Of the form that ran last: whether ranks of other processes took part, so that it must not run again after an
    // error; the type of a node of the graph, with its layout (empty: there is no such node); what runs the pieces
    // (null: the operators run one by one).
    virtual bool exchanges() const = 0;
    virtual std::string type_text(int node) const = 0;
    virtual const Executable* executable() const = 0;
};

// Whether the operator gives its operand in another layout. Graphs of one rank do not hold such calls.
bool is_layout(const Op& op);

using MakeDivided = std::unique_ptr<Divided> (*)();
void set_make_divided(MakeDivided function);
// Null where the program has no ranks.
std::unique_ptr<Divided> make_divided();

}  // namespace lunaria::graph
