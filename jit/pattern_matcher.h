// Matches a pattern of Lua against a text by backtracking.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string_view>

namespace lunaria {

// The error in a pattern, in the words of Lua.
struct PatternError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class PatternMatcher {
  public:
    static constexpr int kMostCaptures = 32;
    struct Capture {
        const char* begin;
        std::ptrdiff_t length;  // or one of these
        static constexpr std::ptrdiff_t kOpen = -1, kPosition = -2;
    };

    // Both texts must outlive it, and a zero byte must follow each.
    PatternMatcher(std::string_view text, std::string_view pattern)
        : begin_(text.data()),
          end_(text.data() + text.size()),
          pattern_(pattern.data()),
          pattern_end_(pattern.data() + pattern.size()) {}

    // The end of the match that begins at `s`, or null. Throws PatternError, and Error when interrupted.
    const char* match_at(const char* s) {
        captures_ = 0;
        depth_ = kDeepest;
        return match(s, pattern_);
    }
    const char* begin() const { return begin_; }
    const char* end() const { return end_; }
    // For the last match.
    int captures() const { return captures_; }
    const Capture& capture(int i) const { return capture_[static_cast<size_t>(i)]; }

  private:
    static constexpr int kDeepest = 200;  // as in Lua: each level takes some of the C stack
    class Level;

    const char* match(const char* s, const char* p);
    const char* item_end(const char* p) const;
    bool is_one(const char* s, const char* p, const char* item_end) const;
    bool in_set(unsigned char c, const char* set, const char* last) const;
    const char* longest(const char* s, const char* p, const char* item_end);
    const char* shortest(const char* s, const char* p, const char* item_end);
    const char* open_capture(const char* s, const char* p, std::ptrdiff_t kind);
    const char* close_capture(const char* s, const char* p);
    const char* balanced(const char* s, const char* p) const;
    const char* repeated_capture(const char* s, char number) const;
    bool at_frontier(const char* s, const char* set, const char* last) const;

    const char* begin_;
    const char* end_;
    const char* pattern_;
    const char* pattern_end_;
    std::array<Capture, kMostCaptures> capture_;
    int captures_ = 0;
    int depth_ = kDeepest;
    unsigned steps_ = 0;
};

}  // namespace lunaria
