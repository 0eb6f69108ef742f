#include "jit/frontend/loose_scan.h"

#include <algorithm>

namespace lunaria::lua {

namespace {

class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}

    LooseScan scan() {
        while (pos_ < text_.size() && result_.cut_off == CutOff::nothing) step();
        return std::move(result_);
    }

  private:
    char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
    void add(TokenKind kind, std::size_t begin) {
        result_.tokens.push_back({kind, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(pos_)});
    }
    void cut(CutOff what, std::size_t begin) {
        result_.cut_off = what;
        result_.cut_begin = static_cast<std::uint32_t>(begin);
        pos_ = text_.size();
    }

    void step() {
        const std::size_t begin = pos_;
        const char c = text_[pos_];
        if (is_space(c))
            ++pos_;
        else if (c == '-' && at(pos_ + 1) == '-')
            comment();
        else if (is_name_start(c))
            name();
        else if (is_digit(c) || (c == '.' && is_digit(at(pos_ + 1))))
            number();
        else if (c == '"' || c == '\'')
            short_string();
        else if (c == '[' && long_bracket(begin, CutOff::long_string))
            add(TokenKind::string, begin);
        else if (result_.cut_off == CutOff::nothing)
            symbol();
    }

    void comment() {
        const std::size_t begin = pos_;
        pos_ += 2;
        if (at(pos_) == '[' && (long_bracket(begin, CutOff::comment) || result_.cut_off != CutOff::nothing)) return;
        const std::size_t end = text_.find_first_of("\r\n", pos_);
        if (end == std::string_view::npos)
            cut(CutOff::comment, begin);
        else
            pos_ = end;
    }

    // Skips a long bracket that opens here; false if there is none or it is cut off.
    bool long_bracket(std::size_t begin, CutOff what) {
        std::size_t i = pos_ + 1;
        while (at(i) == '=') ++i;
        if (at(i) != '[') return false;
        const std::size_t level = i - pos_ - 1;
        for (++i; i < text_.size();) {
            if (text_[i] != ']') {
                ++i;
                continue;
            }
            std::size_t k = i + 1;
            while (at(k) == '=') ++k;
            if (k - i - 1 == level && at(k) == ']') {
                pos_ = k + 1;
                return true;
            }
            i = k;
        }
        cut(what, begin);
        return false;
    }

    void name() {
        const std::size_t begin = pos_;
        while (is_name_part(at(pos_))) ++pos_;
        const std::string_view word = text_.substr(begin, pos_ - begin);
        TokenKind kind = TokenKind::name;
        for (int i = 0; i < kKeywordCount && word.size() <= 8; ++i)
            if (word == spelling(static_cast<TokenKind>(i))) kind = static_cast<TokenKind>(i);
        add(kind, begin);
    }

    void number() {
        const std::size_t begin = pos_;
        const bool hexadecimal = at(pos_) == '0' && (at(pos_ + 1) | 0x20) == 'x';
        while (is_name_part(at(pos_)) || (at(pos_) == '.' && at(pos_ + 1) != '.')) {
            const char c = static_cast<char>(at(pos_++) | 0x20);
            if (c == (hexadecimal ? 'p' : 'e') && (at(pos_) == '+' || at(pos_) == '-')) ++pos_;
        }
        add(TokenKind::integer, begin);
    }

    void short_string() {
        const std::size_t begin = pos_;
        const char quote = text_[pos_++];
        for (; pos_ < text_.size(); ++pos_) {
            const char c = text_[pos_];
            if (c == quote) {
                ++pos_;
                return add(TokenKind::string, begin);
            }
            if (c == '\n' || c == '\r') return add(TokenKind::string, begin);  // broken: the string ends with its line
            if (c != '\\') continue;
            ++pos_;
            if (at(pos_) == 'z')
                while (is_space(at(pos_ + 1))) ++pos_;
        }
        cut(CutOff::string, begin);
    }

    void symbol() {
        using enum TokenKind;
        static constexpr TokenKind kSymbols[] = {
            ellipsis,      concat,       equal,        not_equal,   less_equal, greater_equal, shift_left,
            shift_right,   double_colon, double_slash, plus,        minus,      star,          slash,
            percent,       caret,        hash,         ampersand,   tilde,      pipe,          less,
            greater,       assign,       left_paren,   right_paren, left_brace, right_brace,   left_bracket,
            right_bracket, semicolon,    colon,        comma,       dot};
        const std::size_t begin = pos_;
        const std::string_view rest = text_.substr(pos_, 3);
        const auto found = std::find_if(std::begin(kSymbols), std::end(kSymbols),
                                        [&](TokenKind kind) { return rest.starts_with(spelling(kind)); });
        pos_ += found == std::end(kSymbols) ? 1 : spelling(*found).size();
        add(found == std::end(kSymbols) ? unknown : *found, begin);
    }

    std::string_view text_;
    std::size_t pos_ = 0;
    LooseScan result_;
};

}  // namespace

LooseScan scan_loosely(std::string_view text) { return Scanner(text).scan(); }

}  // namespace lunaria::lua
