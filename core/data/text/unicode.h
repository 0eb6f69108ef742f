// Texts as Unicode characters, by utf8proc and PCRE2: both are small (1 MB), where ICU is 36 MB for the same.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::text {

struct Character {
    int32_t code;
    uint32_t begin, end;  // bytes
    uint32_t size() const { return end - begin; }
};

// Throws value_error, in the name of `where`, when the text is no UTF-8.
std::vector<Character> characters(std::string_view where, std::string_view text);
std::string utf8_of(int32_t code);

bool is_space(int32_t code);
bool is_control(int32_t code);  // of the categories Cc and Cf
bool is_mark(int32_t code);     // zero-width marks: of the category Mn
// Punctuation, and the other printable characters of ASCII that are no letters or digits.
bool is_punctuation(int32_t code);
bool is_ideograph(int32_t code);

// The numbers are those of NormalizeForm.
enum class Form { none = 0, nfc = 1, nfkc = 2, nfd = 3, nfkd = 4 };
std::string normalized(std::string_view where, std::string_view text, Form form);
// Lower case by Unicode's case folding, with compatibility characters unified (NFKC).
std::string folded(std::string_view where, std::string_view text);

// Characters that have another letter case in that one.
std::string upper(std::string_view where, std::string_view text);
std::string lower(std::string_view where, std::string_view text);

// A regular expression of PCRE2 over Unicode.
class Pattern {
  public:
    struct Match {
        size_t begin, end;
    };
    // Throws value_error when the pattern is not valid.
    Pattern(std::string_view where, std::string_view pattern);
    ~Pattern();
    Pattern(Pattern&&) noexcept;
    // The first match from `from` on; false: there is none. Throws when it takes too long.
    bool find(std::string_view text, size_t from, Match& match) const;
    // All matches, one after the other.
    std::vector<Match> all(std::string_view text) const;
    // Replaces all matches, or the first one, by `with`, in which $1 is the first group.
    std::string replaced(std::string_view text, std::string_view with, bool all) const;

  private:
    struct Body;
    std::unique_ptr<Body> body_;
};

}  // namespace lunaria::text
