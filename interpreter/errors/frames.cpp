#include "interpreter/errors/frames.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "interpreter/errors/debugger_stack.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

// The numbers of levels that Lua shows at the beginning and at the end of a long stack.
constexpr size_t kShownFirst = 10, kShownLast = 11;
// Of a very long stack only the levels at both ends are visited: reaching a level takes a step for each above it.
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

// Calls the library's own function, within this call.
int original(lua_State* L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

int gethook(lua_State* L) {
    lua_State* thread = thread_of(L);
    if (lua_gethook(thread) != on_event) return original(L);
    // Lua's own function knows no hook but its own.
    const int mask = lua_gethookmask(thread), count = lua_gethookcount(thread);
    lua_sethook(thread, library_hook(L), mask, count);
    const int results = original(L);
    lua_sethook(thread, on_event, mask, count);
    return results;
}

// Lua's texts for the levels from the first on, each with its line break; for a long stack, only those at its
// beginning.
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

bool is_hidden_frame(lua_State* thread, int level) {
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
        if (!looked_at || !is_hidden_frame(thread, level)) levels.push_back(level);
    }
    return levels;
}

std::vector<int> reported_levels(lua_State* thread, int first) {
    std::vector<int> levels = program_levels(thread), own;
    levels.erase(levels.begin(), levels.begin() + std::min<ptrdiff_t>(first, std::ssize(levels)));
    const int depth = levels.empty() ? 0 : levels.back() + 1;
    bool in_library = false, any = false;
    lua_Debug frame;
    // From the outermost level on: a function of C belongs to its caller.
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
    // The call may have been inlined, so that the line belongs to another function.
    const int line = std::atoi(place.c_str() + before.size());
    return line >= frame.linedefined && line <= frame.lastlinedefined ? line : 0;
}

bool is_watched(lua_State* thread) {
    return lua_gethook(thread) == on_event &&
           (lua_gethookmask(thread) & (LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE)) != 0;
}

namespace {

// Where the argument is a level in the program's count, replaces it by the level in Lua's count.
void use_program_level(lua_State* L, int argument, lua_State* thread) {
    if (State::of(L).prologue_calls == 0 || !lua_isinteger(L, argument)) return;
    const lua_Integer wanted = lua_tointeger(L, argument);
    if (wanted < 0 || wanted > LUAI_MAXSTACK) return;
    int level = static_cast<int>(wanted);
    for (int i = 0; i <= std::min(level, kExamined); ++i)
        if (is_hidden_frame(thread, i)) ++level;
    lua_pushinteger(L, level);
    lua_replace(L, argument);
}

int sethook(lua_State* L) {
    use_as_function(L, lua_isthread(L, 1) ? 2 : 1);
    lua_State* thread = thread_of(L);
    const int results = original(L);
    if (const lua_Hook hook = lua_gethook(thread); hook && hook != on_event) {
        lua_pushlightuserdata(L, reinterpret_cast<void*>(hook));
        lua_rawsetp(L, LUA_REGISTRYINDEX, &library_hook_key);
        lua_sethook(thread, on_event, lua_gethookmask(thread), lua_gethookcount(thread));
    }
    return results;
}

int setlocal(lua_State* L) {
    use_program_level(L, lua_isthread(L, 1) ? 2 : 1, thread_of(L));
    return original(L);
}

size_t parameter_count(const ir::Graph& text) { return text.parameters().size() - text.captures - text.variadic; }

// The name of a parameter of a function that compiled code made; null: it has fewer.
const std::string* name_of_parameter(const ir::Graph& text, lua_Integer number) {
    if (number < 1 || static_cast<size_t>(number) > parameter_count(text)) return nullptr;
    return &text.parameters()[text.captures + static_cast<size_t>(number) - 1]->name;
}

int getlocal(lua_State* L) {
    const int argument = lua_isthread(L, 1) ? 2 : 1;
    use_target(L, argument);
    if (const ir::Graph* text = LuaHost::text_of(L, argument)) {
        const std::string* name = name_of_parameter(*text, luaL_checkinteger(L, argument + 1));
        if (name)
            push(L, std::string_view(*name));
        else
            luaL_pushfail(L);
        return 1;
    }
    use_program_level(L, argument, argument == 2 ? lua_tothread(L, 1) : L);
    return original(L);
}

int type(lua_State* L) {
    if (!is_compiled(L, 1)) return original(L);
    lua_pushstring(L, lua_typename(L, LUA_TFUNCTION));
    return 1;
}

int dump(lua_State* L) {
    use_target(L, 1);
    return original(L);
}

// Whether the upvalue that argument `position` selects in the function at `function` is a hidden one.
bool names_hidden(lua_State* L, int function, int position) {
    int is_integer = 0;
    const lua_Integer wanted = lua_tointegerx(L, position, &is_integer);
    if (!lua_isfunction(L, function) || !is_integer) return false;
    const int hidden = hidden_upvalues(L, function), count = hidden ? upvalue_count(L, function) : 0;
    return hidden && wanted > count - hidden && wanted <= count;
}

int getupvalue(lua_State* L) {
    use_target(L, 1);
    return names_hidden(L, 1, 2) ? 0 : original(L);
}

int setupvalue(lua_State* L) {
    use_target(L, 1);
    luaL_checkany(L, 3);
    return names_hidden(L, 1, 2) ? 0 : original(L);
}

int upvalueid(lua_State* L) {
    use_target(L, 1);
    if (!names_hidden(L, 1, 2)) return original(L);
    luaL_pushfail(L);
    return 1;
}

int upvaluejoin(lua_State* L) {
    use_target(L, 1);
    use_target(L, 3);
    for (int i : {2, 4}) luaL_argcheck(L, !names_hidden(L, i - 1, i), i, "invalid upvalue index");
    return original(L);
}

void set_number(lua_State* L, const char* key, size_t number) {
    if (lua_getfield(L, -1, key) == LUA_TNUMBER) {
        lua_pushinteger(L, static_cast<lua_Integer>(number));
        lua_setfield(L, -3, key);
    }
    lua_pop(L, 1);
}

// Lua takes a function that compiled code made for one of C; in the table on top of the stack, those of the fields that
// are there become what the function's text says.
void describe_text(lua_State* L, const ir::Graph& text) {
    if (lua_getfield(L, -1, "what") == LUA_TSTRING) {
        const std::string place = text.span.chunk ? *text.span.chunk : "?";
        const std::pair<const char*, std::string> texts[] = {
            {"what", "Lua"}, {"source", "@" + place}, {"short_src", place}};
        for (const auto& [key, value] : texts) {
            push(L, std::string_view(value));
            lua_setfield(L, -3, key);
        }
    }
    lua_pop(L, 1);
    set_number(L, "linedefined", static_cast<size_t>(text.span.line));
    set_number(L, "nparams", parameter_count(text));
    set_number(L, "nups", text.captures);
    if (lua_getfield(L, -1, "isvararg") == LUA_TBOOLEAN) {
        lua_pushboolean(L, text.variadic);
        lua_setfield(L, -3, "isvararg");
    }
    lua_pop(L, 1);
}

int getinfo(lua_State* L) {
    // The function is found before Lua's own function checks the arguments and moves them.
    const int first = lua_isthread(L, 1) ? 2 : 1;
    use_target(L, first);
    lua_State* thread = first == 2 ? lua_tothread(L, 1) : L;
    int hidden = 0, line = 0;
    lua_Debug frame;
    use_program_level(L, first, thread);
    const ir::Graph* text = LuaHost::text_of(L, first);
    if (lua_isfunction(L, first)) {
        hidden = hidden_upvalues(L, first);
    } else if (lua_isinteger(L, first) && lua_tointeger(L, first) >= 0 && lua_tointeger(L, first) <= LUAI_MAXSTACK &&
               lua_checkstack(thread, 2) && lua_getstack(thread, static_cast<int>(lua_tointeger(L, first)), &frame)) {
        lua_getinfo(thread, "f", &frame);
        hidden = hidden_upvalues(thread, -1);
        lua_pop(thread, 1);
        line = compiled_line(thread, static_cast<int>(lua_tointeger(L, first)));
    }
    const int count = original(L);
    if (text && lua_istable(L, -1)) describe_text(L, *text);
    if (!hidden || !lua_istable(L, -1)) return count;
    if (lua_getfield(L, -1, "nups") == LUA_TNUMBER) {
        lua_pushinteger(L, lua_tointeger(L, -1) - hidden);
        lua_setfield(L, -3, "nups");
    }
    lua_pop(L, 1);
    if (line > 0 && lua_getfield(L, -1, "currentline") == LUA_TNUMBER) {
        lua_pushinteger(L, line);
        lua_setfield(L, -3, "currentline");
    }
    lua_settop(L, -1 - (line > 0));
    return count;
}

}  // namespace

void install_frames(lua_State* L) {
    replace_functions(L, {{LUA_GNAME, "type", protect<type>},
                          {LUA_STRLIBNAME, "dump", protect<dump>},
                          {LUA_DBLIBNAME, "traceback", protect<traceback>},
                          {LUA_DBLIBNAME, "gethook", protect<gethook>},
                          {LUA_DBLIBNAME, "sethook", protect<sethook>},
                          {LUA_DBLIBNAME, "getlocal", protect<getlocal>},
                          {LUA_DBLIBNAME, "setlocal", protect<setlocal>},
                          {LUA_DBLIBNAME, "getupvalue", protect<getupvalue>},
                          {LUA_DBLIBNAME, "setupvalue", protect<setupvalue>},
                          {LUA_DBLIBNAME, "upvalueid", protect<upvalueid>},
                          {LUA_DBLIBNAME, "upvaluejoin", protect<upvaluejoin>},
                          {LUA_DBLIBNAME, "getinfo", protect<getinfo>}});
}

}  // namespace lunaria
