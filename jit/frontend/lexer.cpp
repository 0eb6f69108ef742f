#include "jit/frontend/lexer.h"

#include <array>
#include <cstring>
#include <limits>

#include "jit/frontend/literals.h"

namespace lunaria::lua {

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(TokenKind::unknown) + 1> kSpelling = {
    "and",    "break",    "do",        "else",     "elseif", "end",      "false",  "for",  "function", "goto",  "if",
    "in",     "local",    "nil",       "not",      "or",     "repeat",   "return", "then", "true",     "until", "while",
    "+",      "-",        "*",         "/",        "//",     "%",        "^",      "#",    "&",        "~",     "|",
    "<<",     ">>",       "==",        "~=",       "<=",     ">=",       "<",      ">",    "=",        "(",     ")",
    "{",      "}",        "[",         "]",        "::",     ";",        ":",      ",",    ".",        "..",    "...",
    "<name>", "<string>", "<integer>", "<number>", "<eof>",  "<unknown>"};

enum : std::uint8_t { kNameStart = 1, kDigit = 2, kHex = 4, kSpace = 8 };

constexpr std::array<std::uint8_t, 256> kClasses = [] {
    std::array<std::uint8_t, 256> table{};
    for (int c = 'a'; c <= 'z'; ++c) table[c] = table[c - 32] = kNameStart;
    for (int c = 'a'; c <= 'f'; ++c) table[c] = table[c - 32] = kNameStart | kHex;
    table['_'] = kNameStart;
    for (int c = '0'; c <= '9'; ++c) table[c] = kDigit | kHex;
    for (const char c : {' ', '\t', '\n', '\v', '\f', '\r'}) table[static_cast<unsigned char>(c)] = kSpace;
    return table;
}();

bool has_class(char c, int classes) { return (kClasses[static_cast<unsigned char>(c)] & classes) != 0; }

std::uint32_t hash_of(std::string_view text) {
    std::uint32_t hash = 2166136261u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash ^ hash >> 15;
}

}  // namespace

std::string_view spelling(TokenKind kind) { return kSpelling[static_cast<std::size_t>(kind)]; }

bool is_name_start(char c) { return has_class(c, kNameStart); }
bool is_name_part(char c) { return has_class(c, kNameStart | kDigit); }
bool is_digit(char c) { return has_class(c, kDigit); }
bool is_hex_digit(char c) { return has_class(c, kHex); }
bool is_space(char c) { return has_class(c, kSpace); }
int hex_value(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

Lexer::Lexer(Chunk& chunk) : chunk_(chunk), text_(chunk.source().c_str()), size_(0), names_(256) {
    const std::string_view source = chunk.source();
    if (source.size() > std::numeric_limits<std::int32_t>::max())
        fail(Span{0, 0, 1, 1}, str("the chunk has ", source.size(), " bytes, more than the limit of 2147483647"), {});
    size_ = static_cast<std::uint32_t>(source.size());
    for (int i = 0; i < kKeywordCount; ++i)
        intern(kSpelling[static_cast<std::size_t>(i)])->kind = static_cast<TokenKind>(i);
}

void Lexer::skip_file_header() {
    if (std::string_view(chunk_.source()).starts_with("\xEF\xBB\xBF")) pos_ = 3;
    if (text_[pos_] == '#')
        while (pos_ < size_ && text_[pos_] != '\n' && text_[pos_] != '\r') ++pos_;
}

Name* Lexer::intern(std::string_view text) { return intern(text, hash_of(text)); }

Name* Lexer::intern(std::string_view text, std::uint32_t hash) {
    const std::size_t mask = names_.size() - 1;
    std::size_t i = hash & mask;
    for (; names_[i].name; i = (i + 1) & mask)
        if (names_[i].hash == hash && names_[i].name->text == text) return names_[i].name;
    Name* name = chunk_.make<Name>();
    name->text = text;
    names_[i] = {hash, name};
    if (++name_count_ * 2 > names_.size()) grow_names();
    return name;
}

void Lexer::grow_names() {
    std::vector<Slot> larger(names_.size() * 2);
    const std::size_t mask = larger.size() - 1;
    for (const Slot& slot : names_) {
        if (!slot.name) continue;
        std::size_t i = slot.hash & mask;
        while (larger[i].name) i = (i + 1) & mask;
        larger[i] = slot;
    }
    names_.swap(larger);
}

Span Lexer::span_from(std::uint32_t begin) const { return {begin, pos_, line_, begin - line_begin_ + 1}; }

void Lexer::fail(const Span& span, std::string message, std::string_view found, std::string hint,
                 bool incomplete) const {
    Problem problem;
    problem.span = span;
    problem.message = std::move(message);
    problem.found = incomplete ? "<eof>" : found.empty() ? "" : quoted_for_message(found);
    problem.hint = std::move(hint);
    problem.incomplete = incomplete;
    throw SyntaxError(chunk_.name(), chunk_.source(), std::move(problem));
}

void Lexer::skip_newline() {
    const char first = text_[pos_++];
    if (pos_ < size_ && (text_[pos_] == '\n' || text_[pos_] == '\r') && text_[pos_] != first) ++pos_;
    ++line_;
    line_begin_ = pos_;
}

// The number of '=' in the long bracket that opens at the position, or -1 when there is none, or -2 - that number when
// the second '[' is missing.
int Lexer::long_bracket_level(std::uint32_t at) const {
    std::uint32_t i = at + 1;
    while (text_[i] == '=') ++i;
    const int level = static_cast<int>(i - at - 1);
    if (text_[i] == '[') return level;
    return level == 0 ? -1 : -2 - level;
}

std::string_view Lexer::read_long_bracket(int level, const char* what) {
    const Span start = {pos_, pos_ + static_cast<std::uint32_t>(level) + 2, line_, pos_ - line_begin_ + 1};
    pos_ = start.end;
    if (pos_ < size_ && (text_[pos_] == '\n' || text_[pos_] == '\r')) skip_newline();
    const std::uint32_t content = pos_;
    bool has_carriage_return = false;
    for (;;) {
        if (pos_ >= size_)
            fail(start, str("unfinished long ", what, " (starting at line ", start.line, ")"), {},
                 str("close it with ]", std::string(static_cast<std::size_t>(level), '='), "]"), true);
        const char c = text_[pos_];
        if (c == ']') {
            std::uint32_t i = pos_ + 1;
            while (text_[i] == '=') ++i;
            if (static_cast<int>(i - pos_ - 1) == level && text_[i] == ']') {
                const std::string_view raw(text_ + content, pos_ - content);
                pos_ = i + 1;
                if (!has_carriage_return) return raw;
                // Every kind of line end reads as '\n'.
                std::string value;
                for (std::size_t k = 0; k < raw.size(); ++k) {
                    const bool is_end = raw[k] == '\n' || raw[k] == '\r';
                    value += is_end ? '\n' : raw[k];
                    const char next = k + 1 < raw.size() ? raw[k + 1] : '\0';
                    if (is_end && next != raw[k] && (next == '\n' || next == '\r')) ++k;
                }
                return chunk_.keep(std::string_view(value));
            }
            pos_ = i;
        } else if (c == '\n' || c == '\r') {
            has_carriage_return |= c == '\r' || text_[pos_ + 1] == '\r';
            skip_newline();
        } else {
            ++pos_;
        }
    }
}

void Lexer::skip_comment() {
    const std::uint32_t begin = pos_;
    const bool own_line = last_token_line_ != line_;
    pos_ += 2;
    if (text_[pos_] == '[') {
        const int level = long_bracket_level(pos_);
        if (level >= 0) {
            read_long_bracket(level, "comment");
            doc_end_ = 0;
            return;
        }
    }
    while (pos_ < size_ && text_[pos_] != '\n' && text_[pos_] != '\r') ++pos_;
    const bool continues = doc_end_ != 0 && doc_line_ + 1 == line_;
    if (own_line && !continues) doc_begin_ = begin;
    if (own_line && (continues || std::string_view(text_ + begin, pos_ - begin).starts_with("---"))) {
        doc_end_ = pos_;
        doc_line_ = line_;
    } else {
        doc_end_ = 0;
    }
}

Token Lexer::next() {
    for (;;) {
        const char c = text_[pos_];
        if (c == '\n' || c == '\r')
            skip_newline();
        else if (has_class(c, kSpace))
            ++pos_;
        else if (c == '-' && text_[pos_ + 1] == '-')
            skip_comment();
        else
            break;
    }
    Token token;
    if (doc_end_ != 0 && doc_line_ + 1 == line_) {
        token.doc_begin = doc_begin_;
        token.doc_end = doc_end_;
    }
    doc_end_ = 0;
    const std::uint32_t begin = pos_;
    token.span = {begin, begin, line_, begin - line_begin_ + 1};
    const char c = text_[pos_];
    if (pos_ >= size_) {
        token.kind = TokenKind::eof;
    } else if (has_class(c, kNameStart)) {
        read_name(token);
    } else if (has_class(c, kDigit) || (c == '.' && has_class(text_[pos_ + 1], kDigit))) {
        read_number(token);
    } else if (c == '"' || c == '\'') {
        read_string(token);
    } else if (const int level = c == '[' ? long_bracket_level(pos_) : -1; level != -1) {
        if (level < -1) {
            pos_ += static_cast<std::uint32_t>(-level - 1);
            fail(span_from(begin), "invalid long string delimiter", std::string_view(text_ + begin, pos_ - begin),
                 "a long string begins with [[ or [=[ and ends with ]] or ]=]");
        }
        token.text = read_long_bracket(level, "string");
        token.kind = TokenKind::string;
    } else {
        token.kind = read_symbol();
    }
    token.span.end = pos_;
    last_token_line_ = line_;
    return token;
}

void Lexer::read_name(Token& token) {
    const std::uint32_t begin = pos_;
    std::uint32_t hash = 2166136261u;
    do hash = (hash ^ static_cast<unsigned char>(text_[pos_])) * 16777619u;
    while (has_class(text_[++pos_], kNameStart | kDigit));
    token.name = intern(std::string_view(text_ + begin, pos_ - begin), hash ^ hash >> 15);
    token.kind = token.name->kind;
}

// Reads everything that looks like a numeral, even a malformed one, as stock Lua does: "3x" is a mistake, not two
// tokens.
void Lexer::read_number(Token& token) {
    const std::uint32_t begin = pos_;
    const bool hexadecimal = text_[pos_] == '0' && (text_[pos_ + 1] | 0x20) == 'x';
    if (hexadecimal) pos_ += 2;
    const char exponent = hexadecimal ? 'p' : 'e';
    for (;;) {
        const char c = text_[pos_];
        if ((c | 0x20) == exponent) {
            ++pos_;
            if (text_[pos_] == '+' || text_[pos_] == '-') ++pos_;
        } else if (has_class(c, kHex) || c == '.') {
            ++pos_;
        } else {
            break;
        }
    }
    if (has_class(text_[pos_], kNameStart)) ++pos_;
    const std::string_view text(text_ + begin, pos_ - begin);
    const auto value = parse_number(text);
    if (!value) {
        const bool has_points = text.find("..") != std::string_view::npos;
        fail(span_from(begin), "malformed number", text,
             has_points ? "put spaces around '..' after a number; a loop over numbers is: for i = 1, 10 do"
                        : std::string());
    }
    if (const auto* integer = std::get_if<std::int64_t>(&*value)) {
        token.kind = TokenKind::integer;
        token.integer = *integer;
    } else {
        token.kind = TokenKind::number;
        token.number = std::get<double>(*value);
    }
}

void Lexer::read_string(Token& token) {
    const std::uint32_t begin = pos_;
    const char quote = text_[pos_++];
    const auto skip_plain = [&] {
        while (pos_ < size_ && text_[pos_] != quote && text_[pos_] != '\\' && text_[pos_] != '\n' &&
               text_[pos_] != '\r')
            ++pos_;
    };
    token.kind = TokenKind::string;
    skip_plain();
    if (pos_ < size_ && text_[pos_] == quote) {
        token.text = std::string_view(text_ + begin + 1, pos_ - begin - 1);
        ++pos_;
        return;
    }
    std::string value(text_ + begin + 1, pos_ - begin - 1);
    for (;;) {
        if (pos_ >= size_ || text_[pos_] == '\n' || text_[pos_] == '\r') {
            Span span = token.span;
            span.end = pos_;
            // Found is cut at the first line: a string may have gone on after a backslash.
            const std::string_view found(text_ + begin, pos_ - begin);
            fail(span, "unfinished string", found.substr(0, found.find_first_of("\r\n")),
                 str("close it with ", quote, " on the same line; write \\n for a line break, or use [[ ]]"));
        }
        if (text_[pos_] == quote) break;
        read_escape(value, token.span);
        const std::uint32_t plain = pos_;
        skip_plain();
        value.append(text_ + plain, pos_ - plain);
    }
    ++pos_;
    token.text = chunk_.keep(std::string_view(value));
}

void Lexer::fail_escape(std::uint32_t begin, std::string message) const {
    // Show the byte that was wrong as well, unless it ends the line.
    std::uint32_t end = pos_;
    if (end < size_ && text_[end] != '\n' && text_[end] != '\r') ++end;
    fail(span_from(begin), std::move(message), std::string_view(text_ + begin, end - begin),
         "a backslash itself is written \\\\");
}

void Lexer::read_escape(std::string& value, const Span& string) {
    static constexpr std::string_view kLetters = "abfnrtv\\\"'", kBytes = "\a\b\f\n\r\t\v\\\"'";
    const std::uint32_t begin = pos_++;
    const char c = text_[pos_];
    if (pos_ >= size_) fail(string, "unfinished string", {}, {}, true);  // a line break may follow a backslash
    if (const auto i = kLetters.find(c); i != std::string_view::npos) {
        value += kBytes[i];
        ++pos_;
    } else if (c == '\n' || c == '\r') {
        skip_newline();
        value += '\n';
        if (pos_ >= size_) fail(string, "unfinished string", {}, {}, true);
    } else if (c == 'z') {
        ++pos_;
        while (pos_ < size_ && has_class(text_[pos_], kSpace)) {
            if (text_[pos_] == '\n' || text_[pos_] == '\r')
                skip_newline();
            else
                ++pos_;
        }
        if (pos_ >= size_) fail(string, "unfinished string", {}, {}, true);
    } else if (c == 'x') {
        ++pos_;
        int code = 0;
        for (int i = 0; i < 2; ++i, ++pos_) {
            if (!has_class(text_[pos_], kHex)) fail_escape(begin, "hexadecimal digit expected");
            code = code * 16 + hex_value(text_[pos_]);
        }
        value += static_cast<char>(code);
    } else if (c == 'u') {
        ++pos_;
        read_utf8_escape(value, begin);
    } else if (has_class(c, kDigit)) {
        int code = 0;
        for (int i = 0; i < 3 && has_class(text_[pos_], kDigit); ++i) code = code * 10 + (text_[pos_++] - '0');
        if (code > 255) fail_escape(begin, "decimal escape too large");
        value += static_cast<char>(code);
    } else {
        fail_escape(begin, "invalid escape sequence");
    }
}

void Lexer::read_utf8_escape(std::string& value, std::uint32_t begin) {
    if (text_[pos_] != '{') fail_escape(begin, "missing '{' in \\u{xxxx}");
    ++pos_;
    if (!has_class(text_[pos_], kHex)) fail_escape(begin, "hexadecimal digit expected");
    std::uint32_t code = 0;
    for (; has_class(text_[pos_], kHex); ++pos_) {
        if (code > 0x7FFFFFFu) fail_escape(begin, "UTF-8 value too large");
        code = code * 16 + static_cast<std::uint32_t>(hex_value(text_[pos_]));
    }
    if (text_[pos_] != '}') fail_escape(begin, "missing '}' in \\u{xxxx}");
    ++pos_;
    append_utf8(value, code);
}

TokenKind Lexer::read_symbol() {
    using enum TokenKind;
    const char c = text_[pos_++];
    const auto followed_by = [&](char next) {
        if (text_[pos_] != next) return false;
        ++pos_;
        return true;
    };
    switch (c) {
        case '+':
            return plus;
        case '-':
            return minus;
        case '*':
            return star;
        case '/':
            return followed_by('/') ? double_slash : slash;
        case '%':
            return percent;
        case '^':
            return caret;
        case '#':
            return hash;
        case '&':
            return ampersand;
        case '~':
            return followed_by('=') ? not_equal : tilde;
        case '|':
            return pipe;
        case '<':
            return followed_by('<') ? shift_left : followed_by('=') ? less_equal : less;
        case '>':
            return followed_by('>') ? shift_right : followed_by('=') ? greater_equal : greater;
        case '=':
            return followed_by('=') ? equal : assign;
        case '(':
            return left_paren;
        case ')':
            return right_paren;
        case '{':
            return left_brace;
        case '}':
            return right_brace;
        case '[':
            return left_bracket;
        case ']':
            return right_bracket;
        case ':':
            return followed_by(':') ? double_colon : colon;
        case ';':
            return semicolon;
        case ',':
            return comma;
        case '.':
            return !followed_by('.') ? dot : followed_by('.') ? ellipsis : concat;
        default:
            break;
    }
    // The whole UTF-8 character is one unknown token, so that a message can show it.
    if (static_cast<unsigned char>(c) >= 0xC0)
        while (pos_ < size_ && (static_cast<unsigned char>(text_[pos_]) & 0xC0) == 0x80) ++pos_;
    return unknown;
}

}  // namespace lunaria::lua
