// The module "lunaria.profiling" behind lunaria/profile.lua.
#include <memory>

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

constexpr const char* kOpen = "lunaria.profiling.open";

using Held = std::unique_ptr<Profile>;

Held& held_at(lua_State* L) { return *static_cast<Held*>(luaL_checkudata(L, 1, kOpen)); }

// begin(most): an open profile, which finish ends. most: it takes no more events; nil: any number.
int begin(lua_State* L) {
    const int64_t most = lua_isnoneornil(L, 1) ? INT64_MAX : integer_at(L, 1, "begin", "most");
    Held* held = new (lua_newuserdatauv(L, sizeof(Held), 0)) Held();
    luaL_setmetatable(L, kOpen);
    // The profile outlives the coroutine that opens it.
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State* main = lua_tothread(L, -1);
    lua_pop(L, 1);
    *held = std::make_unique<Profile>([main] { return running_place(main); }, static_cast<size_t>(most));
    return 1;
}

// finish(profile): its events, and the seconds since it was opened.
int finish(lua_State* L) {
    Held& held = held_at(L);
    if (!held) throw state_error("profile", "the profile has ended");
    const double seconds = held->now();
    const std::vector<Profile::Event> events = std::move(held->events);
    held.reset();
    push_events(L, events);
    lua_pushnumber(L, seconds);
    return 2;
}

int collect(lua_State* L) {
    std::destroy_at(&held_at(L));
    return 0;
}

}  // namespace

int open_profiling(lua_State* L) {
    luaL_newmetatable(L, kOpen);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushcfunction(L, protect<run>);
    lua_setfield(L, -2, "run");
    lua_pushcfunction(L, protect<begin>);
    lua_setfield(L, -2, "begin");
    lua_pushcfunction(L, protect<finish>);
    lua_setfield(L, -2, "finish");
    return 1;
}

}  // namespace lunaria
