#include "interpreter/jit/hot.h"

#include <algorithm>
#include <array>

#include "core/memory/memory.h"
#include "interpreter/errors/frames.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/jit/function.h"
#include "interpreter/loader/prologue.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/callables.h"

namespace lunaria::jit {

namespace {

// The number of calls that make tensors before a function is compiled. The first may be a warm-up, as it is for cells.
constexpr int kWorking = 2;
// The number of calls that make none after which a function is left alone.
constexpr int kIdle = 64;

// The place of a function's definition.
struct Definition {
    const char* source = nullptr;
    int line = 0;
    bool operator==(const Definition&) const = default;
};

Definition definition_of(lua_State* L, int function) {
    lua_Debug info;
    lua_pushvalue(L, function);
    lua_getinfo(L, ">S", &info);
    return {info.source, info.linedefined};
}

// Recently called functions, by address.
struct Calls {
    const void* function = nullptr;
    int working = 0, idle = 0;
    uint64_t bytes = 0;     // bytes of tensors that this thread had made at the last call
    Definition definition;  // of the function that was called first
};
// A few functions share a set, with the one called last in front. A new function mostly takes the last place, so that
// of many functions called in turn some stay long enough; now and then it takes the first place, so that a function
// that is never called again does not stay.
struct Counts {
    static constexpr size_t kSets = 512;
    std::array<std::array<Calls, 4>, kSets> sets;
    unsigned newcomers = 0;

    Calls& of(lua_State* L, int index, uint64_t bytes) {
        const void* function = lua_topointer(L, index);
        // Addresses are multiples of a few sizes, so that their bits are mixed.
        const uint64_t mixed = reinterpret_cast<uintptr_t>(function) * uint64_t{0x9e3779b97f4a7c15};
        auto& set = sets[(mixed >> 32) % kSets];
        constexpr unsigned kNowAndThen = 8;
        auto place = std::ranges::find(set, function, &Calls::function);
        const bool is_known = place != set.end();
        if (!is_known) {
            place = std::ranges::find(set, nullptr, &Calls::function);
            if (place == set.end()) --place;
            *place = {function, 0, 0, bytes, definition_of(L, index)};
        }
        if (!is_known && ++newcomers % kNowAndThen != 0) return *place;
        std::rotate(set.begin(), place, place + 1);
        return set.front();
    }
};

int compiled_key, entry_key, mode_key;

// While it lives, a call of entry() is on a stack.
class OnStack {
  public:
    explicit OnStack(State& state) : state_(state) { ++state_.prologue_calls; }
    ~OnStack() { --state_.prologue_calls; }
    OnStack(const OnStack&) = delete;
    OnStack& operator=(const OnStack&) = delete;

  private:
    State& state_;
};

// The table of compiled functions, by the original function or object.
void push_compiled(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &compiled_key) != LUA_TNIL) return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &compiled_key);
}

bool is_hot(Counts& counts, lua_State* L, int function, bool& idle) {
    const uint64_t bytes = thread_allocated_bytes();
    Calls& c = counts.of(L, function, bytes);
    if (c.bytes != bytes)
        ++c.working;
    else
        ++c.idle;
    c.bytes = bytes;
    idle = c.working == 0 && c.idle > kIdle;
    const bool hot = c.working >= kWorking;
    if (!hot && !idle) return false;
    const bool is_known = c.definition == definition_of(L, function);
    c = {};
    if (is_known) return hot;  // the prologue does not ask again
    // Another function was defined there before, whose calls tell nothing about this one.
    counts.of(L, function, bytes);
    idle = false;
    return false;
}

// entry(false, arguments...): the compiled function if it did the call, false if the body has to; entry(compiled): the
// results. Upvalues: the metatable of compiled functions, the table of compiled functions, Counts.
int entry(lua_State* L) {
    if (!lua_isboolean(L, 1)) return take(L);
    const OnStack here(State::of(L));
    const int count = lua_gettop(L);
    auto decline = [&] {
        lua_pushboolean(L, false);
        return 1;
    };
    lua_Debug caller;
    if (lua_isyieldable(L) || LuaHost::of(L).runs() || is_watched(L) || !lua_getstack(L, 1, &caller) ||
        !lua_checkstack(L, 8))
        return decline();
    lua_getinfo(L, "f", &caller);
    const int function = count + 1;
    lua_pushvalue(L, function);
    lua_rawget(L, lua_upvalueindex(2));
    if (lua_isnil(L, -1)) {
        bool idle = false;
        auto& counts = *static_cast<Counts*>(lua_touserdata(L, lua_upvalueindex(3)));
        if (!is_hot(counts, L, function, idle)) {
            if (idle) release_entry(L, function);
            return decline();
        }
        lua_settop(L, function);
        // The stand-ins for the library's functions must exist before anything is recorded.
        lua_getglobal(L, "require");
        lua_pushliteral(L, "lunaria.graph");
        lua_call(L, 1, 0);
        make_for_entry(L, function);
        lua_pushvalue(L, function);
        lua_pushvalue(L, -2);
        lua_rawset(L, lua_upvalueindex(2));
    }
    lua_replace(L, 1);
    lua_settop(L, count);
    if (try_call(L); lua_toboolean(L, -1)) {
        lua_settop(L, 1);
        return 1;
    }
    if (is_left_to_lua_for_good(L, 1)) {
        lua_getinfo(L, "f", &caller);
        release_entry(L, -1);
    }
    return decline();
}

void push_entry(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &entry_key) != LUA_TNIL) return;
    lua_pop(L, 1);
    luaL_requiref(L, "lunaria.jit", protect<open>, 0);
    lua_pop(L, 1);
    luaL_getmetatable(L, kMetatable);
    push_compiled(L);
    new (lua_newuserdatauv(L, sizeof(Counts), 0)) Counts();
    lua_pushcclosure(L, protect<entry>, 3);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &entry_key);
}

}  // namespace

void watch_functions(lua_State* L, bool on) {
    luaL_checkstack(L, 8, "graph mode");
    if (on)
        push_entry(L);
    else
        lua_pushnil(L);
    set_entry(L);
}

void push_mode(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &mode_key) != LUA_TNIL) return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 1);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "graph");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &mode_key);
}

int compiled(lua_State* L) {
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    push_compiled(L);
    lua_insert(L, 1);
    if (lua_rawget(L, 1) != LUA_TNIL && is_collected(L, -1)) lua_pushnil(L);
    return 1;
}

int note_compiled(lua_State* L) {
    luaL_checkany(L, 2);
    lua_settop(L, 2);
    push_compiled(L);
    lua_insert(L, 1);
    lua_rawset(L, 1);
    return 0;
}

int all_compiled(lua_State* L) {
    push_compiled(L);
    const int table = lua_gettop(L);
    lua_newtable(L);
    lua_Integer count = 0;
    for (lua_pushnil(L); lua_next(L, table);) {
        if (is_collected(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        lua_createtable(L, 2, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 2);
        lua_pushvalue(L, -2);
        lua_rawseti(L, -2, 1);
        lua_rawseti(L, table + 1, ++count);
    }
    return 1;
}

}  // namespace lunaria::jit
