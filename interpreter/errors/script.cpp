#include "interpreter/errors/script.h"

#include "core/base/interrupt.h"
#include "interpreter/display/pretty.h"
#include "interpreter/errors/debugger_stack.h"
#include "interpreter/errors/error_hints.h"
#include "interpreter/errors/error_report.h"
#include "interpreter/errors/frames.h"
#include "interpreter/events.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

constexpr size_t kShownAtEitherEnd = 12;

// A line of source below its frame.
std::string indented(std::string_view line) {
    const size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) return {};
    line.remove_prefix(start);
    const bool cut = line.size() > 120;
    return str("\n\t\t", line.substr(0, 120), cut ? "..." : "");
}

std::string line_of_script(State& state, const lua_Debug& frame) {
    const auto lines = source_lines(state, std::string(frame.source, frame.srclen));
    const auto at = static_cast<size_t>(frame.currentline) - 1;
    return frame.currentline > 0 && at < lines.size() ? indented(lines[at]) : std::string();
}

// `line`: its line, if Lua does not know it.
std::string describe_frame(State& state, lua_State* L, lua_Debug& frame, int line) {
    lua_getinfo(L, "Slnt", &frame);
    if (line > 0) frame.currentline = line;
    std::string text = str("\n\t", frame.short_src, ":");
    if (frame.currentline > 0) text += str(frame.currentline, ":");
    if (*frame.namewhat)
        text += str(" in ", frame.namewhat, " '", frame.name, "'");
    else if (*frame.what == 'm')
        text += " in main chunk";
    else if (*frame.what == 'C')
        text += " in ?";
    else
        text += str(" in function <", frame.short_src, ":", frame.linedefined, ">");
    if (frame.istailcall) text += "\n\t(...tail calls...)";
    return text + line_of_script(state, frame);
}

std::string stack_text(State& state, lua_State* L) {
    lua_Debug frame;
    const std::vector<ErrorFrame> machine = take_machine_frames(L);
    const std::vector<int> levels = reported_levels(L, 1);
    const size_t depth = machine.size() + levels.size();
    std::string text = "stack traceback:";
    bool any_line = false;
    for (size_t i = 0; i < depth; ++i) {
        if (i == kShownAtEitherEnd && depth - i > kShownAtEitherEnd + 1) {
            text += str("\n\t...\t(skipping ", depth - kShownAtEitherEnd - i, " levels)");
            i = depth - kShownAtEitherEnd;
        }
        if (i < machine.size()) {
            const ErrorFrame& f = machine[i];
            text += str("\n\t", f.source, ":", f.line, ": in ", f.function, indented(f.text));
            any_line = true;
            continue;
        }
        const int at = levels[i - machine.size()];
        lua_getstack(L, at, &frame);
        text += describe_frame(state, L, frame, compiled_line(L, at));
        any_line |= frame.currentline > 0;
    }
    // A text that did not compile, or a missing file, has no Lua function to point to.
    return any_line ? text : std::string();
}

// The message handler; upvalue 1 is the outcome to fill in.
int note_script_error(lua_State* L) {
    auto& outcome = *static_cast<Outcome*>(lua_touserdata(L, lua_upvalueindex(1)));
    lua_settop(L, 1);
    outcome.message = with_hint(L, error_text(L));
    lua_pushvalue(L, 1);
    State::of(L).events().on_error(L, true);
    outcome.traceback = stack_text(State::of(L), L);
    lua_settop(L, 1);
    return 1;
}

int call_body(lua_State* L) {
    const auto& body = *static_cast<const std::function<void(lua_State*)>*>(lua_touserdata(L, 1));
    lua_settop(L, 0);
    body(L);
    return lua_gettop(L);
}

}  // namespace

std::string error_text(lua_State* L) {
    if (const char* text = lua_tostring(L, -1)) return text;
    const PrettyOptions few{.width = 100, .depth = 3, .entries = 20, .total = 60, .text = 400};
    if (luaL_getmetafield(L, -1, "__tostring") != LUA_TNIL) {
        lua_pop(L, 1);
        return pretty(L, -1, few);
    }
    if (!lua_istable(L, -1)) return str("(error object is a ", luaL_typename(L, -1), " value)");
    // Lua puts a place in front of texts only.
    const std::string text = pretty(L, -1, few);
    const bool one_line = text.find('\n') == std::string::npos;
    return str(current_place(L), one_line ? "error object " : "the error object is a table:\n", text);
}

void push_message_handler(lua_State* L, Outcome& outcome) {
    lua_pushlightuserdata(L, &outcome);
    lua_pushcclosure(L, protect<note_script_error>, 1);
}

Outcome call_protected(State& state, int arguments, int results) {
    lua_State* L = state.lua();
    Outcome outcome;
    const int base = lua_gettop(L) - arguments;
    push_message_handler(L, outcome);
    lua_insert(L, base);
    const int status = lua_pcall(L, arguments, results, base);
    lua_remove(L, base);
    state.closers().settle();
    if (status == LUA_OK) return outcome;
    outcome.ok = false;
    // Errors for lack of memory and in the message handler itself do not pass through the handler.
    if (outcome.message.empty()) outcome.message = error_text(L);
    lua_pop(L, 1);
    outcome.interrupted = interrupt_requested();
    if (outcome.interrupted && status == LUA_ERRMEM) outcome.message = kRefusedMemory;
    return outcome;
}

Outcome run_protected(State& state, const std::function<void(lua_State*)>& body) {
    lua_State* L = state.lua();
    lua_pushcfunction(L, protect<call_body>);
    lua_pushlightuserdata(L, const_cast<std::function<void(lua_State*)>*>(&body));
    return call_protected(state, 1, LUA_MULTRET);
}

}  // namespace lunaria
