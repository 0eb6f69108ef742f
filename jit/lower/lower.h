// From the syntax tree of a Lua function to the IR.
//
// The graph's parameters are the captured variables (in the order of the function's upvalue list; a variable that
// changes after it was captured arrives as a cell), then its parameters, then, if it is variadic, the list of its
// further arguments. Its result is the list of its results. Functions inside become inner graphs behind `closure`
// nodes, blocks of control flow become inner graphs that call each other last. Lua's own operations are the primitives
// of jit/language.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "jit/frontend/ast.h"

namespace lunaria::lower {

// The operands of an operation in the text: the indexed object, the callee (for a method call, the MethodCall itself),
// the operands. Errors name their variables. A loop's call of its iterator has none.
struct Operation {
    const ir::Node* node = nullptr;
    const lua::Expr *first = nullptr, *second = nullptr;  // null where there is none
};

// "local 'a'", "field 'b'", as in Lua's own messages; empty for an expression without a name.
std::string name_of(const lua::Expr& e);

// A function in the text of another one, of which there are only the name and the captures as yet.
struct Later {
    ir::Graph* graph = nullptr;
    const lua::Function* function = nullptr;
    const lua::Local* own_name = nullptr;  // the variable through which it calls itself, if it does not capture it
};

// `stops`: puts a stop_point before every statement, whose operands keep every visible variable alive, for a debugger;
// the program is slower. `operations`: gets the operations that an error may name. `later`: gets the functions inside,
// which lower_later() lowers when they are needed; null: they are lowered too.
std::unique_ptr<ir::Graph> lower(const lua::Chunk& chunk, const lua::Function& function, bool stops = false,
                                 std::vector<Operation>* operations = nullptr, std::vector<Later>* later = nullptr);
void lower_later(const lua::Chunk& chunk, const Later& one, std::vector<Later>& later);

}  // namespace lunaria::lower
