// Lua text to tokens, one at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/frontend/ast.h"
#include "jit/frontend/syntax_error.h"
#include "jit/frontend/token.h"

namespace lunaria::lua {

class Lexer {
  public:
    // Reads chunk.source() and stores names and strings in the chunk. Throws SyntaxError when the source has 2 GB or
    // more.
    explicit Lexer(Chunk& chunk);

    // Before the first token: skips a byte order mark and a first line that begins with '#'.
    void skip_file_header();

    // Throws SyntaxError for malformed numbers, strings and comments. At the end, eof again and again.
    Token next();

    Name* intern(std::string_view text);

  private:
    void skip_newline();
    void skip_comment();
    int long_bracket_level(std::uint32_t at) const;
    std::string_view read_long_bracket(int level, const char* what);
    void read_name(Token& token);
    void read_number(Token& token);
    void read_string(Token& token);
    void read_escape(std::string& value, const Span& string);
    void read_utf8_escape(std::string& value, std::uint32_t begin);
    TokenKind read_symbol();
    Span span_from(std::uint32_t begin) const;
    [[noreturn]] void fail(const Span& span, std::string message, std::string_view found, std::string hint = {},
                           bool incomplete = false) const;
    [[noreturn]] void fail_escape(std::uint32_t begin, std::string message) const;

    Name* intern(std::string_view text, std::uint32_t hash);
    void grow_names();

    Chunk& chunk_;
    const char* text_;  // ends in a zero byte, so that one byte of look-ahead is always there
    std::uint32_t size_, pos_ = 0, line_ = 1, line_begin_ = 0;
    std::uint32_t last_token_line_ = 0;
    std::uint32_t doc_begin_ = 0, doc_end_ = 0, doc_line_ = 0;  // the comment block that is being read
    struct Slot {
        std::uint32_t hash = 0;
        Name* name = nullptr;
    };
    std::vector<Slot> names_;
    std::size_t name_count_ = 0;
};

}  // namespace lunaria::lua
