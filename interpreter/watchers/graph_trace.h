// The straight-line graph of the operators that a Lua function calls on given tensors, for saving: control flow, tables
// and Lua functions are run by the virtual machine and leave no trace, tensors of parameters become named constants.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/ir/graph.h"
#include "interpreter/host/lua_host.h"

namespace lunaria {

// Whether what a function does with the sizes of its inputs is taken as it is for these ones.
enum class TracedSizes { open, fixed };

// `f` is called with the tensors in the Lua thread L. The graph has one parameter per tensor; its result is the list of
// f's results. Null where f gives anything but tensors, or does something that depends on its inputs other than by
// operators: a comparison, an element that is read, a function that is not followed. Throws what f throws.
std::unique_ptr<ir::Graph> trace_graph(lua_State* L, const Value& f, std::span<const Value> inputs,
                                       TracedSizes sizes = TracedSizes::open);

// The same for a function that has to be one that can be called any number of times with the graph instead: null also
// where it writes into what is there without it, reads a parameter, or calls what is not known to give the same every
// time, all that before it does. Errors of f are not thrown, but give null. Its random operators are in the graph, and
// tensors that it knows are there as they are now.
std::unique_ptr<ir::Graph> trace_pure_graph(lua_State* L, const Value& f, std::span<const Value> inputs);

// Whether the graph consists of operators on tensors alone and gives a list of results.
bool is_plain(const ir::Graph& graph);

}  // namespace lunaria
