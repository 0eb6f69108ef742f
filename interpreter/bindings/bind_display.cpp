// ms.display, ms.update_display, ms.clear_output, ms.input, and the module behind ms.notebook.comm
// (lua/lunaria/notebook/comm.lua).
#include <cstdio>

#include "core/base/interrupt.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/display/terminal_text.h"
#include "interpreter/protect.h"
#include "interpreter/session/display.h"
#include "interpreter/session/session.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr const char* kHandle = "lunaria.display_handle";

std::string named_text(lua_State* L, int index, const char* where, const char* argument) {
    if (lua_type(L, index) != LUA_TSTRING)
        throw argument_error(where, str(argument, " must be a string, got ", describe(L, index)));
    size_t size = 0;
    const char* text = lua_tolstring(L, index, &size);
    return {text, size};
}

MimeBundle bundle_of(lua_State* L, int index, int options, const char* where) {
    bool raw = false;
    lua_pushnil(L);
    const int metadata = lua_gettop(L);
    if (options) {
        if (push_option(L, options, "raw")) raw = lua_toboolean(L, -1);
        if (push_option(L, options, "metadata")) {
            if (!lua_istable(L, -1))
                throw argument_error(where, str("metadata must be a table, got ", describe(L, lua_gettop(L))));
            lua_replace(L, metadata);
        }
    }
    if (raw) return mime_table(L, index, metadata);
    Session* session = display_session(L);
    MimeBundle bundle = mime_bundle(L, index, session ? session->pretty_options() : PrettyOptions{});
    if (!lua_isnil(L, metadata)) {
        lua_newtable(L);
        bundle.metadata = mime_table(L, lua_gettop(L), metadata).metadata;
    }
    return bundle;
}

bool can_show_rich(lua_State* L) {
    Session* session = display_session(L);
    return session && session->hooks().display;
}

// The value at 1 as text alone: the other formats take time to make and would not be seen.
MimeBundle text_bundle(lua_State* L, int options, const char* where) {
    if (options && push_option(L, options, "raw") && lua_toboolean(L, -1)) return bundle_of(L, 1, options, where);
    Session* session = display_session(L);
    PrettyOptions pretty_options = session ? session->pretty_options() : PrettyOptions{};
    MimeBundle bundle;
    bundle.set("text/plain", shown_text(L, 1, pretty_options));
    return bundle;
}

void push_display(lua_State* L, const std::string& id) {
    lua_createtable(L, 0, 1);
    push(L, std::string_view(id));
    lua_setfield(L, -2, "id");
    luaL_setmetatable(L, kHandle);
}

// display(value [, {id = true | "name", metadata = {...}, raw = false}]): with an id, a handle with update(value).
int display(lua_State* L) {
    if (lua_gettop(L) == 0) throw argument_error("display", "missing argument 1: what is to be shown");
    const int options = lua_istable(L, 2) ? 2 : 0;
    if (!options && !lua_isnoneornil(L, 2))
        throw argument_error("display", str("options must be a table, got ", describe(L, 2)));
    lua_settop(L, 2);
    Display shown;
    if (options) {
        check_options(L, 2, "display", {"id", "metadata", "raw"});
        if (push_option(L, 2, "id") && !lua_isnil(L, -1)) {
            if (lua_isboolean(L, -1))
                shown.id = lua_toboolean(L, -1) ? new_display_id() : "";
            else
                shown.id = named_text(L, lua_gettop(L), "display", "id");
        }
    }
    if (can_show_rich(L))
        shown.bundle = bundle_of(L, 1, options, "display");
    else
        shown.bundle = text_bundle(L, options, "display");
    show(L, shown);
    if (shown.id.empty()) return 0;
    push_display(L, shown.id);
    return 1;
}

// update_display(value, id or handle [, options]): replaces what was displayed with that id.
int update_display(lua_State* L) {
    Display shown;
    shown.update = true;
    lua_settop(L, 3);
    if (lua_istable(L, 2)) {
        lua_getfield(L, 2, "id");
        shown.id = named_text(L, lua_gettop(L), "update_display", "id");
    } else {
        shown.id = named_text(L, 2, "update_display", "id");
    }
    const int options = lua_istable(L, 3) ? 3 : 0;
    if (options) check_options(L, 3, "update_display", {"metadata", "raw"});
    shown.bundle =
        can_show_rich(L) ? bundle_of(L, 1, options, "update_display") : text_bundle(L, options, "update_display");
    show(L, shown);
    return 0;
}

// handle:update(value [, options])
int update_handle(lua_State* L) {
    lua_settop(L, 3);
    lua_pushvalue(L, 1);
    lua_remove(L, 1);
    lua_insert(L, 2);
    return update_display(L);
}

// clear_output([wait]), clear_output{wait = true}: with wait, once the next output comes.
int clear_output(lua_State* L) {
    bool wait = lua_toboolean(L, 1);
    if (lua_istable(L, 1)) {
        check_options(L, 1, "clear_output", {"wait"});
        lua_getfield(L, 1, "wait");
        wait = lua_toboolean(L, -1);
    }
    Session* session = display_session(L);
    if (session && session->hooks().clear_output) session->hooks().clear_output(wait);
    return 0;
}

// input([prompt [, {password = true}]]): a line from the user, nil at the end of input.
int input(lua_State* L) {
    const std::string prompt = lua_isnoneornil(L, 1) ? "" : named_text(L, 1, "input", "prompt");
    bool password = false;
    if (lua_istable(L, 2)) {
        check_options(L, 2, "input", {"password"});
        if (push_option(L, 2, "password")) password = lua_toboolean(L, -1);
    }
    Session* session = display_session(L);
    std::optional<std::string> line;
    if (session && session->hooks().input) {
        const auto& ask = password && session->hooks().password ? session->hooks().password : session->hooks().input;
        line = ask(prompt);
        poll_interrupt();
    } else {
        lua_getglobal(L, LUA_IOLIBNAME);
        lua_getfield(L, -1, "write");
        push(L, std::string_view(prompt));
        lua_call(L, 1, 0);
        std::fflush(stdout);
        lua_getfield(L, -1, "read");
        lua_pushliteral(L, "l");
        lua_call(L, 1, 1);
        return 1;
    }
    if (!line) return 0;
    push(L, std::string_view(*line));
    return 1;
}

// send_comm(kind, id, target, data, metadata, buffers): kind is "open", "message" or "close"; the others are texts, the
// last a table of them. False where there is no front end to receive it.
int send_comm(lua_State* L) {
    lua_settop(L, 6);
    static constexpr const char* kKinds[] = {"open", "message", "close", nullptr};
    CommMessage message;
    message.kind = static_cast<CommMessage::Kind>(luaL_checkoption(L, 1, nullptr, kKinds));
    message.id = named_text(L, 2, "comm", "id");
    message.target = named_text(L, 3, "comm", "target");
    message.data = named_text(L, 4, "comm", "data");
    message.metadata = named_text(L, 5, "comm", "metadata");
    for (lua_Integer i = 1; lua_istable(L, 6) && i <= luaL_len(L, 6); ++i) {
        lua_geti(L, 6, i);
        message.buffers.push_back(named_text(L, lua_gettop(L), "comm", "a buffer"));
        lua_pop(L, 1);
    }
    Session* session = display_session(L);
    const bool heard = session && session->hooks().comm;
    if (heard) session->hooks().comm(message);
    lua_pushboolean(L, heard);
    return 1;
}

// on_comm(f): f(kind, id, target, data, metadata, buffers) is called for messages from the front end.
int on_comm(lua_State* L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_setfield(L, LUA_REGISTRYINDEX, kOnComm);
    return 0;
}

int new_id(lua_State* L) {
    push(L, std::string_view(new_display_id()));
    return 1;
}

// has_display(): whether display shows more than text.
int has_display(lua_State* L) {
    lua_pushboolean(L, can_show_rich(L));
    return 1;
}

// after_cell(f): f() is called when the cell that runs has ended, however it ended; never in a script.
int after_cell(lua_State* L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    if (Session* session = display_session(L); !session || !session->is_running()) return 0;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, kAfterCell);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
    return 0;
}

// display(...) as the call of a table, which holds display.html and similar functions.
int call_display(lua_State* L) {
    luaL_checkany(L, 1);
    lua_remove(L, 1);
    return display(L);
}

int markup_function(lua_State* L) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.markup");
    lua_call(L, 1, 1);
    lua_pushvalue(L, 2);
    lua_gettable(L, -2);
    return 1;
}

}  // namespace

void bind_display(lua_State* L) {
    lua_newtable(L);
    lua_createtable(L, 0, 4);
    lua_pushliteral(L, "display(value [, {id, metadata, raw}])");
    lua_setfield(L, -2, "_head");
    lua_pushliteral(
        L,
        "Shows a value in the midst of a cell: in a notebook in the best of its formats, elsewhere as text.\n"
        "With id = true (or a name) it gives a handle: handle:update(value) replaces what is shown. raw = true takes "
        "a\n"
        "table from types, such as \"text/html\", to texts. A metamethod __mime of a value gives such a table.\n"
        "display.html, .markdown, .latex, .svg, .json and .audio give values of these types; ms.plot, ms.image and\n"
        "ms.summary give pictures and tables.");
    lua_setfield(L, -2, "_doc");
    lua_pushcfunction(L, protect<call_display>);
    lua_setfield(L, -2, "__call");
    lua_pushcfunction(L, protect<markup_function>);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "display");
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"update_display", protect<update_display>},
                                  {"clear_output", protect<clear_output>},
                                  {"input", protect<input>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    luaL_newmetatable(L, kHandle);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, protect<update_handle>);
    lua_setfield(L, -2, "update");
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, "display handle");
    lua_setfield(L, -2, "__name");
    lua_pop(L, 1);
}

int open_frontend(lua_State* L) {
    lua_createtable(L, 0, 5);
    for (auto [name, function] : {std::pair<const char*, lua_CFunction>{"send_comm", protect<send_comm>},
                                  {"on_comm", protect<on_comm>},
                                  {"new_id", protect<new_id>},
                                  {"has_display", protect<has_display>},
                                  {"after_cell", protect<after_cell>}}) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria
