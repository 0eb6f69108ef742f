#include "interpreter/errors/error_report.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/log.h"
#include "core/base/printable.h"
#include "interpreter/display/pretty.h"
#include "interpreter/errors/debugger_stack.h"
#include "interpreter/errors/error_hints.h"
#include "interpreter/errors/script.h"
#include "interpreter/events.h"
#include "interpreter/loader/cell.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"

namespace lunaria {

namespace {

constexpr int kFramesKept = 64;
constexpr std::string_view kCommandsChunks[] = {"@lunaria:lunaria/commands.lua", "@lunaria:lunaria/run_notebook.lua"};
constexpr const char* kPostMortem = "lunaria.post_mortem";
constexpr const char* kMachineFrames = "lunaria.machine_frames";

std::string_view line_of(std::string_view text, int line) {
    for (int at = 1; at < line; ++at) {
        const size_t end = text.find('\n');
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + 1);
    }
    return text.substr(0, text.find_first_of("\r\n"));
}

std::string source_line(State& state, const lua_Debug& frame) {
    const auto texts = state.loader().sources({frame.source, frame.srclen});
    if (texts.empty() || frame.currentline <= 0) return {};
    return as_typed(std::string(line_of(texts.front(), frame.currentline))).substr(0, 400);
}

std::string name_of_function(const lua_Debug& frame) {
    if (*frame.namewhat) return str(frame.namewhat, " '", frame.name, "'");
    if (*frame.what == 'm') return "main chunk";
    if (*frame.what == 'C') return "builtin function";
    return str("function at line ", frame.linedefined);
}

// Appends {name =, value =, kind =} of the value on top of the stack, which is popped, to the list below it.
void add_variable(lua_State* L, const char* name, const char* kind) {
    lua_createtable(L, 0, 3);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, kind);
    lua_setfield(L, -2, "kind");
    lua_insert(L, -2);
    lua_setfield(L, -2, "value");
    lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
}

void push_variables(lua_State* L, lua_Debug& frame) {
    lua_newtable(L);
    for (int i = 1; const char* name = lua_getlocal(L, &frame, i); ++i) {
        if (*name == '(' || std::strcmp(name, "__cell") == 0)
            lua_pop(L, 1);
        else
            add_variable(L, name, "local");
    }
    lua_getinfo(L, "f", &frame);
    for (int i = 1; const char* name = get_upvalue(L, -1, i); ++i) {
        if (!*name || std::strcmp(name, "_ENV") == 0) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushvalue(L, -3);
        lua_insert(L, -2);
        add_variable(L, name, "upvalue");
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

// Pushes {name =, source =, chunk =, line =, text =, variables =}; the table of variables is on top and popped.
void push_frame(lua_State* L, const ErrorFrame& frame, const std::string& chunk) {
    lua_createtable(L, 0, 6);
    lua_insert(L, -2);
    lua_setfield(L, -2, "variables");
    for (const auto& [name, text] :
         {std::pair{"name", &frame.function}, {"source", &frame.source}, {"chunk", &chunk}, {"text", &frame.text}}) {
        lua_pushlstring(L, text->data(), text->size());
        lua_setfield(L, -2, name);
    }
    lua_pushinteger(L, frame.line);
    lua_setfield(L, -2, "line");
}

std::string text_of(lua_State* L, const char* name) {
    lua_getfield(L, -1, name);
    const char* text = lua_tostring(L, -1);
    std::string result = text ? text : "";
    lua_pop(L, 1);
    return result;
}

// Appends the machine's frames of the error, the innermost ones, to the list on top of the stack.
void note_machine_frames(lua_State* L, ErrorReport& report) {
    lua_getfield(L, LUA_REGISTRYINDEX, kMachineFrames);
    const size_t count = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
    for (size_t i = 1; i <= count; ++i) {
        lua_rawgeti(L, -1, static_cast<lua_Integer>(i));
        ErrorFrame frame{text_of(L, "name"), text_of(L, "source"), 0, text_of(L, "text")};
        lua_getfield(L, -1, "line");
        frame.line = static_cast<int>(lua_tointeger(L, -1));
        lua_pop(L, 1);
        report.frames.push_back(std::move(frame));
        lua_rawseti(L, -3, static_cast<lua_Integer>(report.frames.size()));
    }
    lua_pop(L, 1);
    forget_machine_frames(L);
}

// Appends frames to the list on top of the stack: those of the library, or the others.
void note_lua_frames(lua_State* L, bool library, ErrorReport& report) {
    State& state = State::of(L);
    const bool all = logs(LogTopic::library);
    lua_Debug frame;
    bool stood_for = false;
    for (int level = 1; level <= kFramesKept && lua_getstack(L, level, &frame); ++level) {
        lua_getinfo(L, "Slnt", &frame);
        if (std::exchange(stood_for, is_entry_call(frame)) || stood_for) continue;
        // Below the cell there is only the session itself, and commands are a part of it.
        if (*frame.what == 'C' && !*frame.namewhat) continue;
        const std::string chunk(frame.source, frame.srclen);
        if (std::ranges::find(kCommandsChunks, chunk) != std::end(kCommandsChunks)) continue;
        if (*frame.what != 'C' && is_library(chunk) != library && !all) continue;
        report.frames.push_back(
            {name_of_function(frame), frame.short_src, std::max(frame.currentline, 0), source_line(state, frame)});
        push_variables(L, frame);
        push_frame(L, report.frames.back(), chunk);
        lua_rawseti(L, -2, static_cast<lua_Integer>(report.frames.size()));
    }
}

void note_frames(lua_State* L, ErrorReport& report) {
    auto has_line = [&] { return std::ranges::any_of(report.frames, [](const ErrorFrame& f) { return f.line > 0; }); };
    lua_newtable(L);
    note_machine_frames(L, report);
    note_lua_frames(L, false, report);
    // Frames of the library are better than none.
    if (!has_line()) note_lua_frames(L, true, report);
    // An error in a command itself does not hide the error before.
    if (!has_line())
        lua_pop(L, 1);
    else
        lua_setfield(L, LUA_REGISTRYINDEX, kPostMortem);
}

int note_error(lua_State* L) {
    auto& report = *static_cast<ErrorReport*>(lua_touserdata(L, lua_upvalueindex(1)));
    lua_settop(L, 1);
    report.message = printable(with_hint(L, error_text(L)));
    report.frames.clear();
    luaL_checkstack(L, 20, "no room for a traceback");
    lua_pushvalue(L, 1);
    State::of(L).events().on_error(L, true);
    note_frames(L, report);
    lua_settop(L, 1);
    return 1;
}

// "In[3]:2: matmul: ..." without its place, if that is the place of the innermost frame with a line.
std::string_view without_place(std::string_view message, const ErrorFrame& frame) {
    const std::string place = str(frame.source, ":", frame.line, ": ");
    return message.starts_with(place) ? message.substr(place.size()) : message;
}

// The position in the line of the failing name: the function with which the message begins, or the variable that it
// quotes as Lua does ("local 'x'"). npos unless the line has it exactly once.
size_t find_culprit(std::string_view line, std::string_view message, size_t& length) {
    std::string_view word = message.substr(0, message.find_first_of(": \n"));
    const size_t quote = message.find(" '");
    const bool quoted_name = message.starts_with("attempt to") && quote != std::string_view::npos;
    if (quoted_name) word = message.substr(quote + 2, message.find('\'', quote + 2) - quote - 2);
    if (word.empty() || (!quoted_name && (word.size() >= message.size() || message[word.size()] != ':')))
        return std::string_view::npos;
    length = word.size();
    auto is_part = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    size_t found = std::string_view::npos;
    for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
        if (at > 0 && is_part(line[at - 1])) continue;
        if (at + word.size() < line.size() && is_part(line[at + word.size()])) continue;
        if (found != std::string_view::npos) return std::string_view::npos;
        found = at;
    }
    return found;
}

// A line of source for display: tabs as one space, so that carets are below their targets.
std::string excerpt(std::string line, size_t& margin) {
    std::replace(line.begin(), line.end(), '\t', ' ');
    margin = std::min(line.find_first_not_of(' '), line.size());
    return line.substr(margin);
}

}  // namespace

bool call_reported(lua_State* L, int arguments, int results, ErrorReport& report) {
    const int base = lua_gettop(L) - arguments;
    lua_pushlightuserdata(L, &report);
    lua_pushcclosure(L, protect<note_error>, 1);
    lua_insert(L, base);
    const int status = lua_pcall(L, arguments, results, base);
    lua_remove(L, base);
    if (status == LUA_OK) return true;
    // An error for lack of memory does not pass through the handler, nor does an error within it.
    if (report.message.empty()) report.message = printable(error_text(L));
    lua_pop(L, 1);
    if (interrupt_requested()) {
        report.kind = ErrorReport::Kind::interrupt;
        if (status == LUA_ERRMEM) report.message = kRefusedMemory;
    } else if (status == LUA_ERRMEM)
        report.kind = ErrorReport::Kind::memory;
    return false;
}

namespace {

std::string name_in_report(const StackFrame& frame) {
    if (frame.backward) return "the derivative of " + frame.function;
    // A function without a name is called by its place.
    return frame.function.find(' ') == std::string::npos ? str("function '", frame.function, "'") : frame.function;
}

}  // namespace

void keep_machine_frames(lua_State* L, std::string_view message) {
    luaL_checkstack(L, 12, "no room for a traceback");
    // A later report from further out does not hide the origin of the error.
    if (lua_getfield(L, LUA_REGISTRYINDEX, kMachineFrames) == LUA_TTABLE && message.ends_with(text_of(L, "message")))
        return lua_pop(L, 1);
    lua_pop(L, 1);
    const DebugStack stack(L);
    // Frames after the last one are still there when the error is reported.
    const auto& frames = stack.frames();
    const auto outermost =
        std::find_if(frames.rbegin(), frames.rend(), [](const auto& f) { return f.kind == StackFrame::Kind::machine; });
    const auto end = std::min(static_cast<size_t>(frames.rend() - outermost), size_t{kFramesKept});
    lua_newtable(L);
    lua_pushlstring(L, message.data(), message.size());
    lua_setfield(L, -2, "message");
    for (size_t i = 0; i < end; ++i) {
        const StackFrame& frame = frames[i];
        lua_newtable(L);
        for (VariableKind kind : {VariableKind::local, VariableKind::upvalue})
            for (const StackVariable& v : stack.variables(L, i, kind)) {
                stack.push(L, i, v);
                add_variable(L, v.name.c_str(), kind == VariableKind::local ? "local" : "upvalue");
            }
        const auto lines = source_lines(State::of(L), frame.chunk);
        const auto at = static_cast<size_t>(frame.line) - 1;
        const std::string text = at < lines.size() ? lines[at].substr(0, 400) : std::string();
        push_frame(L, {name_in_report(frame), frame.source, frame.line, text}, frame.chunk);
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    lua_setfield(L, LUA_REGISTRYINDEX, kMachineFrames);
}

void forget_machine_frames(lua_State* L) {
    lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, kMachineFrames);
}

bool push_machine_frame(lua_State* L) {
    const int top = lua_gettop(L);
    if (lua_getfield(L, LUA_REGISTRYINDEX, kMachineFrames) == LUA_TTABLE && lua_rawgeti(L, -1, 1) == LUA_TTABLE) {
        lua_remove(L, -2);
        return true;
    }
    lua_settop(L, top);
    return false;
}

std::vector<ErrorFrame> take_machine_frames(lua_State* L) {
    ErrorReport report;
    luaL_checkstack(L, 8, "no room for a traceback");
    lua_newtable(L);
    note_machine_frames(L, report);
    lua_pop(L, 1);
    return std::move(report.frames);
}

void push_post_mortem(lua_State* L) { lua_getfield(L, LUA_REGISTRYINDEX, kPostMortem); }

std::string_view kind_name(ErrorReport::Kind kind) {
    switch (kind) {
        case ErrorReport::Kind::syntax:
            return "SyntaxError";
        case ErrorReport::Kind::interrupt:
            return "Interrupted";
        case ErrorReport::Kind::memory:
            return "OutOfMemory";
        default:
            return "Error";
    }
}

std::string format_error(const ErrorReport& report, bool color) {
    const size_t first_end = std::min(report.message.find('\n'), report.message.size());
    std::string text =
        styled(color, Style::error, report.message.substr(0, first_end)) + report.message.substr(first_end);
    if (report.kind == ErrorReport::Kind::syntax) return text;
    bool first = true;
    for (const ErrorFrame& frame : report.frames) {
        if (frame.line <= 0) continue;
        size_t margin = 0;
        const std::string line = printable(excerpt(frame.text, margin));
        text += "\n" +
                styled(color, Style::dim, printable(str("  ", frame.source, ":", frame.line, " in ", frame.function)));
        if (line.empty()) continue;
        text += "\n    " + line.substr(0, 160);
        if (first && line.size() <= 160) {
            size_t length = 0;
            const size_t at = find_culprit(line, without_place(report.message, frame), length);
            if (at != std::string::npos)
                text += "\n    " + std::string(at, ' ') + styled(color, Style::error, std::string(length, '^'));
        }
        first = false;
    }
    return text;
}

}  // namespace lunaria
