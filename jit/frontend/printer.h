// A syntax tree as text: as Lua again, or as a fully parenthesised form that shows the structure.
#pragma once

#include <string>

#include "jit/frontend/ast.h"

namespace lunaria::lua {

// Lua text that parses to the same tree: two spaces of indentation, one statement a line, no comments.
std::string print(const Chunk& chunk);
std::string print(const Expr& expr);

// The structure in S-expressions with names resolved: locals as name@id, upvalues as ^name@index, globals as :name,
// constants as =name. Two chunks with the same dump differ in layout and comments only.
std::string dump(const Chunk& chunk);
std::string dump(const Expr& expr);

}  // namespace lunaria::lua
