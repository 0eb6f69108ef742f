#include "interpreter/errors/error_hints.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/interrupt.h"
#include "interpreter/errors/debugger_stack.h"
#include "interpreter/errors/error_report.h"
#include "interpreter/loader/loader.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr int kMostVariables = 200;
constexpr size_t kLinesAbove = 60;

// Takes the value on top of the stack and pushes what hints see of it: false for nil, and true for false.
void push_seen(lua_State* L) {
    if (lua_toboolean(L, -1)) return;
    const bool has_value = !lua_isnil(L, -1);
    lua_pop(L, 1);
    lua_pushboolean(L, has_value);
}

// Puts the variables into the table on top of the stack, by their names, with what they hold.
void note_variables(lua_State* L, const DebugStack& stack, size_t frame) {
    int count = 0;
    for (const VariableKind kind : {VariableKind::upvalue, VariableKind::local})
        for (const StackVariable& v : stack.variables(L, frame, kind)) {
            if (++count > kMostVariables) return;
            stack.push(L, frame, v);
            push_seen(L);
            lua_setfield(L, -2, v.name.c_str());
        }
}

std::string text_of_field(lua_State* L, int index, const char* name) {
    lua_getfield(L, index, name);
    const char* text = lua_tostring(L, -1);
    std::string result = text ? text : "";
    lua_pop(L, 1);
    return result;
}

// The lines of earlier cells that declare locals, which end with their cell; empty for chunks that are not cells.
std::string locals_of_earlier_cells(lua_State* L, const std::string& chunk) {
    constexpr long kMostCells = 50;
    const size_t at = chunk.find("In[");
    if (at == std::string::npos || at > 1 || !chunk.ends_with(']')) return {};
    const long cell = std::strtol(chunk.c_str() + at + 3, nullptr, 10);
    std::string found;
    for (long i = cell - 1; i >= std::max(1L, cell - kMostCells); --i)
        for (const std::string& line : source_lines(State::of(L), str(chunk.substr(0, at), "In[", i, "]")))
            if (line.starts_with("local ")) found += line + "\n";
    return found;
}

// Pushes a line of a chunk, its place ("file.lua:3"), and the lines above it, after those of locals_of_earlier_cells
// and a form feed.
void push_text(lua_State* L, const std::string& chunk, const std::string& source, size_t line) {
    const auto lines = source_lines(State::of(L), chunk);
    push(L, line > 0 && line <= lines.size() ? std::string_view(lines[line - 1]) : std::string_view());
    push(L, std::string_view(str(source, ":", line)));
    std::string above = locals_of_earlier_cells(L, chunk) + '\f';
    for (size_t i = line > kLinesAbove ? line - kLinesAbove : 0; i + 1 < line && i < lines.size(); ++i)
        above += lines[i] + "\n";
    push(L, std::string_view(above));
}

// Pushes the line of the error, its place, the lines above it, and the variables there.
void push_place(lua_State* L) {
    if (push_machine_frame(L)) {
        const int frame = lua_gettop(L);
        lua_getfield(L, frame, "line");
        const auto line = static_cast<size_t>(lua_tointeger(L, -1));
        lua_pop(L, 1);
        push_text(L, text_of_field(L, frame, "chunk"), text_of_field(L, frame, "source"), line);
        lua_newtable(L);
        lua_getfield(L, frame, "variables");
        for (lua_Integer i = 1, n = luaL_len(L, -1); i <= n; ++i) {
            lua_rawgeti(L, -1, i);
            lua_getfield(L, -1, "name");
            lua_getfield(L, -2, "value");
            push_seen(L);
            lua_rawset(L, -5);
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
        lua_remove(L, frame);
        return;
    }
    const DebugStack stack(L);
    if (stack.empty()) {
        for (int i = 0; i < 3; ++i) lua_pushliteral(L, "");
        lua_newtable(L);
        return;
    }
    const StackFrame& frame = stack.frames().front();
    push_text(L, frame.chunk, frame.source, static_cast<size_t>(std::max(frame.line, 0)));
    lua_newtable(L);
    note_variables(L, stack, 0);
}

}  // namespace

std::string with_hint(lua_State* L, std::string message) {
    if (interrupt_requested() || message.find("stack overflow") != std::string::npos || !lua_checkstack(L, 40))
        return message;
    const int top = lua_gettop(L);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.help.hints");
    // An error in a hint does not hide the error itself.
    if (lua_isfunction(L, -2) && lua_pcall(L, 1, 1, 0) == LUA_OK) {
        push(L, std::string_view(message));
        push_place(L);
        if (lua_pcall(L, 5, 1, 0) == LUA_OK && lua_type(L, -1) == LUA_TSTRING) message = lua_tostring(L, -1);
    }
    lua_settop(L, top);
    return message;
}

}  // namespace lunaria
