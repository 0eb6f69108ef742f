// Lua text to syntax tree: the whole language of Lua 5.4, with stock Lua's checks and limits except those on registers
// and code size, which only its code generator knows.
#pragma once

#include <memory>
#include <string>

#include "jit/frontend/ast.h"
#include "jit/frontend/syntax_error.h"

namespace lunaria::lua {

// The source of a text. A byte order mark and a first line that begins with '#' are skipped in a file only, as stock
// Lua's loadfile does and load does not.
enum class TextKind : bool { file, fragment };

// Parses a chunk. `name` is its name in messages, such as "train.lua". Throws SyntaxError.
std::unique_ptr<Chunk> parse(std::string source, std::string name, TextKind kind = TextKind::file);

// Parses a list of expressions as if `return` stood before it; one `;` may follow (Chunk::is_silent). The span of the
// Return is that of the expressions. Throws SyntaxError.
std::unique_ptr<Chunk> parse_expression_list(std::string source, std::string name);

}  // namespace lunaria::lua
