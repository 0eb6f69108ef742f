#include "interpreter/errors/debugger_stack.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interpreter/errors/error_report.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/loader/cell.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "jit/frontend/ast.h"

namespace lunaria {

namespace {

constexpr size_t kMostFrames = 1000;
constexpr int kMostVarargs = 1000;

std::string function_name(lua_State* L, lua_Debug& frame) {
    if (*frame.what == 'm') return "main chunk";
    if (*frame.namewhat && frame.name) return frame.name;
    // Lua does not know the caller of a tail call; the program's text has the name.
    luaL_checkstack(L, 4, "function");
    lua_getinfo(L, "f", &frame);
    const FunctionSource source = State::of(L).loader().source_of(L, -1);
    lua_pop(L, 1);
    if (source.function && !source.function->name.empty()) return std::string(source.function->name);
    return str("function at line ", frame.linedefined);
}

// Names of variables that have none in the program: temporaries, and the variable of kShowPrefix.
bool is_hidden(const char* name) { return *name == '(' || std::strcmp(name, "__cell") == 0 || !*name; }

std::string text_field(lua_State* T, const char* name) {
    lua_getfield(T, -1, name);
    const char* text = lua_tostring(T, -1);
    std::string result = text ? text : "";
    lua_pop(T, 1);
    return result;
}

int level_of(const StackFrame& frame, lua_Debug& record) {
    if (!lua_getstack(frame.thread, frame.level, &record)) throw state_error("debugger", "the frame is gone");
    return frame.level;
}

}  // namespace

bool is_library(std::string_view chunk) { return chunk.starts_with(kLibraryChunks); }

int stack_depth(lua_State* L) {
    lua_Debug frame;
    int below = -1, above = 1;
    while (lua_getstack(L, above - 1, &frame)) {
        below = above - 1;
        above *= 2;
    }
    // Reaching a level takes time in its height, so that levels are not tried one by one.
    int end = above - 1;
    while (below + 1 < end) {
        const int middle = below + (end - below) / 2;
        (lua_getstack(L, middle, &frame) ? below : end) = middle;
    }
    return below + 1;
}

std::vector<std::string> source_lines(State& state, const std::string& chunk) {
    std::vector<std::string> lines;
    const auto texts = state.loader().sources(chunk);
    if (texts.empty()) return lines;
    std::string_view rest = texts.front();
    while (!rest.empty()) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        std::string line(rest.substr(0, end));
        if (line.ends_with('\r')) line.pop_back();
        line = as_typed(std::move(line));
        lines.push_back(std::move(line));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return lines;
}

DebugStack::DebugStack(lua_State* L) {
    const State& state = State::of(L);
    // Frames of the library are better than none.
    for (bool library : {false, true}) {
        add_lua_frames(L, library);
        if (L == state.running())
            for (const auto* t = state.innermost(); t; t = t->outer()) add_lua_frames(t->resumer(), library);
        if (!frames_.empty()) return;
    }
}

void DebugStack::add_lua_frames(lua_State* thread, bool library) {
    lua_Debug record;
    const LuaHost* host = LuaHost::existing(thread);
    const int depth = stack_depth(thread);
    bool stood_for = false;
    for (int level = 0; level < depth && frames_.size() < kMostFrames; ++level) {
        if (!lua_getstack(thread, level, &record)) return;
        lua_getinfo(thread, "Slnt", &record);
        if (*record.what != 'C' && std::exchange(stood_for, false)) continue;
        if (*record.what == 'C') {
            stood_for = is_entry_call(record);
            if (host) add_machine_frames(thread, record, level, library);
            continue;
        }
        StackFrame frame;
        frame.chunk.assign(record.source, record.srclen);
        if (is_library(frame.chunk) != library) continue;
        frame.thread = thread;
        frame.level = level;
        frame.function = function_name(thread, record);
        frame.source = display_name(frame.chunk);
        frame.line = std::max(record.currentline, 0);
        frame.first_line = std::max(record.linedefined, 0);
        frame.tail = record.istailcall;
        frames_.push_back(std::move(frame));
    }
}

void DebugStack::add_machine_frames(lua_State* thread, const lua_Debug& call, int level, bool library) {
    LuaHost& host = LuaHost::of(thread);
    const auto& entries = host.entries();
    for (size_t e = 0; e < entries.size(); ++e) {
        if (entries[e].thread != thread || entries[e].call != call.i_ci) continue;
        const size_t end = e + 1 < entries.size() ? entries[e + 1].frames : host.machine().frame_count();
        for (size_t i = end; i-- > entries[e].frames && frames_.size() < kMostFrames;) {
            const vm::FrameView view = host.machine().frame_view(i);
            if (view.waits || !view.chunk || view.line <= 0) continue;
            if (view.chunk->starts_with(kLibraryChunks.substr(1)) != library) continue;
            StackFrame frame;
            frame.kind = StackFrame::Kind::machine;
            frame.thread = thread;
            frame.level = level;
            frame.index = i;
            frame.function = view.function;
            frame.source = *view.chunk;
            // Of the two names that Lua may have for it, the one with a kept text.
            frame.chunk = "=" + frame.source;
            if (State::of(thread).loader().sources(frame.chunk).empty()) frame.chunk = "@" + frame.source;
            frame.line = view.line;
            frame.first_line = view.first_line;
            frame.complete = view.complete;
            frame.backward = view.backward;
            frames_.push_back(std::move(frame));
        }
    }
}

DebugStack DebugStack::post_mortem(lua_State* T) {
    DebugStack stack;
    luaL_checkstack(T, 6, "frames");
    push_post_mortem(T);
    const size_t count = lua_istable(T, -1) ? lua_rawlen(T, -1) : 0;
    for (size_t i = 1; i <= count; ++i) {
        lua_rawgeti(T, -1, static_cast<lua_Integer>(i));
        StackFrame frame;
        frame.kind = StackFrame::Kind::kept;
        frame.index = i;
        frame.function = text_field(T, "name");
        frame.source = text_field(T, "source");
        frame.chunk = text_field(T, "chunk");
        lua_getfield(T, -1, "line");
        frame.line = static_cast<int>(lua_tointeger(T, -1));
        lua_pop(T, 2);
        if (frame.line > 0) stack.frames_.push_back(std::move(frame));
    }
    lua_pop(T, 1);
    return stack;
}

vm::FrameView DebugStack::view(const StackFrame& frame) const {
    return LuaHost::of(frame.thread).machine().frame_view(frame.index);
}

// Pushes the list of the variables, or {name =, kind =, value =} of one of them (from 1).
void DebugStack::push_kept(lua_State* T, const StackFrame& frame, int index) const {
    push_post_mortem(T);
    lua_rawgeti(T, -1, static_cast<lua_Integer>(frame.index));
    lua_getfield(T, -1, "variables");
    if (index > 0) lua_rawgeti(T, -1, index);
    lua_replace(T, index > 0 ? -4 : -3);
    lua_pop(T, index > 0 ? 2 : 1);
}

std::vector<StackVariable> DebugStack::all(lua_State* T, size_t at, VariableKind kind) const {
    const StackFrame& frame = frames_.at(at);
    std::vector<StackVariable> list;
    luaL_checkstack(T, 8, "variables");
    if (frame.kind == StackFrame::Kind::kept) {
        push_kept(T, frame, 0);
        for (int i = 1, n = static_cast<int>(lua_rawlen(T, -1)); i <= n; ++i) {
            lua_rawgeti(T, -1, i);
            const bool outer = text_field(T, "kind") == "upvalue";
            if (kind == (outer ? VariableKind::upvalue : VariableKind::local))
                list.push_back({text_field(T, "name"), kind, i});
            lua_pop(T, 1);
        }
        lua_pop(T, 1);
        return list;
    }
    if (frame.kind == StackFrame::Kind::machine) {
        const vm::FrameView v = view(frame);
        for (size_t i = 0; i < v.variables.size(); ++i) {
            const vm::FrameVariable& variable = v.variables[i];
            if (variable.name == "...") {
                const Value& rest = variable.place ? *variable.place : variable.value;
                for (size_t k = 0; kind == VariableKind::vararg && rest.is_list() && k < rest.items().size(); ++k)
                    list.push_back({str("... ", k + 1), kind, static_cast<int>(k)});
            } else if (kind == (variable.outer ? VariableKind::upvalue : VariableKind::local)) {
                list.push_back({variable.name, kind, static_cast<int>(i)});
            }
        }
        return list;
    }
    lua_State* L = frame.thread;
    lua_Debug record;
    level_of(frame, record);
    luaL_checkstack(L, 4, "variables");
    if (kind == VariableKind::upvalue) {
        lua_getinfo(L, "f", &record);
        for (int i = 1; const char* name = get_upvalue(L, -1, i); ++i) {
            if (!is_hidden(name)) list.push_back({name, kind, i});
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
        return list;
    }
    const int step = kind == VariableKind::vararg ? -1 : 1;
    for (int i = step; std::abs(i) <= kMostVarargs; i += step) {
        const char* name = lua_getlocal(L, &record, i);
        if (!name) break;
        lua_pop(L, 1);
        if (step < 0)
            list.push_back({str("... ", -i), kind, i});
        else if (!is_hidden(name))
            list.push_back({name, kind, i});
    }
    return list;
}

std::vector<StackVariable> DebugStack::variables(lua_State* T, size_t frame, VariableKind kind) const {
    std::vector<StackVariable> list = all(T, frame, kind), visible;
    for (size_t i = 0; i < list.size(); ++i) {
        const bool hidden = std::any_of(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, list.end(),
                                        [&](const StackVariable& later) { return later.name == list[i].name; });
        if (!hidden && list[i].name != "_ENV") visible.push_back(std::move(list[i]));
    }
    return visible;
}

bool DebugStack::find(lua_State* T, size_t frame, const std::string& name, StackVariable& found) const {
    for (VariableKind kind : {VariableKind::local, VariableKind::upvalue}) {
        const auto list = all(T, frame, kind);
        const auto last =
            std::find_if(list.rbegin(), list.rend(), [&](const StackVariable& v) { return v.name == name; });
        if (last == list.rend()) continue;
        found = *last;
        return true;
    }
    return false;
}

void DebugStack::push(lua_State* T, size_t at, const StackVariable& v) const {
    const StackFrame& frame = frames_.at(at);
    luaL_checkstack(T, 8, "variables");
    if (frame.kind == StackFrame::Kind::kept) {
        push_kept(T, frame, v.index);
        lua_getfield(T, -1, "value");
        lua_remove(T, -2);
        return;
    }
    if (frame.kind == StackFrame::Kind::machine) {
        LuaHost& host = LuaHost::of(frame.thread);
        const vm::FrameView seen = view(frame);
        if (v.kind == VariableKind::vararg) {
            for (const vm::FrameVariable& variable : seen.variables)
                if (variable.name == "...")
                    return host.push(T, variable.value.items().at(static_cast<size_t>(v.index)));
            return lua_pushnil(T);
        }
        const Value value = seen.variables.at(static_cast<size_t>(v.index)).value;
        const auto* cell = value.kind() == Value::Kind::object ? dynamic_cast<vm::Cell*>(value.object()) : nullptr;
        return host.push(T, cell ? cell->get() : value);
    }
    lua_State* L = frame.thread;
    lua_Debug record;
    level_of(frame, record);
    luaL_checkstack(L, 4, "variables");
    if (v.kind == VariableKind::upvalue) {
        lua_getinfo(L, "f", &record);
        if (!lua_getupvalue(L, -1, v.index)) lua_pushnil(L);
        lua_remove(L, -2);
    } else if (!lua_getlocal(L, &record, v.index)) {
        lua_pushnil(L);
    }
    if (L != T) lua_xmove(L, T, 1);
}

void DebugStack::assign(lua_State* T, size_t at, const StackVariable& v) const {
    const StackFrame& frame = frames_.at(at);
    luaL_checkstack(T, 8, "variables");
    if (frame.kind == StackFrame::Kind::kept) {
        push_kept(T, frame, v.index);
        lua_insert(T, -2);
        lua_setfield(T, -2, "value");
        lua_pop(T, 1);
        return;
    }
    if (frame.kind == StackFrame::Kind::machine) {
        LuaHost& host = LuaHost::of(frame.thread);
        vm::FrameView seen = view(frame);
        auto refuse = [&](const char* why) {
            return state_error("debugger", str("'", v.name, "' cannot be changed here: ", why));
        };
        if (v.kind == VariableKind::vararg) throw refuse("further arguments of a differentiated function are fixed");
        const vm::FrameVariable& variable = seen.variables.at(static_cast<size_t>(v.index));
        Value made = host.to_value(T, -1);
        lua_pop(T, 1);
        if (auto* cell = variable.value.kind() == Value::Kind::object ? dynamic_cast<vm::Cell*>(variable.value.object())
                                                                      : nullptr)
            return cell->set(std::move(made));
        if (!variable.place) throw refuse("its value was known before the program ran, and is part of it");
        for (const vm::FrameVariable& other : seen.variables)
            if (&other != &variable && other.place == variable.place)
                throw refuse(str("it is the same value as '", other.name, "'").c_str());
        *variable.place = std::move(made);
        return;
    }
    lua_State* L = frame.thread;
    lua_Debug record;
    level_of(frame, record);
    luaL_checkstack(L, 4, "variables");
    if (L != T) lua_xmove(T, L, 1);
    if (v.kind == VariableKind::upvalue) {
        lua_getinfo(L, "f", &record);
        lua_insert(L, -2);
        if (!lua_setupvalue(L, -2, v.index)) lua_pop(L, 1);
        lua_pop(L, 1);
    } else if (!lua_setlocal(L, &record, v.index)) {
        lua_pop(L, 1);
    }
}

void DebugStack::push_environment(lua_State* T, size_t frame) const {
    StackVariable found;
    if (frames_.at(frame).kind == StackFrame::Kind::lua && find(T, frame, "_ENV", found))
        push(T, frame, found);
    else
        lua_rawgeti(T, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
}

void DebugStack::push_function(lua_State* T, size_t at) const {
    const StackFrame& frame = frames_.at(at);
    if (frame.kind != StackFrame::Kind::lua) return lua_pushnil(T);
    lua_Debug record;
    level_of(frame, record);
    luaL_checkstack(frame.thread, 2, "function");
    lua_getinfo(frame.thread, "f", &record);
    if (frame.thread != T) lua_xmove(frame.thread, T, 1);
}

}  // namespace lunaria
