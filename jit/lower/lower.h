// From the syntax tree of a Lua function to the IR.
//
// The graph's parameters are what the function captures (in the order of its upvalue list; a variable that changes
// after it was captured arrives as a cell), then its parameters, then, if it is variadic, the list of its further
// arguments. Its result is the list of its results. Functions inside become inner graphs behind `closure` nodes, blocks
// of control flow become inner graphs that call each other last. Lua's own operations are the primitives of
// jit/language.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "jit/frontend/ast.h"

namespace lunaria::lower {

// What an operation of the program works on, in the text: the indexed object, the callee (a MethodCall stands for its
// method), the operands. Errors name their variables by it.
struct Operation {
    const ir::Node* node = nullptr;
    const lua::Expr *first = nullptr, *second = nullptr;  // null where there is none
};

// "local 'a'", "field 'b'", as Lua's own messages have it; empty for what has no name.
std::string name_of(const lua::Expr& e);

// `stops`: with a stop_point before every statement, whose operands keep every visible variable alive: what a debugger
// needs, and slower. `operations`: gets those that an error may name.
std::unique_ptr<ir::Graph> lower(const lua::Chunk& chunk, const lua::Function& function, bool stops = false,
                                 std::vector<Operation>* operations = nullptr);

}  // namespace lunaria::lower
