#include "jit/pattern_matcher.h"

#include <cctype>
#include <cstring>

#include "core/base/error.h"
#include "core/base/visit.h"

namespace lunaria {

namespace {

constexpr char kEscape = '%';
constexpr unsigned kStepsPerLook = 4096;  // some ten microseconds

unsigned char byte(char c) { return static_cast<unsigned char>(c); }

bool in_class(unsigned char c, unsigned char name) {
    bool found = false;
    switch (std::tolower(name)) {
        case 'a':
            found = std::isalpha(c);
            break;
        case 'c':
            found = std::iscntrl(c);
            break;
        case 'd':
            found = std::isdigit(c);
            break;
        case 'g':
            found = std::isgraph(c);
            break;
        case 'l':
            found = std::islower(c);
            break;
        case 'p':
            found = std::ispunct(c);
            break;
        case 's':
            found = std::isspace(c);
            break;
        case 'u':
            found = std::isupper(c);
            break;
        case 'w':
            found = std::isalnum(c);
            break;
        case 'x':
            found = std::isxdigit(c);
            break;
        case 'z':  // of old; not in the manual any more
            found = c == '\0';
            break;
        default:
            return name == c;  // any other sign matches itself
    }
    return std::isupper(name) ? !found : found;
}

}  // namespace

class PatternMatcher::Level {
  public:
    explicit Level(PatternMatcher& m) : matcher_(m) {
        if (matcher_.depth_-- == 0) throw PatternError("pattern too complex");
    }
    ~Level() { ++matcher_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

  private:
    PatternMatcher& matcher_;
};

// The end of the single item that begins at p: a sign, %x or a set.
const char* PatternMatcher::item_end(const char* p) const {
    if (*p == kEscape) {
        if (p + 1 == pattern_end_) throw PatternError("malformed pattern (ends with '%')");
        return p + 2;
    }
    if (*p++ != '[') return p;
    if (*p == '^') ++p;
    // A bracket in the first place belongs to the set.
    do {
        if (p == pattern_end_) throw PatternError("malformed pattern (missing ']')");
        const char c = *p++;
        if (c == kEscape && p < pattern_end_) ++p;
    } while (p == pattern_end_ || *p != ']');
    return p + 1;
}

// `set` is at the opening bracket, `last` at the closing one.
bool PatternMatcher::in_set(unsigned char c, const char* set, const char* last) const {
    const bool negated = set[1] == '^';
    if (negated) ++set;
    while (++set < last) {
        if (*set == kEscape) {
            if (in_class(c, byte(*++set))) return !negated;
        } else if (set[1] == '-' && set + 2 < last) {
            if (byte(set[0]) <= c && c <= byte(set[2])) return !negated;
            set += 2;
        } else if (byte(*set) == c) {
            return !negated;
        }
    }
    return negated;
}

bool PatternMatcher::is_one(const char* s, const char* p, const char* item_end) const {
    if (s >= end_) return false;
    switch (*p) {
        case '.':
            return true;
        case kEscape:
            return in_class(byte(*s), byte(p[1]));
        case '[':
            return in_set(byte(*s), p, item_end - 1);
        default:
            return *p == *s;
    }
}

const char* PatternMatcher::longest(const char* s, const char* p, const char* item_end) {
    std::ptrdiff_t count = 0;
    while (is_one(s + count, p, item_end)) ++count;
    for (; count >= 0; --count)
        if (const char* end = match(s + count, item_end + 1)) return end;
    return nullptr;
}

const char* PatternMatcher::shortest(const char* s, const char* p, const char* item_end) {
    for (;; ++s) {
        if (const char* end = match(s, item_end + 1)) return end;
        if (!is_one(s, p, item_end)) return nullptr;
    }
}

const char* PatternMatcher::open_capture(const char* s, const char* p, std::ptrdiff_t kind) {
    if (captures_ >= kMostCaptures) throw PatternError("too many captures");
    capture_[static_cast<size_t>(captures_++)] = {s, kind};
    const char* end = match(s, p);
    if (!end) --captures_;
    return end;
}

const char* PatternMatcher::close_capture(const char* s, const char* p) {
    int open = captures_ - 1;
    while (open >= 0 && capture(open).length != Capture::kOpen) --open;
    if (open < 0) throw PatternError("invalid pattern capture");
    Capture& closed = capture_[static_cast<size_t>(open)];
    closed.length = s - closed.begin;
    const char* end = match(s, p);
    if (!end) closed.length = Capture::kOpen;
    return end;
}

const char* PatternMatcher::balanced(const char* s, const char* p) const {
    if (pattern_end_ - p < 2) throw PatternError("malformed pattern (missing arguments to '%b')");
    if (s >= end_ || *s != p[0]) return nullptr;
    int open = 1;
    while (++s < end_) {
        if (*s == p[1]) {
            if (--open == 0) return s + 1;
        } else if (*s == p[0]) {
            ++open;
        }
    }
    return nullptr;
}

const char* PatternMatcher::repeated_capture(const char* s, char number) const {
    const int i = number - '1';
    if (i < 0 || i >= captures_ || capture(i).length == Capture::kOpen)
        throw PatternError(str("invalid capture index %", i + 1));
    // The text of a position capture is longer than any other.
    const auto length = static_cast<size_t>(capture(i).length);
    if (static_cast<size_t>(end_ - s) < length || std::memcmp(capture(i).begin, s, length) != 0) return nullptr;
    return s + length;
}

bool PatternMatcher::at_frontier(const char* s, const char* set, const char* last) const {
    const char before = s == begin_ ? '\0' : s[-1], after = s < end_ ? *s : '\0';
    return !in_set(byte(before), set, last) && in_set(byte(after), set, last);
}

const char* PatternMatcher::match(const char* s, const char* p) {
    const Level level(*this);
    while (p < pattern_end_) {
        if (++steps_ % kStepsPerLook == 0) safe_point();
        if (*p == '(')
            return p[1] == ')' ? open_capture(s, p + 2, Capture::kPosition) : open_capture(s, p + 1, Capture::kOpen);
        if (*p == ')') return close_capture(s, p + 1);
        if (*p == '$' && p + 1 == pattern_end_) return s == end_ ? s : nullptr;
        if (*p == kEscape && p[1] == 'b') {
            s = balanced(s, p + 2);
            if (!s) return nullptr;
            p += 4;
            continue;
        }
        if (*p == kEscape && p[1] == 'f') {
            p += 2;
            if (*p != '[') throw PatternError("missing '[' after '%f' in pattern");
            const char* behind = item_end(p);
            if (!at_frontier(s, p, behind - 1)) return nullptr;
            p = behind;
            continue;
        }
        if (*p == kEscape && std::isdigit(byte(p[1]))) {
            s = repeated_capture(s, p[1]);
            if (!s) return nullptr;
            p += 2;
            continue;
        }
        const char* behind = item_end(p);
        const char how = behind < pattern_end_ ? *behind : '\0';
        if (!is_one(s, p, behind)) {
            if (how != '*' && how != '?' && how != '-') return nullptr;
            p = behind + 1;
            continue;
        }
        if (how == '+') return longest(s + 1, p, behind);
        if (how == '*') return longest(s, p, behind);
        if (how == '-') return shortest(s, p, behind);
        if (how == '?') {
            if (const char* end = match(s + 1, behind + 1)) return end;
            p = behind + 1;
            continue;
        }
        ++s;
        p = behind;
    }
    return s;
}

}  // namespace lunaria
