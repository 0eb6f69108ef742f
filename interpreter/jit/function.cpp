#include "interpreter/jit/function.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <optional>

#include "core/base/log.h"
#include "core/random/random.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/host/lua_outside.h"
#include "interpreter/jit/compiled.h"
#include "interpreter/jit/hot.h"
#include "interpreter/protect.h"
#include "interpreter/values/callables.h"
#include "interpreter/values/lua_reference.h"
#include "interpreter/values/values.h"
#include "jit/trace/recorder.h"
#include "jit/trace/region.h"
#include "jit/trace/size_pattern.h"

namespace lunaria::jit {

namespace {

// Empty once it was collected: an object that is finalized after it may still refer to it.
using Held = std::optional<Function>;

Held& held_at(lua_State* L, int index) { return *static_cast<Held*>(luaL_checkudata(L, index, kMetatable)); }

}  // namespace

Function& function_at(lua_State* L, int index) {
    if (Held& held = held_at(L, index)) return *held;
    throw state_error("graph mode", "the compiled function was collected");
}

namespace {

// The same for functions with the metatable as upvalue 1.
Held& own_function(lua_State* L) {
    if (lua_isuserdata(L, 1) && lua_getmetatable(L, 1)) {
        const bool ours = lua_rawequal(L, -1, lua_upvalueindex(1)) != 0;
        lua_pop(L, 1);
        if (ours) return *static_cast<Held*>(lua_touserdata(L, 1));
    }
    return held_at(L, 1);
}

// The function at the index keeps the objects that its records refer to, which may be collected with it.
void begin_keeping(Function& f, lua_State* L, int index) {
    f.kept.begin(L);
    lua_setiuservalue(L, index, kCompiledPool);
    lua_setiuservalue(L, index, kCompiledKept);
}

int make(lua_State* L) {
    luaL_checkany(L, 1);
    lua_settop(L, 2);
    // What is compiled already is compiled once more from what it was made of.
    if (luaL_testudata(L, 1, kMetatable)) {
        lua_getiuservalue(L, 1, kCompiledTarget);
        lua_replace(L, 1);
    }
    Function& f = **new (lua_newuserdatauv(L, sizeof(Held), kCompiledSlots)) Held(std::in_place, LuaHost::of(L));
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, kCompiledTarget);
    begin_keeping(f, L, lua_gettop(L));
    luaL_setmetatable(L, kMetatable);
    if (lua_istable(L, 2)) {
        if (push_option(L, 2, "fullgraph")) f.full = lua_toboolean(L, -1);
        if (push_option(L, 2, "ways")) f.limits.ways = static_cast<size_t>(lua_tointeger(L, -1));
        if (push_option(L, 2, "steps")) f.limits.steps = static_cast<size_t>(lua_tointeger(L, -1));
        if (push_option(L, 2, "patience")) f.patience = lua_tointeger(L, -1);
        if (f.patience > 0) f.level = level_of_mode(L);
        if (push_option(L, 2, "level")) f.level = level_named(lua_tostring(L, -1));
        if (push_option(L, 2, "label")) f.label = lua_tostring(L, -1);
    }
    lua_settop(L, 3);
    return 1;
}

constexpr size_t kWaysUnasked = 64, kStepsUnasked = 20000, kLiveUnasked = 1 << 20;

// Begins anew with nothing recorded: objects kept for removed branches are dropped.
void start_over(Function& f, lua_State* L) {
    f.start_over();
    begin_keeping(f, L, 1);
}

// Whether the function is left to Lua for this call.
bool is_left_to_lua(Function& f, lua_State* L) {
    // A program that is debugged runs in Lua.
    if (!f.stops) {
        lua_getiuservalue(L, 1, kCompiledTarget);
        f.stops = Debugger::calls_breakpoint(L, -1);
        lua_pop(L, 1);
    }
    return f.waits() || !f.eager.empty() || f.busy || *f.stops || State::of(L).debugger().is_active() ||
           f.calls <= f.patience || lua_isyieldable(L);
}

// `done`: whether the call was compiled or recorded.
void check_full(const Function& f, bool done) {
    if (!f.full || (done && f.refused_at != f.calls)) return;
    if (const std::string& why = f.eager.empty() ? f.refusal : f.eager; !why.empty())
        throw state_error("jit", str("the function cannot be compiled as a whole: ", why))
            .hint("leave out the option fullgraph to have such parts run by Lua");
}

struct Busy {
    explicit Busy(Function& f) : flag(f.busy) { flag = true; }
    ~Busy() { flag = false; }
    bool& flag;
};

}  // namespace

void make_for_entry(lua_State* L, int function) {
    function = lua_absindex(L, function);
    lua_pushcfunction(L, protect<make>);
    lua_pushvalue(L, function);
    lua_call(L, 1, 1);
    Function& f = function_at(L, -1);
    f.unasked = true;
    f.level = level_of_mode(L);
    f.limits.ways = kWaysUnasked;
    f.limits.steps = kStepsUnasked;
    f.limits.live = kLiveUnasked;
}

bool is_left_to_lua_for_good(lua_State* L, int compiled) {
    const Held& held = held_at(L, compiled);
    return held && !held->eager.empty();
}

bool is_collected(lua_State* L, int compiled) { return !held_at(L, compiled); }

// try(f, arguments...): whether the call is done; take(f) then returns its results.
int try_call(lua_State* L) {
    note_call(L);
    Held& held = own_function(L);
    if (!held) {
        lua_pushboolean(L, false);
        return 1;
    }
    Function& f = *held;
    ++f.calls;
    if (is_left_to_lua(f, L)) {
        check_full(f, false);
        ++f.interpreted;
        lua_pushboolean(L, false);
        return 1;
    }
    State::of(L).pace(L);
    Busy busy(f);
    LuaHost::Thread thread(f.host, L);
    f.results.clear();
    const int count = lua_gettop(L) - 1;
    luaL_checkstack(L, 16, "graph mode");
    if (f.is_crowded()) start_over(f, L);
    lua_getiuservalue(L, 1, kCompiledKept);
    LuaOutside outside(f.host, {count + 2, 2, count}, f.kept);
    const bool done = f.attempt(outside, f.results);
    f.interpreted += !done;
    check_full(f, done);
    lua_pushboolean(L, done);
    return 1;
}

namespace {

// Pushes the arguments in the table at `list`[i], whose number is in its field n.
void push_batch(lua_State* L, int list, lua_Integer i) {
    lua_rawgeti(L, list, i);
    const int batch = lua_gettop(L);
    lua_getfield(L, batch, "n");
    const auto n = static_cast<int>(lua_tointeger(L, -1));
    lua_pop(L, 1);
    luaL_checkstack(L, n + 16, "too many arguments");
    for (int k = 1; k <= n; ++k) lua_rawgeti(L, batch, k);
    lua_remove(L, batch);
}

// sink(f, steps, batches, each): calls f `steps` times with the batches in turn, tables of arguments with their number
// as n; or with the results of the function `batches`, up to nil. Returns the number of calls, then the results of the
// last one; the first result of each goes to the table `each`, if there is one.
int sink(lua_State* L) {
    Function& f = function_at(L, 1);
    const lua_Integer steps = luaL_checkinteger(L, 2);
    const bool listed = lua_istable(L, 3);
    const lua_Integer count = listed ? static_cast<lua_Integer>(lua_rawlen(L, 3)) : 0;
    const lua_Integer first = luaL_optinteger(L, 5, 0);
    luaL_argcheck(L, !listed || count > 0, 3, "there are no batches");
    luaL_argcheck(L, first >= 0 && (!listed || first < count), 5, "there is no such batch");
    lua_settop(L, 4);
    lua_getiuservalue(L, 1, kCompiledKept);
    constexpr int kKept = 5;
    trace::Steady steady;
    struct Use {
        explicit Use(trace::Progress& p) : progress(p) {}
        ~Use() { progress.steady = nullptr; }
        trace::Progress& progress;
    } use(f.progress);
    lua_Integer done = 0;
    for (; done < steps; ++done) {
        if (listed) {
            lua_settop(L, kKept);
            push_batch(L, 3, (first + done) % count + 1);
        } else {
            const int last = lua_gettop(L);
            lua_pushvalue(L, 3);
            lua_call(L, 0, LUA_MULTRET);
            const int given = lua_gettop(L) - last;
            if (given == 0 || lua_isnil(L, last + 1)) {
                lua_settop(L, last);
                break;
            }
            lua_rotate(L, kKept + 1, given);
            lua_settop(L, kKept + given);
        }
        vm::Values results;
        ++f.calls;
        bool compiled = false;
        if (!is_left_to_lua(f, L)) {
            State::of(L).pace(L);
            Busy busy(f);
            LuaHost::Thread thread(f.host, L);
            luaL_checkstack(L, 16, "graph mode");
            const int64_t runs = f.runs;
            f.progress.steady = listed ? &steady : nullptr;
            if (f.is_crowded()) {
                start_over(f, L);
                lua_getiuservalue(L, 1, kCompiledKept);
                lua_replace(L, kKept);
            }
            LuaOutside outside(f.host, {kKept, kKept + 1, lua_gettop(L) - kKept}, f.kept);
            compiled = f.attempt(outside, results);
            f.progress.steady = nullptr;
            // The records have grown, or met something new.
            if (listed && (f.runs == runs || done == 0 || !steady.is_of(f.tree))) steady.prepare(f.tree);
        }
        check_full(f, compiled);
        if (compiled) {
            lua_settop(L, kKept);
            luaL_checkstack(L, static_cast<int>(results.size()) + 8, "too many results");
            for (const Value& v : results) f.host.push(L, v);
        } else {
            ++f.interpreted;
            lua_getiuservalue(L, 1, kCompiledTarget);
            lua_insert(L, kKept + 1);
            lua_call(L, lua_gettop(L) - kKept - 1, LUA_MULTRET);
            if (listed) steady.prepare(f.tree);
        }
        if (lua_istable(L, 4) && lua_gettop(L) > kKept) {
            lua_pushvalue(L, kKept + 1);
            lua_rawseti(L, 4, done + 1);
        }
    }
    lua_pushinteger(L, done);
    lua_replace(L, kKept);
    return lua_gettop(L) - kKept + 1;
}

}  // namespace

int take(lua_State* L) {
    Function& f = *own_function(L);
    vm::Values results = std::move(f.results);
    luaL_checkstack(L, static_cast<int>(results.size()) + 8, "too many results");
    for (const Value& v : results) f.host.push(L, v);
    return static_cast<int>(results.size());
}

namespace {

int target(lua_State* L) {
    held_at(L, 1);
    lua_getiuservalue(L, 1, kCompiledTarget);
    return 1;
}

// trial(f, on): whether calls of f are recorded only, and change nothing.
int trial(lua_State* L) {
    function_at(L, 1).trial = lua_toboolean(L, 2) != 0;
    return 0;
}

int is_jit(lua_State* L) {
    lua_pushboolean(L, luaL_testudata(L, 1, kMetatable) != nullptr);
    return 1;
}

// Whether a machine runs: functions that it calls are part of its recording or differentiation. A recorder answers in
// this function's place as long as it records.
int inside(lua_State* L) {
    lua_pushboolean(L, LuaHost::of(L).runs());
    return 1;
}

int name(lua_State* L) {
    LuaHost& host = LuaHost::of(L);
    push(L, std::string_view(host.describe(host.to_value(L, 1))));
    return 1;
}

}  // namespace

trace::Tree& tree_at(lua_State* L, int index) { return function_at(L, index).tree; }

int open(lua_State* L) {
    if (luaL_newmetatable(L, kMetatable)) {
        lua_pushcfunction(L, [](lua_State* state) {
            if (auto* held = static_cast<Held*>(luaL_testudata(state, 1, kMetatable))) held->reset();
            return 0;
        });
        lua_setfield(L, -2, "__gc");
    }
    lua_newtable(L);
    for (auto [name, function] :
         {std::pair<const char*, lua_CFunction>{"try", protect<try_call>}, {"take", protect<take>}}) {
        lua_pushvalue(L, -2);
        lua_pushcclosure(L, function, 1);
        lua_setfield(L, -2, name);
    }
    lua_insert(L, -2);
    lua_setfield(L, -2, "metatable");
    push_mode(L);
    lua_setfield(L, -2, "mode");
    const std::pair<const char*, lua_CFunction> functions[] = {{"make", protect<make>},
                                                               {"try", protect<try_call>},
                                                               {"take", protect<take>},
                                                               {"target", protect<target>},
                                                               {"is_jit", protect<is_jit>},
                                                               {"trial", protect<trial>},
                                                               {"whole", protect<whole>},
                                                               {"inside", protect<inside>},
                                                               {"text", protect<text>},
                                                               {"report", protect<report>},
                                                               {"kernels", protect<kernels>},
                                                               {"sink", protect<sink>},
                                                               {"lowered", protect<lowered>},
                                                               {"name", protect<name>},
                                                               {"compiled", protect<compiled>},
                                                               {"note_compiled", protect<note_compiled>},
                                                               {"all_compiled", protect<all_compiled>}};
    for (auto [name, function] : functions) {
        lua_pushcfunction(L, function);
        lua_setfield(L, -2, name);
    }
    return 1;
}

}  // namespace lunaria::jit
