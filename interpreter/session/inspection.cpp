#include "interpreter/session/inspection.h"

#include <algorithm>

#include "interpreter/display/pretty.h"
#include "interpreter/loader/loader.h"
#include "interpreter/session/completion.h"
#include "interpreter/values/operators.h"
#include "interpreter/values/values.h"
#include "jit/frontend/cursor.h"
#include "jit/frontend/parser.h"

namespace lunaria {

namespace {

// The function's text in its chunk and the comment above it, if the loader still has the chunk.
struct Listing {
    std::string doc, text;
};

Listing find_listing(lua_State* L, int index) {
    const FunctionSource source = State::of(L).loader().source_of(L, index);
    if (!source.function) return {};
    return {std::string(source.function->doc), std::string(source.chunk->text(source.function->span))};
}

// The parameters "(a, b)" of a function without a text of its own that the library describes
// (lua/lunaria/help/index.lua); otherwise "".
std::string described_parameters(lua_State* L, int index) {
    const int top = lua_gettop(L);
    index = lua_absindex(L, index);
    luaL_checkstack(L, 8, "help");
    std::string parameters;
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.help.index");
    // An error in the library's help still leaves an answer.
    if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1)) {
        lua_pushvalue(L, index);
        if (lua_gettable(L, -2) == LUA_TTABLE && lua_getfield(L, -1, "list") == LUA_TSTRING)
            parameters = lua_tostring(L, -1);
    }
    lua_settop(L, top);
    return parameters;
}

// The library's help (lua/lunaria/help/show.lua) for the value at `index`, or for a name where that is 0.
Inspection ask_library(lua_State* L, int index, std::string_view name, int level) {
    const int top = lua_gettop(L);
    if (index) index = lua_absindex(L, index);
    luaL_checkstack(L, 10, "help");
    Inspection found;
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.help.show");
    // An error in the library's help still leaves an answer.
    if (lua_isfunction(L, -2) && lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1)) {
        lua_getfield(L, -1, index ? "value" : "name");
        push(L, name);
        if (index) lua_pushvalue(L, index);
        lua_pushinteger(L, level);
        if (lua_pcall(L, index ? 3 : 2, 2, 0) == LUA_OK && lua_type(L, -2) == LUA_TSTRING)
            found = {true, lua_tostring(L, -2), lua_tostring(L, -1)};
    }
    lua_settop(L, top);
    return found;
}

// "name(a, b)" of a function; the name as the user wrote it.
std::string call_text(lua_State* L, int index, std::string_view name) {
    const std::string text = describe_function(L, index);
    constexpr std::string_view kStart = "function(";
    const size_t close = text.find(')');
    if (!text.starts_with(kStart) || close == std::string::npos) return str(name, name.empty() ? "" : ": ", text);
    std::string list = text.substr(kStart.size() - 1, close - kStart.size() + 2);
    // A method is called with a colon.
    for (std::string_view self : {"(self, ", "(self"})
        if (name.find(':') != std::string_view::npos && list.starts_with(self)) list.replace(0, self.size(), "(");
    return str(name.empty() ? "function" : name, list);
}

Inspection inspect_function(lua_State* L, int index, std::string_view name, int level) {
    Inspection result{true, call_text(L, index, name), ""};
    result.markdown = "```lua\n" + result.text + "\n```\n";
    const Listing source = find_listing(L, index);
    if (!source.doc.empty()) {
        result.text += "\n\n" + source.doc;
        result.markdown += "\n" + source.doc + "\n";
    }
    lua_Debug info;
    lua_pushvalue(L, index);
    lua_getinfo(L, ">S", &info);
    if (*info.what != 'C') result.text += str("\n\nDefined in ", info.short_src, ":", info.linedefined);
    if (level > 0 && !source.text.empty()) {
        result.text += "\n\n" + source.text;
        result.markdown += "\n```lua\n" + source.text + "\n```\n";
    }
    result.text += "\n";
    return result;
}

std::string text_field(lua_State* L, int index, const char* field) {
    lua_pushstring(L, field);
    lua_rawget(L, index);
    const std::string text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    lua_pop(L, 1);
    return text;
}

// A class of the Lua library (a layer, an initializer) or a user's class of cells: the parameters of its constructor,
// its text, its methods. Nothing for other tables.
Inspection inspect_class(lua_State* L, int index, int level) {
    if (!lua_istable(L, index)) return {};
    const std::string name = text_field(L, index, "_name");
    if (name.empty() || !luaL_callmeta(L, index, "__tostring")) return {};
    std::string head = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    lua_pop(L, 1);
    constexpr std::string_view kStart = "class ";
    if (!head.starts_with(kStart)) return {};
    head = head.substr(kStart.size());
    std::string doc = text_field(L, index, "_doc"), source;
    lua_pushliteral(L, "init");
    lua_rawget(L, index);
    if (doc.empty() && lua_isfunction(L, -1)) doc = find_listing(L, lua_gettop(L)).doc;
    lua_pop(L, 1);
    lua_pushliteral(L, "construct");
    lua_rawget(L, index);
    if (level > 0 && lua_isfunction(L, -1)) source = find_listing(L, lua_gettop(L)).text;
    lua_pop(L, 1);
    Inspection result{true, head + "\n", "```lua\n" + head + "\n```\n"};
    if (!doc.empty()) {
        result.text += "\n" + doc + "\n";
        result.markdown += "\n" + doc + "\n";
    }
    if (!source.empty()) {
        result.text += "\n" + source + "\n";
        result.markdown += "\n```lua\n" + source + "\n```\n";
    }
    return result;
}

// A table with a description of its own: texts _head and _doc in its metatable.
Inspection inspect_described(lua_State* L, int index) {
    if (!lua_istable(L, index) || !lua_getmetatable(L, index)) return {};
    const std::string head = text_field(L, lua_gettop(L), "_head"), doc = text_field(L, lua_gettop(L), "_doc");
    lua_pop(L, 1);
    if (head.empty() || doc.empty()) return {};
    return {true, str(head, "\n\n", doc, "\n"), str("```lua\n", head, "\n```\n\n", doc, "\n")};
}

}  // namespace

std::string signature_text(lua_State* L, int index) {
    const std::string parameters = described_parameters(L, index);
    return parameters.empty() ? describe_function(L, index) : "function" + parameters;
}

Inspection inspect_value(lua_State* L, int index, std::string_view name, int level) {
    index = lua_absindex(L, index);
    if (lua_isfunction(L, index) || lua_istable(L, index) || !name.empty())
        if (Inspection found = ask_library(L, index, name, level); found.found) return found;
    if (lua_isfunction(L, index)) return inspect_function(L, index, name, level);
    if (Inspection found = inspect_class(L, index, level); found.found) return found;
    if (Inspection found = inspect_described(L, index); found.found) return found;
    std::string head = str(name, name.empty() ? "" : ": ", describe(L, index), "\n");
    if (lua_isnil(L, index)) return {true, head, head};
    PrettyOptions options;
    options.depth = level > 0 ? 4 : 2;
    const std::string text = pretty(L, index, options);
    return {true, head + text + "\n", head + "\n```\n" + text + "\n```\n"};
}

Inspection inspect(State& state, const std::string& text, size_t cursor, int level) {
    lua_State* L = state.running();
    cursor = std::min(cursor, text.size());
    // The whole of the name that the cursor is in.
    auto is_part = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    while (cursor < text.size() && is_part(text[cursor])) ++cursor;
    const lua::CursorContext context = lua::cursor_context(text, cursor);
    const int top = lua_gettop(L);
    auto look_up = [&](NamePath path, const std::string& name) -> Inspection {
        Inspection found;
        if (push_path(L, path)) {
            found = inspect_value(L, -1, name, level);
        } else {
            // Names in the library are also found by themselves, if no variable leads to them.
            found = ask_library(L, 0, name, level);
        }
        lua_settop(L, top);
        return found;
    };
    if (!context.word.empty() && context.place == lua::CursorPlace::code) {
        NamePath path = context.separator ? context.base.path : NamePath{};
        if (!context.separator || !path.empty()) {
            path.emplace_back(context.word);
            const std::string name =
                context.separator ? str(context.base.text, context.separator, context.word) : context.word;
            if (Inspection found = look_up(std::move(path), name); found.found) return found;
        }
    }
    if (!context.call) return {};
    if (!context.call->method.empty()) {
        return ask_library(L, 0, ":" + context.call->method, level);
    }
    return context.call->callee.path.empty() ? Inspection{}
                                             : look_up(context.call->callee.path, context.call->callee.text);
}

}  // namespace lunaria
