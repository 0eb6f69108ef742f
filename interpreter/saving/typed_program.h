// A saved program with branches and loops as blocks of operators on tensors of known types, a form that other systems
// have as well: MindSpore's files hold such graphs (core/ir/mindir.h).
//
// The machine runs each block of the program on made-up tensors of the types that reach it, and the operators that it
// calls are recorded. Types propagate from block to block until nothing changes. A number or a boolean that differs
// between iterations is a tensor without axes, an integer one of int64, any other number one of float64; its arithmetic
// and its comparisons are then operators, with Lua's meaning.
#pragma once

#include <memory>
#include <span>

#include "interpreter/watchers/graph_trace.h"

namespace lunaria {

// `program`: the result of specialize(), with functions as values, as when it is read from a file. The graph has the
// inputs' types for parameters, weights as named constants, and a block as its last node. Null where a block does
// anything but call operators on tensors, or values of different types meet.
std::unique_ptr<ir::Graph> typed_program(lua_State* L, const ir::Graph& program, std::span<const Value> inputs,
                                         TracedSizes sizes);

}  // namespace lunaria
