#include "interpreter/library/patterns.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string_view>

#include "core/base/interrupt.h"
#include "interpreter/protect.h"
#include "interpreter/values/callables.h"
#include "jit/pattern_matcher.h"

namespace lunaria {

namespace {

using Capture = PatternMatcher::Capture;

// As in Lua's library.
constexpr size_t kLongestText = static_cast<size_t>(std::numeric_limits<int>::max());
// The number of bytes between two looks at an interrupt when a text is repeated.
constexpr size_t kCopied = size_t{1} << 18;

// An error in a pattern is reported like one in the call of a function of Lua's library.
template <lua_CFunction F>
int with_pattern(lua_State* L) {
    try {
        return F(L);
    } catch (const PatternError& e) {
        return luaL_error(L, "%s", e.what());
    }
}

std::string_view check_text(lua_State* L, int index) {
    size_t size = 0;
    const char* text = luaL_checklstring(L, index, &size);
    return {text, size};
}

// The start of a search, counted from 0; past the end when it is further.
size_t start_of(lua_State* L, int index, size_t size) {
    const lua_Integer at = luaL_optinteger(L, index, 1);
    if (at > 0) return static_cast<size_t>(at) - 1;
    if (at == 0 || at < -static_cast<lua_Integer>(size)) return 0;
    return size - static_cast<size_t>(-at);
}

// Capture i of a match, or all of it where there are none: as text, or pushed as a position.
std::optional<std::string_view> captured(lua_State* L, const PatternMatcher& m, int i, const char* s, const char* e) {
    if (i >= m.captures()) {
        if (i > 0) luaL_error(L, "invalid capture index %%%d", i + 1);
        return std::string_view(s, static_cast<size_t>(e - s));
    }
    const Capture& c = m.capture(i);
    if (c.length == Capture::kOpen) luaL_error(L, "unfinished capture");
    if (c.length != Capture::kPosition) return std::string_view(c.begin, static_cast<size_t>(c.length));
    lua_pushinteger(L, c.begin - m.begin() + 1);
    return std::nullopt;
}

void push_capture(lua_State* L, const PatternMatcher& m, int i, const char* s, const char* e) {
    if (const auto text = captured(L, m, i, s, e)) lua_pushlstring(L, text->data(), text->size());
}

// With `whole`, all of the match where there are no captures.
int push_captures(lua_State* L, const PatternMatcher& m, const char* s, const char* e, bool whole) {
    const int count = m.captures() == 0 && whole ? 1 : m.captures();
    luaL_checkstack(L, count, "too many captures");
    for (int i = 0; i < count; ++i) push_capture(L, m, i, s, e);
    return count;
}

int search(lua_State* L, bool is_find) {
    const std::string_view text = check_text(L, 1);
    std::string_view pattern = check_text(L, 2);
    const size_t start = start_of(L, 3, text.size());
    if (start > text.size()) {
        luaL_pushfail(L);
        return 1;
    }
    if (is_find && (lua_toboolean(L, 4) || pattern.find_first_of("^$*+?.([%-") == std::string_view::npos)) {
        const char* from = text.data() + start;
        // In time that grows with the sum of both sizes, not with their product.
        const void* found = memmem(from, text.size() - start, pattern.data(), pattern.size());
        if (!found) {
            luaL_pushfail(L);
            return 1;
        }
        const auto at = static_cast<const char*>(found) - text.data();
        lua_pushinteger(L, at + 1);
        lua_pushinteger(L, at + static_cast<std::ptrdiff_t>(pattern.size()));
        return 2;
    }
    const bool anchored = pattern.starts_with('^');
    if (anchored) pattern.remove_prefix(1);
    PatternMatcher m(text, pattern);
    for (const char* s = m.begin() + start; s <= m.end(); ++s) {
        if (const char* e = m.match_at(s)) {
            if (!is_find) return push_captures(L, m, s, e, true);
            lua_pushinteger(L, s - m.begin() + 1);
            lua_pushinteger(L, e - m.begin());
            return push_captures(L, m, s, e, false) + 2;
        }
        if (anchored) break;
    }
    luaL_pushfail(L);
    return 1;
}

int find(lua_State* L) { return search(L, true); }
int match(lua_State* L) { return search(L, false); }

// The state of gmatch; its texts are upvalues.
struct Progress {
    PatternMatcher matcher;
    const char* at;
    const char* last;  // the end of the last match, which an empty one must not repeat
};

int next_match(lua_State* L) {
    auto& p = *static_cast<Progress*>(lua_touserdata(L, lua_upvalueindex(3)));
    for (const char* s = p.at; s <= p.matcher.end(); ++s) {
        const char* e = p.matcher.match_at(s);
        if (!e || e == p.last) continue;
        p.at = p.last = e;
        return push_captures(L, p.matcher, s, e, true);
    }
    return 0;
}

int gmatch(lua_State* L) {
    const std::string_view text = check_text(L, 1), pattern = check_text(L, 2);
    const size_t start = std::min(start_of(L, 3, text.size()), text.size() + 1);
    lua_settop(L, 2);
    new (lua_newuserdatauv(L, sizeof(Progress), 0)) Progress{{text, pattern}, text.data() + start, nullptr};
    lua_pushcclosure(L, protect<with_pattern<next_match>>, 3);
    return 1;
}

void add_replacement_text(lua_State* L, luaL_Buffer& result, const PatternMatcher& m, const char* s, const char* e) {
    size_t size = 0;
    const char* text = lua_tolstring(L, 3, &size);
    for (const char* end = text + size; text < end;) {
        const auto* sign = static_cast<const char*>(std::memchr(text, '%', static_cast<size_t>(end - text)));
        const char* plain_end = sign ? sign : end;
        luaL_addlstring(&result, text, static_cast<size_t>(plain_end - text));
        if (!sign) return;
        const char what = sign[1];
        text = sign + 2;
        if (what == '%') {
            luaL_addchar(&result, '%');
        } else if (what == '0') {
            luaL_addlstring(&result, s, static_cast<size_t>(e - s));
        } else if (std::isdigit(static_cast<unsigned char>(what))) {
            if (const auto part = captured(L, m, what - '1', s, e))
                luaL_addlstring(&result, part->data(), part->size());
            else
                luaL_addvalue(&result);
        } else {
            luaL_error(L, "invalid use of '%%' in replacement string");
        }
    }
}

// Whether a replacement took the place of the match.
bool add_replacement(lua_State* L, luaL_Buffer& result, const PatternMatcher& m, const char* s, const char* e) {
    switch (lua_type(L, 3)) {
        case LUA_TFUNCTION:
            lua_pushvalue(L, 3);
            lua_call(L, push_captures(L, m, s, e, true), 1);
            break;
        case LUA_TTABLE:
            push_capture(L, m, 0, s, e);
            lua_gettable(L, 3);
            break;
        default:
            add_replacement_text(L, result, m, s, e);
            return true;
    }
    if (!lua_toboolean(L, -1)) {
        lua_pop(L, 1);
        luaL_addlstring(&result, s, static_cast<size_t>(e - s));
        return false;
    }
    if (!lua_isstring(L, -1)) luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
    luaL_addvalue(&result);
    return true;
}

int gsub(lua_State* L) {
    const std::string_view text = check_text(L, 1);
    std::string_view pattern = check_text(L, 2);
    use_as_function(L, 3);
    const int kind = lua_type(L, 3);
    luaL_argexpected(L, kind == LUA_TNUMBER || kind == LUA_TSTRING || kind == LUA_TFUNCTION || kind == LUA_TTABLE, 3,
                     "string/function/table");
    const lua_Integer most = luaL_optinteger(L, 4, static_cast<lua_Integer>(text.size()) + 1);
    const bool anchored = pattern.starts_with('^');
    if (anchored) pattern.remove_prefix(1);
    PatternMatcher m(text, pattern);
    const char* s = m.begin();
    const char* last = nullptr;  // the end of the last match
    lua_Integer count = 0;
    bool changed = false;
    luaL_Buffer result;
    luaL_buffinit(L, &result);
    while (count < most) {
        const char* e = m.match_at(s);
        if (e && e != last) {
            ++count;
            changed = add_replacement(L, result, m, s, e) || changed;
            s = last = e;
        } else if (s < m.end()) {
            luaL_addchar(&result, *s++);
        } else {
            break;
        }
        if (anchored) break;
    }
    if (changed) {
        luaL_addlstring(&result, s, static_cast<size_t>(m.end() - s));
        luaL_pushresult(&result);
    } else {
        lua_pushvalue(L, 1);
    }
    lua_pushinteger(L, count);
    return 2;
}

// As in Lua's library, but by doubling, in few copies: even a long string takes little time.
int repeat(lua_State* L) {
    const std::string_view text = check_text(L, 1);
    const lua_Integer count = luaL_checkinteger(L, 2);
    size_t gap_size = 0;
    const char* gap = luaL_optlstring(L, 3, "", &gap_size);
    if (count <= 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    const size_t piece = text.size() + gap_size, times = static_cast<size_t>(count);
    if (piece < text.size() || piece > kLongestText / times) return luaL_error(L, "resulting string too large");
    const size_t size = times * piece - gap_size;
    luaL_Buffer result;
    char* to = luaL_buffinitsize(L, &result, size);
    const size_t first = std::min(piece, size);
    std::copy(text.begin(), text.end(), to);
    std::copy_n(gap, first - text.size(), to + text.size());
    for (size_t done = first; done < size;) {
        poll_interrupt();
        // Whole copies, few enough to stay in the cache.
        const size_t some = std::max(piece, std::min(done, kCopied / std::max<size_t>(1, piece) * piece));
        const size_t next = std::min(some, size - done);
        std::memcpy(to + done, to, next);
        done += next;
    }
    luaL_pushresultsize(&result, size);
    return 1;
}

}  // namespace

void install_patterns(lua_State* L) {
    lua_getglobal(L, LUA_STRLIBNAME);
    const std::pair<const char*, lua_CFunction> functions[] = {{"find", protect<with_pattern<find>>},
                                                               {"match", protect<with_pattern<match>>},
                                                               {"gmatch", protect<gmatch>},
                                                               {"gsub", protect<with_pattern<gsub>>},
                                                               {"rep", protect<repeat>}};
    for (auto [name, function] : functions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    lua_pop(L, 1);
}

}  // namespace lunaria
