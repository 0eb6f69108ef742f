// A position in the text of a graph, for the parser: tokens, and errors that show the position.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"

namespace lunaria::ir {

class Cursor {
  public:
    Cursor(std::string_view text, std::string_view name) : text_(text), name_(name) {}

    [[noreturn]] void fail(std::string_view message) const { fail_at(at_, message); }
    [[noreturn]] void fail_at(size_t place, std::string_view message) const;

    bool at_end() const { return at_ >= text_.size(); }
    size_t place() const { return at_; }
    void go_to(size_t place) { at_ = place; }
    char peek() const { return at_end() ? '\n' : text_[at_]; }
    std::string_view rest_of_line() const { return text_.substr(at_, text_.find('\n', at_) - at_); }

    void skip_spaces();
    void skip_blank_lines();
    // Each of these first skips spaces.
    bool accept(std::string_view token);
    void expect(std::string_view token);
    // A word of letters, digits, '_', '.' and bytes of UTF-8; empty if there is none.
    std::string_view word();
    bool accept_word(std::string_view word);
    int64_t integer(std::string_view what, int64_t least, int64_t most);
    std::string quoted();
    // The end of a line, with a comment or without; moves to the next line.
    void end_of_line();

  private:
    std::string_view text_;
    std::string name_;
    size_t at_ = 0;
};

}  // namespace lunaria::ir
