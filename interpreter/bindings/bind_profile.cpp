// The module "lunaria.profiling" behind lunaria/profile.lua.
#include "core/run/profile.h"
#include "interpreter/bindings/libraries.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/values.h"

namespace lunaria {

std::string running_place(lua_State* L) {
    LuaHost* host = LuaHost::existing(L);
    std::string place = host && host->machine().is_running() ? host->machine().here() : std::string();
    if (place.empty()) place = current_place(State::of(L).running());
    while (!place.empty() && (place.back() == ' ' || place.back() == ':')) place.pop_back();
    return place;
}

namespace {

void push_events(lua_State* L, const std::vector<Profile::Event>& events) {
    lua_createtable(L, static_cast<int>(events.size()), 0);
    for (size_t i = 0; i < events.size(); ++i) {
        const Profile::Event& e = events[i];
        lua_createtable(L, 0, 9);
        push(L, std::string_view(e.operators));
        lua_setfield(L, -2, "operators");
        push(L, std::string_view(e.place));
        lua_setfield(L, -2, "place");
        const std::pair<const char*, double> numbers[] = {
            {"start", e.start}, {"seconds", e.seconds}, {"flops", e.flops}};
        for (auto [name, value] : numbers) {
            lua_pushnumber(L, value);
            lua_setfield(L, -2, name);
        }
        const std::pair<const char*, int64_t> sizes[] = {{"bytes", e.bytes}, {"live", e.live}};
        for (auto [name, value] : sizes) {
            lua_pushinteger(L, value);
            lua_setfield(L, -2, name);
        }
        lua_pushboolean(L, e.generated);
        lua_setfield(L, -2, "generated");
        lua_pushboolean(L, e.compiled);
        lua_setfield(L, -2, "compiled");
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
}

// run(f, arguments...): the events, the seconds that the call took, then its results.
int run(lua_State* L) {
    luaL_checkany(L, 1);
    std::vector<Profile::Event> events;
    double seconds = 0;
    {
        Profile profile([L] { return running_place(L); });
        const double start = profile.now();
        lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
        seconds = profile.now() - start;
        events = std::move(profile.events);
    }
    luaL_checkstack(L, 8, "too many results");
    push_events(L, events);
    lua_insert(L, 1);
    lua_pushnumber(L, seconds);
    lua_insert(L, 2);
    return lua_gettop(L);
}

}  // namespace

int open_profiling(lua_State* L) {
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, protect<run>);
    lua_setfield(L, -2, "run");
    return 1;
}

}  // namespace lunaria
