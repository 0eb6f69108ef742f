// Tokens of Lua 5.4, and the names that the lexer interns. A Name is one record per distinct identifier of a chunk; the
// parser hangs the innermost visible local and label on it, so that resolving a name takes constant time.
#pragma once

#include <cstdint>
#include <string_view>

namespace lunaria::lua {

// Bytes [begin, end) of the source; line and byte column of the first one, both counted from 1.
struct Span {
    std::uint32_t begin = 0, end = 0, line = 0, column = 0;
};

enum class TokenKind : std::uint8_t {
    and_,
    break_,
    do_,
    else_,
    elseif_,
    end_,
    false_,
    for_,
    function_,
    goto_,
    if_,
    in_,
    local_,
    nil_,
    not_,
    or_,
    repeat_,
    return_,
    then_,
    true_,
    until_,
    while_,
    plus,
    minus,
    star,
    slash,
    double_slash,
    percent,
    caret,
    hash,
    ampersand,
    tilde,
    pipe,
    shift_left,
    shift_right,
    equal,
    not_equal,
    less_equal,
    greater_equal,
    less,
    greater,
    assign,
    left_paren,
    right_paren,
    left_brace,
    right_brace,
    left_bracket,
    right_bracket,
    double_colon,
    semicolon,
    colon,
    comma,
    dot,
    concat,
    ellipsis,
    name,
    string,
    integer,
    number,
    eof,
    unknown  // a byte that begins no token, such as '!' or a part of a UTF-8 character
};

inline constexpr int kKeywordCount = static_cast<int>(TokenKind::while_) + 1;

// The spelling of a token ("while", "<="), or "<name>", "<eof>" and so on for kinds with many spellings.
std::string_view spelling(TokenKind kind);

struct Local;

struct Name {
    std::string_view text;
    TokenKind kind = TokenKind::name;  // or the keyword
    Local* innermost = nullptr;        // the visible local of this name, in this function or an enclosing one
    int label = -1;                    // index of the visible label of this name in the scope's list
};

struct Token {
    TokenKind kind = TokenKind::eof;
    Span span;
    std::uint32_t doc_begin = 0, doc_end = 0;  // the `---` comment on the lines directly above, empty if none
    Name* name = nullptr;                      // of a name
    std::string_view text;                     // the value of a string
    std::int64_t integer = 0;
    double number = 0;
};

// Classes of bytes, as stock Lua has them in the C locale whatever the program's locale is.
bool is_name_start(char c);
bool is_name_part(char c);
bool is_digit(char c);
bool is_hex_digit(char c);
bool is_space(char c);
int hex_value(char c);

}  // namespace lunaria::lua
