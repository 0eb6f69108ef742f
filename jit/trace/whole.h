// A call as one graph: what it computes and what it changes, without the questions and guards of its record. It is for
// what looks at a whole step of training: forward, backward and optimizer, with the parameters and states they write.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "jit/trace/trace.h"

namespace lunaria::trace {

// A tensor, a number or a table that a step finds outside of the call: its name, and the type of an example where sizes
// are open.
struct Found {
    std::string name;
    std::optional<TensorType> type;
};

// Of the way that a call took last. What steps find outside are parameters of the graph. Sizes that were left open are
// nodes; the types of what depends on them are those of the examples. Throws state_error where the way has a loop whose
// number of iterations differs from call to call, or an error that the program catches.
std::unique_ptr<ir::Graph> whole_call(vm::Host& host, const Tree& tree, const std::function<Found(const Step&)>& found);

}  // namespace lunaria::trace
