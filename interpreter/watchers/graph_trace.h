// The straight-line graph of the operators that a Lua function calls on given tensors, for saving: the virtual machine
// runs control flow, tables and Lua functions, which leave no trace; tensors of parameters become named constants.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/ir/graph.h"
#include "interpreter/host/lua_host.h"

namespace lunaria {

// Whether the function's use of its inputs' sizes is recorded for these sizes only (fixed).
enum class TracedSizes { open, fixed };

// `f` is called with the tensors in the Lua thread L. The graph has one parameter per tensor; its result is the list of
// f's results. Null where f returns anything but tensors, or does something that depends on its inputs other than by
// operators: a comparison, a read of an element, a function that is not traced. Throws f's errors. with_lines:
// nodes have the lines of the program that they come from.
std::unique_ptr<ir::Graph> trace_graph(lua_State* L, const Value& f, std::span<const Value> inputs,
                                       TracedSizes sizes = TracedSizes::open, bool with_lines = false);

// The same for a function that is to be replaced by the graph in any number of calls: also null where the function
// writes into something that exists without it, reads a parameter, or calls a function that may give another result the
// next time; null is returned before any of that happens. Errors of f give null. Its random operators are in the graph,
// and so are the present values of tensors that it captures.
std::unique_ptr<ir::Graph> trace_pure_graph(lua_State* L, const Value& f, std::span<const Value> inputs);

}  // namespace lunaria
