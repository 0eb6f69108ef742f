#include "interpreter/session/display.h"

#include <sys/random.h>

#include <array>

#include "interpreter/session/session.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr const char* kSession = "lunaria.display_session";

}  // namespace

void set_display_session(lua_State* L, Session* session) {
    if (session)
        lua_pushlightuserdata(L, session);
    else
        lua_pushnil(L);
    lua_setfield(L, LUA_REGISTRYINDEX, kSession);
}

Session* display_session(lua_State* L) {
    lua_getfield(L, LUA_REGISTRYINDEX, kSession);
    auto* session = static_cast<Session*>(lua_touserdata(L, -1));
    lua_pop(L, 1);
    return session;
}

void show(lua_State* L, const Display& display) {
    Session* session = display_session(L);
    if (session && session->hooks().display) {
        session->hooks().display(display);
        return;
    }
    const std::string* text = display.bundle.find("text/plain");
    std::string line;
    if (text) {
        line = *text;
    } else {
        for (const MimePart& part : display.bundle.parts) line += str(line.empty() ? "<" : ", ", part.type);
        line += line.empty() ? "" : ">";
    }
    if (line.empty()) return;
    lua_getglobal(L, "print");
    push(L, std::string_view(line));
    lua_call(L, 1, 0);
}

std::string new_display_id() {
    std::array<unsigned char, 16> bytes{};
    // Sixteen bytes always come whole. A counter would not do, since a notebook that is opened again keeps its ids.
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        throw state_error("display", "the system gives no random numbers");
    std::string id;
    for (const unsigned char b : bytes) id += str("0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]);
    return id;
}

void push_comm_receiver(lua_State* L) {
    if (lua_getfield(L, LUA_REGISTRYINDEX, kOnComm) == LUA_TFUNCTION) return;
    lua_pop(L, 1);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria.notebook.comm");
    lua_call(L, 1, 0);
    lua_getfield(L, LUA_REGISTRYINDEX, kOnComm);
}

}  // namespace lunaria
