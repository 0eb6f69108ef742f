#include "core/ir/cursor.h"

#include <algorithm>
#include <charconv>

#include "core/ir/text.h"

namespace lunaria::ir {

void Cursor::fail_at(size_t place, std::string_view message) const {
    place = std::min(place, text_.size());
    const size_t before = text_.rfind('\n', place == 0 ? 0 : place - 1);
    const size_t start = before == text_.npos || before >= place ? 0 : before + 1;
    std::string_view line = text_.substr(start, text_.find('\n', start) - start);
    size_t column = place - start;
    const auto number = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(start), '\n') + 1;
    // Of a long line only the part around the place is shown.
    if (column > 80) {
        line.remove_prefix(column - 60);
        column = 60;
    }
    line = line.substr(0, 120);
    throw Error(ErrorKind::syntax, str(name_, ":", number),
                str(message, "\n  ", line, "\n  ", std::string(column, ' '), "^"));
}

void Cursor::skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
}

void Cursor::skip_blank_lines() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
}

bool Cursor::accept(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
}

void Cursor::expect(std::string_view token) {
    if (!accept(token)) fail(str("'", token, "' expected"));
}

std::string_view Cursor::word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() && is_node_name_char(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
}

bool Cursor::accept_word(std::string_view wanted) {
    const size_t before = at_;
    if (word() == wanted) return true;
    at_ = before;
    return false;
}

int64_t Cursor::integer(std::string_view what, int64_t least, int64_t most) {
    skip_spaces();
    int64_t value = 0;
    auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (code == std::errc::invalid_argument) fail(str(what, " expected"));
    if (code != std::errc() || value < least || value > most)
        fail(str(what, " must be between ", least, " and ", most));
    at_ = static_cast<size_t>(end - text_.data());
    return value;
}

std::string Cursor::quoted() {
    expect("\"");
    std::string out;
    while (true) {
        if (at_end() || text_[at_] == '\n') fail("a string without an end");
        const char c = text_[at_++];
        if (c == '"') return out;
        if (c != '\\') {
            out += c;
            continue;
        }
        const char escape = peek();
        ++at_;
        int byte = 0;
        if (escape == '"' || escape == '\\') {
            out += escape;
        } else if (escape == 'n') {
            out += '\n';
        } else if (escape == 'x' && at_ + 2 <= text_.size() &&
                   std::from_chars(text_.data() + at_, text_.data() + at_ + 2, byte, 16).ptr ==
                       text_.data() + at_ + 2) {
            out += static_cast<char>(byte);
            at_ += 2;
        } else {
            fail_at(at_ - 2, "an unknown escape; there are \\\", \\\\, \\n and \\x with two digits");
        }
    }
}

std::string unquoted(std::string_view text, std::string_view name) {
    Cursor at(text, name);
    std::string out = at.quoted();
    at.end_of_line();
    return out;
}

void Cursor::end_of_line() {
    skip_spaces();
    if (accept("\r")) skip_spaces();
    if (at_end()) return;
    if (text_[at_] != '\n') fail("the end of the line expected");
    ++at_;
}

}  // namespace lunaria::ir
