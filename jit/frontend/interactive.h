// Questions of a REPL and a notebook about text that is being typed: whether it is complete, whether it is an
// expression, how far to indent.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "jit/frontend/parser.h"

namespace lunaria::lua {

enum class Completeness { complete, incomplete, invalid };

struct InputState {
    Completeness completeness;
    std::string indent;  // spaces for the next line, when incomplete
};

// Complete: a valid chunk or a list of expressions. Incomplete: more lines could make it one. A string that is open at
// the end of its line is invalid, since no further line can close it. Never throws SyntaxError.
InputState input_state(std::string_view text);
inline Completeness completeness(std::string_view text) { return input_state(text).completeness; }

// A list of expressions, with or without `;` at the end.
bool is_expression(std::string_view text);

// Parses the text as a list of expressions, else as a chunk. When it is neither, throws the SyntaxError of the attempt
// that got further.
std::unique_ptr<Chunk> parse_interactive(std::string source, std::string name);

}  // namespace lunaria::lua
