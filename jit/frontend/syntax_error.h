// A mistake in Lua text. `what()` reads
//   train.lua:3: 'end' expected (to close 'function' at line 1) near <eof>
//       return x
//               ^
//     hint: ...
// with the first line in stock Lua's wording, so that it stands alone and searches find it.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"
#include "jit/frontend/token.h"

namespace lunaria::lua {

struct Problem {
    Span span;             // of what was found
    std::string message;   // "'then' expected", "malformed number"
    std::string found;     // "'x'", "<eof>"; empty when it would not help
    std::string expected;  // "'then'", "<name>"; empty when several would do
    std::string hint;
    // More text could make the chunk valid: a REPL reads on. `open_lines` is the number of lines with unclosed blocks
    // and brackets, which gives the indentation of the next line; zero within a long string or comment.
    bool incomplete = false;
    int open_lines = 0;
};

class SyntaxError : public Error {
  public:
    SyntaxError(std::string_view chunk_name, std::string_view source, Problem problem);

    const std::string& chunk_name() const { return chunk_name_; }
    const Problem& problem() const { return problem_; }
    std::uint32_t line() const { return problem_.span.line; }
    std::uint32_t column() const { return problem_.span.column; }
    bool incomplete() const { return problem_.incomplete; }
    const std::string& source_line() const { return source_line_; }
    // The first line of what(), without place: "'then' expected near 'x'".
    std::string headline() const;

  private:
    std::string chunk_name_, source_line_;
    Problem problem_;
};

// The bytes of a token in a message: quoted, shortened, with control characters and UTF-8 made readable.
std::string quoted_for_message(std::string_view text);

// Advice for habits of other languages: `!=`, `x += 1`, `else if`, `continue` and so on. Looks at the text at the token
// where the parser stopped and just before it. Empty when there is none.
std::string hint_for_slip(std::string_view source, const Span& previous, const Span& found);
// The same, by words anywhere in the line: `lambda x: x`, `x is None`, and "=x", which showed a value in Lua 5.1.
std::string hint_for_line(std::string_view source, const Span& found);
// Where a colon stands in the place of the word with which a block begins.
std::string hint_for_colon(std::string_view begins);
// Where the header of a block, which begins on the line, has such a colon before the problem, as in "while True:" and
// "if c: f()", that is the problem, and more text would not mend it.
void blame_python_colon(std::string_view source, std::uint32_t line, Problem& problem);
// The same for a statement that is a bare name: `continue`, `var x`, `print x`.
std::string hint_for_bare_name(std::string_view name, TokenKind next);

}  // namespace lunaria::lua
