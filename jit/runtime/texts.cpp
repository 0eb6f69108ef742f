// string, with Lua's patterns and formats.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "jit/frontend/literals.h"
#include "jit/number.h"
#include "jit/pattern_matcher.h"
#include "jit/runtime/natives.h"

namespace lunaria::runtime {

using vm::PlainHost;
using vm::Values;

namespace {

using Table = PlainHost::Table;
using Capture = PatternMatcher::Capture;

constexpr size_t kLongest = size_t{1} << 31;

// A position from the front, from 1, that may be counted from the end.
int64_t from_front(int64_t at, size_t size) {
    if (at >= 0) return at;
    return at < -static_cast<int64_t>(size) ? 0 : static_cast<int64_t>(size) + at + 1;
}

std::string_view part(const std::string& text, int64_t from, int64_t to) {
    from = std::max<int64_t>(from_front(from, text.size()), 1);
    to = std::min(from_front(to, text.size()), static_cast<int64_t>(text.size()));
    if (from > to) return {};
    return std::string_view(text).substr(static_cast<size_t>(from) - 1, static_cast<size_t>(to - from) + 1);
}

// What is wrong with a pattern is an error of the call.
template <class F>
auto with_pattern(const F& f) {
    try {
        return f();
    } catch (const PatternError& e) {
        throw argument_error("", e.what());
    }
}

Value captured(const PatternMatcher& m, int i, const char* s, const char* e) {
    if (i >= m.captures()) {
        if (i > 0) throw argument_error("", str("invalid capture index %", i + 1));
        return Value(std::string_view(s, static_cast<size_t>(e - s)));
    }
    const Capture& c = m.capture(i);
    if (c.length == Capture::kOpen) throw argument_error("", "unfinished capture");
    if (c.length == Capture::kPosition) return Value(static_cast<int64_t>(c.begin - m.begin() + 1));
    return Value(std::string_view(c.begin, static_cast<size_t>(c.length)));
}

void add_captures(Values& list, const PatternMatcher& m, const char* s, const char* e, bool whole) {
    const int count = whole ? std::max(m.captures(), 1) : m.captures();
    for (int i = 0; i < count; ++i) list.push_back(captured(m, i, s, e));
}

Values search(const Arguments& a, bool finds) {
    const std::string text = a.text(0), pattern = a.text(1);
    const int64_t from = std::max<int64_t>(from_front(a.integer(2, 1), text.size()), 1);
    if (from > static_cast<int64_t>(text.size()) + 1) return {Value()};
    const bool plain = finds && (a.has(3) && !(a.at(3).kind() == Value::Kind::boolean && !a.at(3).boolean()));
    if (plain || (finds && pattern.find_first_of("^$*+?.([%-") == pattern.npos)) {
        const size_t at = text.find(pattern, static_cast<size_t>(from) - 1);
        if (at == text.npos) return {Value()};
        return {Value(static_cast<int64_t>(at) + 1), Value(static_cast<int64_t>(at + pattern.size()))};
    }
    const bool anchored = pattern.starts_with('^');
    const std::string body = anchored ? pattern.substr(1) : pattern;
    return with_pattern([&]() -> Values {
        PatternMatcher m(text, body);
        for (const char* s = m.begin() + from - 1; s <= m.end(); ++s) {
            if (const char* e = m.match_at(s)) {
                Values found;
                if (finds) {
                    found.push_back(Value(static_cast<int64_t>(s - m.begin() + 1)));
                    found.push_back(Value(static_cast<int64_t>(e - m.begin())));
                }
                add_captures(found, m, s, e, !finds);
                return found;
            }
            if (anchored) break;
        }
        return {Value()};
    });
}

// A function that gives the next match at each call.
Values matches(std::span<const Value> args) {
    const Arguments a("gmatch", args);
    struct State {
        std::string text, pattern;
        size_t from = 0;
        const char* last = nullptr;
    };
    auto state = std::make_shared<State>();  // of the function that is given
    state->text = a.text(0);
    state->pattern = a.text(1);
    state->from = static_cast<size_t>(std::max<int64_t>(from_front(a.integer(2, 1), state->text.size()), 1)) - 1;
    return {PlainHost::function("gmatch", Native::unknown, [state](std::span<const Value>) {
        return with_pattern([&]() -> Values {
            PatternMatcher m(state->text, state->pattern);
            for (; state->from <= state->text.size(); ++state->from) {
                const char* s = m.begin() + state->from;
                const char* e = m.match_at(s);
                if (!e || e == state->last) continue;
                state->from = static_cast<size_t>(e - m.begin());
                state->last = e;
                Values found;
                add_captures(found, m, s, e, true);
                return found;
            }
            return {Value()};
        });
    })};
}

// What stands in the place of a match: by a text with %1, or a table.
std::string replacement(const PatternMatcher& m, const char* s, const char* e, const Value& by) {
    const std::string whole(s, e);
    Value value;
    if (const Table* t = vm::object_as<Table>(by)) {
        value = t->get(captured(m, 0, s, e));
    } else {
        const std::string text = text_of(by);
        std::string made;
        for (size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') {
                made += text[i];
                continue;
            }
            const char c = ++i < text.size() ? text[i] : '\0';
            if (c == '%')
                made += '%';
            else if (c == '0')
                made += whole;
            else if (std::isdigit(static_cast<unsigned char>(c)))
                made += text_of(captured(m, c - '1', s, e));
            else
                throw argument_error("", "invalid use of '%' in replacement string");
        }
        return made;
    }
    if (value.is_nil() || (value.kind() == Value::Kind::boolean && !value.boolean())) return whole;
    if (value.kind() != Value::Kind::string && !value.is_number())
        throw argument_error("", str("invalid replacement value (a ", PlainHost::type_name(value), ")"));
    return text_of(value);
}

Values substituted(std::span<const Value> args) {
    const Arguments a("gsub", args);
    const std::string text = a.text(0), pattern = a.text(1);
    const Value& by = a.at(2);
    if (!by.is_number() && by.kind() != Value::Kind::string && !vm::object_as<Table>(by))
        a.fail(2, str("string/function/table expected, got ", PlainHost::type_name(by)));
    const bool anchored = pattern.starts_with('^');
    const std::string body = anchored ? pattern.substr(1) : pattern;
    const int64_t most = a.integer(3, static_cast<int64_t>(text.size()) + 1);
    return with_pattern([&]() -> Values {
        PatternMatcher m(text, body);
        std::string made;
        int64_t count = 0;
        const char *s = m.begin(), *last = nullptr;
        while (count < most) {
            const char* e = m.match_at(s);
            if (e && e != last) {
                ++count;
                made += replacement(m, s, e, by);
                s = last = e;
            } else if (s < m.end()) {
                made += *s++;
            } else {
                break;
            }
            if (anchored) break;
        }
        made.append(s, m.end());
        return {Value(made), Value(count)};
    });
}

// One conversion of string.format: "%-5.2f" with the letter at the end.
std::string converted(const std::string& spec, const Arguments& a, size_t i) {
    char buffer[512];
    switch (spec.back()) {
        case 'c':
            return std::string(1, static_cast<char>(a.integer(i)));
        case 'd':
        case 'i':
        case 'o':
        case 'u':
        case 'x':
        case 'X':
            std::snprintf(buffer, sizeof buffer, (spec.substr(0, spec.size() - 1) + "ll" + spec.back()).c_str(),
                          static_cast<long long>(a.integer(i)));
            return buffer;
        case 'a':
        case 'A':
        case 'e':
        case 'E':
        case 'f':
        case 'F':
        case 'g':
        case 'G':
            std::snprintf(buffer, sizeof buffer, spec.c_str(), a.number(i));
            return buffer;
        case 'q': {
            const Value& v = a.any(i);
            if (v.kind() == Value::Kind::string) return lua::write_string(v.string());
            if (v.kind() == Value::Kind::integer) return lua::write_number(v.integer());
            return v.kind() == Value::Kind::number ? lua::write_number(v.number()) : text_of(v);
        }
        case 's': {
            const std::string text = text_of(a.any(i));
            if (spec == "%s") return text;
            if (text.size() >= 100 && spec.find('.') == spec.npos) return text;
            std::string padded(std::max<size_t>(text.size(), 100) + 128, '\0');
            padded.resize(static_cast<size_t>(std::snprintf(padded.data(), padded.size(), spec.c_str(), text.c_str())));
            return padded;
        }
        default:
            throw argument_error("", str("invalid conversion '", spec, "' to 'format'"));
    }
}

Values formatted(std::span<const Value> args) {
    const Arguments a("format", args);
    const std::string form = a.text(0);
    std::string made;
    size_t next = 1;
    for (size_t i = 0; i < form.size(); ++i) {
        if (form[i] != '%') {
            made += form[i];
            continue;
        }
        if (i + 1 < form.size() && form[i + 1] == '%') {
            made += form[++i];
            continue;
        }
        // Flags, at most two digits of width and two behind the point, as Lua takes them.
        size_t end = std::min(form.find_first_not_of("-+ #0", i + 1), form.size());
        const auto digits = [&](size_t most) {
            for (size_t k = 0; k < most && end < form.size() && std::isdigit(static_cast<unsigned char>(form[end]));
                 ++k)
                ++end;
        };
        digits(2);
        if (end < form.size() && form[end] == '.') {
            ++end;
            digits(2);
        }
        if (end >= form.size() || end - i > 12)
            throw argument_error("", str("invalid conversion '", form.substr(i, 12), "' to 'format'"));
        if (next >= a.size()) a.fail(next, "no value");
        made += converted(form.substr(i, end + 1 - i), a, next++);
        i = end;
    }
    return {Value(made)};
}

Values repeated(std::span<const Value> args) {
    const Arguments a("rep", args);
    const std::string text = a.text(0), between = a.has(2) ? a.text(2) : "";
    const int64_t n = a.integer(1);
    if (n <= 0) return {Value("")};
    if ((text.size() + between.size()) > 0 && static_cast<uint64_t>(n) > kLongest / (text.size() + between.size()))
        throw argument_error("", "resulting string too large");
    std::string made;
    for (int64_t i = 0; i < n; ++i) made += (i > 0 ? between : "") + text;
    return {Value(made)};
}

LibraryBody mapped(const char* name, int (*f)(int)) {
    return {"string", name, [name, f](std::span<const Value> args) {
                std::string text = Arguments(name, args).text(0);
                for (char& c : text) c = static_cast<char>(f(static_cast<unsigned char>(c)));
                return Values{Value(text)};
            }};
}

Values bytes_of(std::span<const Value> args) {
    const Arguments a("byte", args);
    const std::string text = a.text(0);
    const int64_t from = a.integer(1, 1);
    Values list;
    for (char c : part(text, from, a.integer(2, from))) list.push_back(Value(int64_t{static_cast<unsigned char>(c)}));
    return list;
}

Values of_bytes(std::span<const Value> args) {
    const Arguments a("char", args);
    std::string made;
    for (size_t i = 0; i < a.size(); ++i) {
        const int64_t c = a.integer(i);
        if (c < 0 || c > 255) a.fail(i, "value out of range");
        made += static_cast<char>(c);
    }
    return {Value(made)};
}

}  // namespace

std::vector<LibraryBody> text_functions() {
    return {{"string", "byte", bytes_of},
            {"string", "char", of_bytes},
            {"string", "find", [](std::span<const Value> args) { return search(Arguments("find", args), true); }},
            {"string", "format", formatted},
            {"string", "gmatch", matches},
            {"string", "gsub", substituted, false},
            {"string", "len",
             [](std::span<const Value> args) {
                 return Values{Value(static_cast<int64_t>(Arguments("len", args).text(0).size()))};
             }},
            mapped("lower", std::tolower),
            {"string", "match", [](std::span<const Value> args) { return search(Arguments("match", args), false); }},
            {"string", "rep", repeated},
            {"string", "reverse",
             [](std::span<const Value> args) {
                 std::string text = Arguments("reverse", args).text(0);
                 std::ranges::reverse(text);
                 return Values{Value(text)};
             }},
            {"string", "sub",
             [](std::span<const Value> args) {
                 const Arguments a("sub", args);
                 const std::string text = a.text(0);
                 return Values{Value(part(text, a.integer(1), a.integer(2, -1)))};
             }},
            mapped("upper", std::toupper)};
}

}  // namespace lunaria::runtime
