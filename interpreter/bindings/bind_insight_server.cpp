// The server of the insight pages, for lunaria/insight/.
#include <thread>

#include "core/base/interrupt.h"
#include "core/insight/answers/answers.h"
#include "core/insight/answers/debug_desk.h"
#include "core/insight/answers/parse.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/protect.h"
#include "interpreter/serve/server.h"
#include "interpreter/state.h"
#include "interpreter/values/values.h"
#include "interpreter/workers/data_handles.h"

namespace lunaria {

namespace {

constexpr const char* kServerHandle = "lunaria.insight.server";

// The server asks the store and the desk, so it ends first.
struct Shown {
    insight::Store store;
    insight::DebugDesk desk;
    serve::Server server;

    Shown(const std::string& base, double interval, serve::ServerOptions options)
        : store(base, interval),
          server([this](const Question& question) { return answer(question); }, about(std::move(options))) {}
    ~Shown() {
        store.stop();
        desk.close();
    }

  private:
    Answer answer(const Question& question) {
        const bool is_of_desk =
            question.part(0) == "v1" && question.part(1) == "lunaria" && question.part(2) == "debug";
        return is_of_desk ? desk.answer(question.below(3)) : insight::answer(store, question);
    }
    serve::ServerOptions about(serve::ServerOptions options) {
        options.about = store.base();
        return options;
    }
};
// Null when it was stopped.
using ServerHandle = std::unique_ptr<Shown>;

std::string text_field(lua_State* L, const char* name, std::string otherwise) {
    lua_getfield(L, 1, name);
    if (const char* text = lua_tostring(L, -1)) otherwise = text;
    lua_pop(L, 1);
    return otherwise;
}

// serve{ base =, host =, port =, prefix =, interval =, hosts = {}, embeddable = } -> a server, its address, its folder
int start(lua_State* L) {
    serve::ServerOptions options;
    const std::string base = text_field(L, "base", ".");
    double interval = 0;
    options.host = text_field(L, "host", options.host);
    options.prefix = text_field(L, "prefix", options.prefix);
    lua_getfield(L, 1, "port");
    if (!lua_isnil(L, -1)) options.port = static_cast<int>(lua_tointeger(L, -1));
    lua_getfield(L, 1, "interval");
    if (!lua_isnil(L, -1)) interval = lua_tonumber(L, -1);
    lua_getfield(L, 1, "embeddable");
    options.embeddable = lua_toboolean(L, -1);
    lua_getfield(L, 1, "hosts");
    for (lua_Integer i = 1; lua_istable(L, -1) && lua_rawgeti(L, -1, i) != LUA_TNIL; ++i) {
        options.hosts.emplace_back(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    auto shown = std::make_unique<Shown>(base, interval, options);
    const std::string url = shown->server.url(), folder = shown->store.base();
    push_handle<ServerHandle>(L, std::move(shown), kServerHandle);
    push(L, std::string_view(url));
    push(L, std::string_view(folder));
    return 3;
}

int stop_pages(lua_State* L) {
    handle_at<ServerHandle>(L, 1, kServerHandle).reset();
    return 0;
}

// Waits until Ctrl-C, or until another program asks for the end: "interrupted" or "stopped".
int wait_for_end(lua_State* L) {
    const auto& shown = handle_at<ServerHandle>(L, 1, kServerHandle);
    constexpr auto kStep = std::chrono::milliseconds(100);
    while (shown && !shown->server.has_ended() && !interrupt_requested()) std::this_thread::sleep_for(kStep);
    const bool interrupted = interrupt_requested();
    if (interrupted) State::of(L).clear_interrupt();
    lua_pushstring(L, interrupted ? "interrupted" : "stopped");
    return 1;
}

int running(lua_State* L) {
    lua_newtable(L);
    lua_Integer count = 0;
    for (const serve::RunningServer& server : serve::running_servers()) {
        lua_createtable(L, 0, 4);
        lua_pushinteger(L, server.port);
        lua_setfield(L, -2, "port");
        lua_pushinteger(L, server.process);
        lua_setfield(L, -2, "process");
        push(L, std::string_view(server.url));
        lua_setfield(L, -2, "url");
        push(L, std::string_view(server.about));
        lua_setfield(L, -2, "about");
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

// stop_at(port, seconds): whether a server of this user at the port has ended.
int stop_at(lua_State* L) {
    lua_pushboolean(L, serve::stop_server(static_cast<int>(luaL_checkinteger(L, 1)), luaL_checknumber(L, 2)));
    return 1;
}

insight::DebugDesk* desk_at(lua_State* L) {
    const auto& shown = handle_at<ServerHandle>(L, 1, kServerHandle);
    return shown && !shown->server.has_ended() ? &shown->desk : nullptr;
}

// desk_run(server, about), desk_stand(server, about): what the program under watch does; about: a JSON object
template <void (insight::DebugDesk::*tell)(std::string)>
int desk_tell(lua_State* L) {
    if (insight::DebugDesk* desk = desk_at(L)) (desk->*tell)(luaL_checkstring(L, 2));
    return 0;
}

// desk_next(server, seconds) -> the content of a command; or nil, and whether the server has ended
int desk_next(lua_State* L) {
    insight::DebugDesk* desk = desk_at(L);
    const auto content = desk ? desk->next(std::chrono::duration<double>(luaL_checknumber(L, 2))) : std::nullopt;
    if (!content) {
        lua_pushnil(L);
        lua_pushboolean(L, desk == nullptr);
        return 2;
    }
    push(L, std::string_view(*content));
    return 1;
}

// desk_reply(server, json, status)
int desk_reply(lua_State* L) {
    if (insight::DebugDesk* desk = desk_at(L))
        desk->reply(luaL_checkstring(L, 2), static_cast<int>(luaL_optinteger(L, 3, 200)));
    return 0;
}

int desk_take_pause(lua_State* L) {
    insight::DebugDesk* desk = desk_at(L);
    lua_pushboolean(L, desk && desk->take_pause());
    return 1;
}

// parse(base, output) -> how many runs, points of scalars and pictures were written
int parse(lua_State* L) {
    const insight::Parsed parsed = insight::parse(path_at(L, 1, "parse"), path_at(L, 2, "parse"));
    for (const size_t count : {parsed.runs, parsed.scalars, parsed.pictures})
        lua_pushinteger(L, static_cast<lua_Integer>(count));
    return 3;
}

}  // namespace

// Adds the functions to the module on top of the stack.
void bind_insight_server(lua_State* L) {
    make_handle_type(L, kServerHandle, protect<release_handle<ServerHandle>>);
    constexpr luaL_Reg functions[] = {{"serve", protect<start>},
                                      {"stop", protect<stop_pages>},
                                      {"wait", protect<wait_for_end>},
                                      {"running", protect<running>},
                                      {"stop_at", protect<stop_at>},
                                      {"parse", protect<parse>},
                                      {"desk_run", protect<desk_tell<&insight::DebugDesk::run>>},
                                      {"desk_stand", protect<desk_tell<&insight::DebugDesk::stand>>},
                                      {"desk_next", protect<desk_next>},
                                      {"desk_reply", protect<desk_reply>},
                                      {"desk_take_pause", protect<desk_take_pause>},
                                      {nullptr, nullptr}};
    luaL_setfuncs(L, functions, 0);
}

}  // namespace lunaria
