#include "interpreter/loader/frames.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "interpreter/debugger/debugger_stack.h"
#include "interpreter/host/callables.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"

namespace lunaria {

namespace {

// How many levels Lua shows at the beginning and at the end of a long stack.
constexpr size_t kShownFirst = 10, kShownLast = 11;
// Of a very long stack only the levels at either end are looked at: to reach one takes a step for each above it.
constexpr int kExamined = 1000, kExaminedLast = 40;
constexpr std::string_view kFrame = "\n\t", kTailCall = "\n\t(...tail calls...)";

int library_hook_key;

lua_Hook library_hook(lua_State* L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &library_hook_key);
    const auto hook = reinterpret_cast<lua_Hook>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return hook;
}

void on_event(lua_State* L, lua_Debug* event) {
    if (event->event != LUA_HOOKLINE && event->event != LUA_HOOKCOUNT) {
        lua_getinfo(L, "n", event);
        if (is_entry_call(*event)) return;
    }
    library_hook(L)(L, event);
}

lua_State* thread_of(lua_State* L) { return lua_isthread(L, 1) ? lua_tothread(L, 1) : L; }

int original(lua_State* L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

int gethook(lua_State* L) {
    lua_State* thread = thread_of(L);
    if (lua_gethook(thread) != on_event) return original(L);
    // Lua's own knows no hook but its own.
    const int mask = lua_gethookmask(thread), count = lua_gethookcount(thread);
    lua_sethook(thread, library_hook(L), mask, count);
    const int results = original(L);
    lua_sethook(thread, on_event, mask, count);
    return results;
}

int setlocal(lua_State* L) {
    use_program_level(L, lua_isthread(L, 1) ? 2 : 1, thread_of(L));
    return original(L);
}

// What Lua writes about the levels from the first on, each with its line break; of a long stack those of its beginning.
std::vector<std::string> described(lua_State* L, lua_State* thread, int first) {
    luaL_traceback(L, thread, nullptr, first);
    const std::string text = lua_tostring(L, -1);
    lua_pop(L, 1);
    std::vector<std::string> frames;
    for (size_t at = text.find(kFrame); at != std::string::npos && frames.size() < kShownFirst;) {
        size_t end = text.find(kFrame, at + 1);
        if (end != std::string::npos && std::string_view(text).substr(end).starts_with(kTailCall))
            end = text.find(kFrame, end + 1);
        frames.push_back(text.substr(at, end == std::string::npos ? end : end - at));
        at = end;
    }
    return frames;
}

void set_line(std::string& frame, lua_State* thread, int level, int line) {
    lua_Debug record;
    lua_getstack(thread, level, &record);
    lua_getinfo(thread, "Sl", &record);
    const std::string before = str(kFrame, record.short_src, ":", record.currentline, ":");
    if (frame.starts_with(before)) frame.replace(0, before.size(), str(kFrame, record.short_src, ":", line, ":"));
}

int traceback(lua_State* L) {
    lua_State* thread = thread_of(L);
    const int message = lua_isthread(L, 1) ? 2 : 1;
    if (!lua_isstring(L, message) && !lua_isnoneornil(L, message)) return original(L);
    const auto first = static_cast<size_t>(std::max<lua_Integer>(0, luaL_optinteger(L, message + 1, L == thread)));
    const std::vector<int> levels = program_levels(thread);
    if (levels.empty() || static_cast<size_t>(levels.back()) + 1 == levels.size()) return original(L);

    std::string text = lua_isstring(L, message) ? str(lua_tostring(L, message), "\n") : std::string();
    text += "stack traceback:";
    std::vector<std::string> frames;
    int begin = 0;
    const size_t shown = levels.size() - std::min(first, levels.size());
    for (size_t i = first; i < levels.size(); ++i) {
        if (shown > kShownFirst + kShownLast + 1 && i == first + kShownFirst) {
            const size_t skipped = shown - kShownFirst - kShownLast - 1;
            text += str("\n\t...\t(skipping ", skipped, " levels)");
            i += skipped;
            continue;
        }
        if (levels[i] - begin >= static_cast<int>(frames.size())) frames = described(L, thread, begin = levels[i]);
        std::string& frame = frames.at(static_cast<size_t>(levels[i] - begin));
        if (const int line = compiled_line(thread, levels[i])) set_line(frame, thread, levels[i], line);
        text += frame;
    }
    lua_pushlstring(L, text.data(), text.size());
    return 1;
}

bool is_hidden(lua_State* thread, int level) {
    lua_Debug frame;
    if (!lua_getstack(thread, level, &frame)) return false;
    lua_getinfo(thread, "n", &frame);
    return is_entry_call(frame);
}

}  // namespace

std::vector<int> program_levels(lua_State* thread) {
    std::vector<int> levels;
    const int depth = stack_depth(thread);
    const bool any = State::of(thread).prologue_calls > 0;
    for (int level = 0; level < depth; ++level) {
        const bool looked_at = any && (level < kExamined || level >= depth - kExaminedLast);
        if (!looked_at || !is_hidden(thread, level)) levels.push_back(level);
    }
    return levels;
}

std::vector<int> reported_levels(lua_State* thread, int first) {
    std::vector<int> levels = program_levels(thread), own;
    levels.erase(levels.begin(), levels.begin() + std::min<ptrdiff_t>(first, std::ssize(levels)));
    const int depth = levels.empty() ? 0 : levels.back() + 1;
    bool in_library = false, any = false;
    lua_Debug frame;
    // From the outermost: a function of C belongs to what calls it.
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        if (*level < kExamined || *level >= depth - kExaminedLast) {
            lua_getstack(thread, *level, &frame);
            lua_getinfo(thread, "Sn", &frame);
            const bool in_c = *frame.what == 'C';
            if (in_c && !*frame.namewhat) continue;
            if (!in_c) in_library = is_library({frame.source, frame.srclen});
            if (in_library && !logs(LogTopic::library)) continue;
            any |= !in_c;
        }
        own.push_back(*level);
    }
    std::ranges::reverse(own);
    return any ? own : levels;
}

int compiled_line(lua_State* thread, int level) {
    lua_Debug call, frame;
    const LuaHost* host = LuaHost::existing(thread);
    if (!host || State::of(thread).prologue_calls == 0 || level == 0 || !lua_getstack(thread, level - 1, &call) ||
        !lua_getstack(thread, level, &frame))
        return 0;
    lua_getinfo(thread, "n", &call);
    if (!is_entry_call(call)) return 0;
    const std::string place = host->place_of(call.i_ci);
    lua_getinfo(thread, "S", &frame);
    const std::string before = str(frame.short_src, ":");
    if (!place.starts_with(before)) return 0;
    // A function that it calls may have become a part of it.
    const int line = std::atoi(place.c_str() + before.size());
    return line >= frame.linedefined && line <= frame.lastlinedefined ? line : 0;
}

void use_program_level(lua_State* L, int argument, lua_State* thread) {
    if (State::of(L).prologue_calls == 0 || !lua_isinteger(L, argument)) return;
    const lua_Integer wanted = lua_tointeger(L, argument);
    if (wanted < 0 || wanted > LUAI_MAXSTACK) return;
    int level = static_cast<int>(wanted);
    for (int i = 0; i <= std::min(level, kExamined); ++i)
        if (is_hidden(thread, i)) ++level;
    lua_pushinteger(L, level);
    lua_replace(L, argument);
}

int set_program_hook(lua_State* L, lua_CFunction original) {
    lua_State* thread = thread_of(L);
    const int results = original(L);
    if (const lua_Hook hook = lua_gethook(thread); hook && hook != on_event) {
        lua_pushlightuserdata(L, reinterpret_cast<void*>(hook));
        lua_rawsetp(L, LUA_REGISTRYINDEX, &library_hook_key);
        lua_sethook(thread, on_event, lua_gethookmask(thread), lua_gethookcount(thread));
    }
    return results;
}

bool is_watched(lua_State* thread) {
    return lua_gethook(thread) == on_event &&
           (lua_gethookmask(thread) & (LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE)) != 0;
}

void install_frames(lua_State* L) {
    replace_functions(L, {{LUA_DBLIBNAME, "traceback", protect<traceback>},
                          {LUA_DBLIBNAME, "gethook", protect<gethook>},
                          {LUA_DBLIBNAME, "setlocal", protect<setlocal>}});
}

}  // namespace lunaria
