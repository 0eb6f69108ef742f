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
// A function that is about to be compiled is watched for the length of a call. With more calls than this of functions
// that are compiled, or about to be, it is a loop around them: to record it would take as long as all its turns, and
// gain little. After so many further calls it is watched again.
constexpr int kWithin = 16, kWatchedAgain = 1024;

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

// The watched call.
class Watched {
  public:
    void begin(lua_State* L, const void* function, const void* call) { *this = Watched(L, function, call); }
    const void* function() const { return function_; }
    bool is_over() const { return over_; }
    bool is_on(const lua_State* L) const { return function_ && thread_ == L; }
    bool is_loop() const { return within_ > kWithin; }
    // Something begins that counts if it is within the call; `call`: that of `function`, or null.
    void note(lua_State* L, const void* function, const void* call) {
        if (!function_ || over_ || L != thread_) return;
        // The next call of the function takes the place of the watched one.
        over_ = (function == function_ && call == call_) || !is_on_stack(L) || ++within_ > kWithin;
    }

    Watched() = default;

  private:
    Watched(lua_State* L, const void* function, const void* call) : thread_(L), function_(function), call_(call) {}
    bool is_on_stack(lua_State* L) const {
        constexpr int kLevels = 64;
        lua_Debug frame;
        for (int level = 0; level < kLevels && lua_getstack(L, level, &frame); ++level) {
            if (frame.i_ci != call_) continue;
            if (!lua_checkstack(L, 1)) return false;
            lua_getinfo(L, "f", &frame);
            const bool same = lua_topointer(L, -1) == function_;
            lua_pop(L, 1);
            return same;
        }
        return false;
    }
    const lua_State* thread_ = nullptr;
    const void *function_ = nullptr, *call_ = nullptr;  // null: no call is watched
    int within_ = 0;
    bool over_ = false;
};

Watched& watched() {
    thread_local Watched call;
    return call;
}

// Recently called functions, by address.
struct Calls {
    const void* function = nullptr;
    int working = 0, idle = 0;
    int passed = 0;         // whether a watched call was found to be a loop around others (-1) or not (1)
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
            *place = {function, 0, 0, 0, bytes, definition_of(L, index)};
        }
        if (!is_known && ++newcomers % kNowAndThen != 0) return *place;
        std::rotate(set.begin(), place, place + 1);
        return set.front();
    }
    // Enters what was found about the watched function.
    void take(const Watched& call) {
        for (auto& set : sets)
            for (Calls& c : set)
                if (c.function == call.function()) c.passed = call.is_loop() ? -1 : 1;
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

// Whether the function, which is about to be compiled, is no loop around others; asked again until that is known.
bool passes(Counts& counts, lua_State* L, Calls& c, const void* call) {
    Watched& other = watched();
    other.note(L, c.function, call);
    if (other.function() && other.is_over()) {
        counts.take(other);
        other = Watched();
    }
    if (c.passed == 0 && !other.is_on(L)) other.begin(L, c.function, call);
    if (c.passed < 0 && c.working > kWatchedAgain) c.passed = c.working = 0;
    return c.passed > 0;
}

// `call`: the running one.
bool is_hot(Counts& counts, lua_State* L, int function, const void* call, bool& idle) {
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
    if (is_known && hot && level_of_mode(L) == trace::Level::paying && !passes(counts, L, c, call)) return false;
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
        if (!is_hot(counts, L, function, caller.i_ci, idle)) {
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

void note_call(lua_State* L) { watched().note(L, nullptr, nullptr); }

void push_mode(lua_State* L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &mode_key) != LUA_TNIL) return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushboolean(L, false);
    lua_setfield(L, -2, "graph");
    lua_pushliteral(L, "auto");
    lua_setfield(L, -2, "jit_level");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &mode_key);
}

trace::Level level_named(std::string_view name) {
    return name == "O0" ? trace::Level::nothing : name == "O1" ? trace::Level::at_once : trace::Level::paying;
}

trace::Level level_of_mode(lua_State* L) {
    push_mode(L);
    lua_getfield(L, -1, "jit_level");
    const trace::Level level = level_named(lua_tostring(L, -1));
    lua_pop(L, 2);
    return level;
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
