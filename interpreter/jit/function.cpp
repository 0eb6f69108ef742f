#include "interpreter/jit/function.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <optional>

#include "core/base/log.h"
#include "interpreter/bindings/values.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/host/lua_reference.h"
#include "interpreter/jit/compiled.h"
#include "interpreter/jit/hot.h"
#include "interpreter/jit/recorder.h"
#include "interpreter/jit/region.h"
#include "interpreter/jit/size_pattern.h"
#include "interpreter/protect.h"

namespace lunaria::jit {

namespace {

// Empty once it was collected: what is finalized after it may still have it.
using Held = std::optional<Function>;

Held& held_at(lua_State* L, int index) { return *static_cast<Held*>(luaL_checkudata(L, index, kMetatable)); }

}  // namespace

Function& function_at(lua_State* L, int index) {
    if (Held& held = held_at(L, index)) return *held;
    throw state_error("graph mode", "the compiled function was collected");
}

namespace {

// The same for functions that know the metatable: their upvalue 1.
Held& own_function(lua_State* L) {
    if (lua_isuserdata(L, 1) && lua_getmetatable(L, 1)) {
        const bool ours = lua_rawequal(L, -1, lua_upvalueindex(1)) != 0;
        lua_pop(L, 1);
        if (ours) return *static_cast<Held*>(lua_touserdata(L, 1));
    }
    return held_at(L, 1);
}

int keepers_key;

// Enters the table on the stack into the table of keepers; its number there. `reference`: that table in the registry.
int add_keeper(lua_State* L, int& reference) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &keepers_key) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "v");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_createtable(L, 2, 0);
        lua_pushvalue(L, -2);
        lua_pushinteger(L, luaL_ref(L, LUA_REGISTRYINDEX));
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, 0);
        lua_rawseti(L, -2, 2);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &keepers_key);
        lua_pop(L, 1);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &keepers_key);
    }
    lua_rawgeti(L, -1, 1);
    reference = static_cast<int>(lua_tointeger(L, -1));
    lua_rawgeti(L, -2, 2);
    const auto number = static_cast<int>(lua_tointeger(L, -1)) + 1;
    lua_pushinteger(L, number);
    lua_rawseti(L, -4, 2);
    lua_pop(L, 3);
    lua_rawgeti(L, LUA_REGISTRYINDEX, reference);
    lua_pushvalue(L, -2);
    lua_rawseti(L, -2, number);
    lua_pop(L, 1);
    return number;
}

// Has the objects of the function's records kept by the function itself.
void keep_objects(Function& f, lua_State* L) {
    lua_getiuservalue(L, 1, kCompiledKept);
    const int table = lua_gettop(L);
    const auto kept = [&](const Value& v) {
        auto* r = vm::object_as<LuaReference>(v);
        if (!r || r->is_kept()) return v;
        const auto position = static_cast<int>(lua_rawlen(L, table)) + 1;
        r->push(L);
        lua_rawseti(L, table, position);
        return vm::make_object<LuaReference>(*r, f.keepers, f.keeper, position);
    };
    // The place of a text; the text is on the stack.
    auto keep = [&](const std::string& text) {
        push(L, std::string_view(text));
        int& position = f.keys[text];
        if (position == 0) {
            position = static_cast<int>(lua_rawlen(L, table)) + 1;
            lua_pushvalue(L, -1);
            lua_rawseti(L, table, position);
        } else {
            lua_pop(L, 1);
            lua_rawgeti(L, table, position);
        }
        return position;
    };
    for_each_new_step(f.tree, [&](Step& step) {
        replace_objects(step, kept);
        if (step.kind > Step::Kind::next || step.object_at || step.args().empty()) return;
        if (Expected& e = step.expected[0];
            e.what == Expected::What::constant && e.constant.kind() == Value::Kind::string) {
            keep(e.constant.string());
            e.pointer = lua_topointer(L, -1);
            lua_pop(L, 1);
        }
        const Value& object = step.args()[0];
        if (object.kind() == Value::Kind::string) {
            step.object_at = keep(object.string());
            lua_pop(L, 1);
        }
        auto* r = vm::object_as<LuaReference>(object);
        if (!r) return;
        step.object_at = r->position();
        if (step.kind != Step::Kind::read || step.args()[1].kind() != Value::Kind::string) return;
        step.key_at = keep(step.args()[1].string());
        lua_pop(L, 1);
    });
    const int count = std::min(static_cast<int>(lua_rawlen(L, table)), Guards::kPool), pooled = lua_gettop(f.pool);
    if (!lua_checkstack(f.pool, count - pooled + Guards::kSpace)) throw std::bad_alloc();
    for (int i = pooled + 1; i <= count; ++i) {
        lua_rawgeti(L, table, i);
        lua_xmove(L, f.pool, 1);
    }
    lua_pop(L, 1);
}

int make(lua_State* L) {
    luaL_checkany(L, 1);
    lua_settop(L, 2);
    Function& f = **new (lua_newuserdatauv(L, sizeof(Held), kCompiledSlots)) Held(std::in_place, LuaHost::of(L));
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, kCompiledTarget);
    // What its records refer to. The function keeps it, and may be collected with it.
    lua_newtable(L);
    f.keeper = add_keeper(L, f.keepers);
    lua_setiuservalue(L, -2, kCompiledKept);
    f.pool = lua_newthread(L);
    lua_setiuservalue(L, -2, kCompiledPool);
    luaL_setmetatable(L, kMetatable);
    if (lua_istable(L, 2)) {
        if (push_option(L, 2, "fullgraph")) f.full = lua_toboolean(L, -1);
        if (push_option(L, 2, "flat")) f.flat = lua_toboolean(L, -1);
        if (push_option(L, 2, "ways")) f.limits.ways = static_cast<size_t>(lua_tointeger(L, -1));
        if (push_option(L, 2, "steps")) f.limits.steps = static_cast<size_t>(lua_tointeger(L, -1));
        if (push_option(L, 2, "patience")) f.patience = lua_tointeger(L, -1);
        if (push_option(L, 2, "label")) f.label = lua_tostring(L, -1);
    }
    lua_settop(L, 3);
    return 1;
}

// Of functions that nobody asked to compile: beyond so many other steps for an operator, Lua is quicker.
constexpr int64_t kStepsPerOperator = 300;
constexpr size_t kWaysUnasked = 64, kStepsUnasked = 20000, kLiveUnasked = 1 << 20;

void count_operators(const Block& block, int64_t& operators, int64_t& others) {
    for (const Step& step : block.steps) ++(step.kind == Step::Kind::op ? operators : others);
    for (const auto& next : block.next) count_operators(*next, operators, others);
}

std::string why_not_worth_it(const Tree& tree) {
    int64_t operators = 0, others = 0;
    count_operators(tree.root, operators, others);
    if (operators == 0) return "it runs no operators on tensors";
    if (others <= kStepsPerOperator * operators) return {};
    return str("it runs only ", operators, " operators on tensors in ", others, " steps");
}

// For LUNARIA_LOG, after a recording.
void tell(Function& f, const Value& target, bool asked_before, bool stopped) {
    const Function::Recording& last = f.recordings.back();
    const auto report = [&](LogTopic topic, const std::string& text) {
        if (logs(topic)) log(topic, str(f.label.empty() ? f.host.describe(target) : f.label, ": ", text));
    };
    if (const std::string& why = f.eager.empty() && stopped ? f.refusal : f.eager; !why.empty()) {
        report(LogTopic::fallbacks, str("it is left to Lua: ", why));
    } else if (!last.failure.empty()) {
        report(LogTopic::fallbacks, str("an error ends the recording: ", last.failure));
    } else if (asked_before) {
        report(LogTopic::recompiles, str("it is recorded again", last.surprise.empty() ? "" : ": ", last.surprise));
    } else {
        report(LogTopic::compiles, str("recorded in ", last.seconds * 1e3, " ms, ", f.tree.steps, " steps"));
    }
}

// Recordings that a function may have at once; more come with its calls, so that new cases never cost more than a part
// of the time.
constexpr int64_t kFreely = 64, kCallsPerRecording = 16;
// Of a function that nobody asked to compile: refusals without a record after which it is not asked for again.
constexpr int64_t kMostRefusals = 4;

bool may_record(const Function& f) {
    return f.calls >= f.retry_at && f.recorded < kFreely + f.calls / kCallsPerRecording;
}

void refuse(Function& f, std::string why) {
    f.refusal = std::move(why);
    f.refused_at = f.calls;
    f.retry_at = f.calls + f.wait;
    f.wait = std::min<int64_t>(2 * f.wait, 1 << 20);
    if (f.unasked && f.tree.steps == 0 && ++f.fruitless >= kMostRefusals) f.eager = f.refusal;
}

// The same of a recording that was stopped. Behind an effect the call goes on in the machine, which is slower than Lua:
// where that comes twice with no compiled call in between, calls are left to Lua from their beginning for a while.
void refuse_recorded(Function& f, std::string why) {
    f.stopped_late = f.progress.effects && f.runs == f.runs_before;
    if (f.runs != f.runs_before) f.wait = kFirstWait;
    f.runs_before = f.runs;
    refuse(f, std::move(why));
}

// Begins anew with nothing recorded: what the function keeps for branches that were taken out goes.
void start_over(Function& f, lua_State* L) {
    std::destroy_at(&f.tree);
    std::construct_at(&f.tree);
    f.keys.clear();
    lua_newtable(L);
    f.keeper = add_keeper(L, f.keepers);
    lua_setiuservalue(L, 1, kCompiledKept);
    f.pool = lua_newthread(L);
    lua_setiuservalue(L, 1, kCompiledPool);
}

// What Lua does at every call, in words; empty where all of the function is in its graphs.
std::string outside_graph(Function& f) {
    std::string found;
    for_each_step(f.tree, [&](Step& step) {
        if (!found.empty() || step.kind != Step::Kind::call) return;
        const Value& callee = step.args()[0];
        found = described(step.span(), str("it calls ", callee.is_node() ? "a function" : f.host.describe(callee),
                                           ", which no graph holds"));
    });
    return found;
}

// What a recording has come to.
struct Recorded {
    bool ok = false;       // the call is done
    bool restart = false;  // it is to be begun anew in Lua
    Value error;
};

// Records what the tree does not know of the call.
Recorded record(Function& f, lua_State* L, const Call& call, vm::Values& results) {
    ++f.recorded;
    f.resumed += f.progress.effects;
    lua_getiuservalue(L, 1, kCompiledTarget);
    const Value target = f.host.to_value(L, -1);
    lua_pop(L, 1);
    const auto start = std::chrono::steady_clock::now();
    const size_t before = f.tree.steps;
    struct Arguments {
        Arguments(lua_State* L, const Call& call) : L(L) {
            lua_createtable(L, call.count, 0);
            for (int i = 0; i < call.count; ++i) {
                lua_pushvalue(L, call.first + i);
                lua_rawseti(L, -2, i + 1);
            }
            table = luaL_ref(L, LUA_REGISTRYINDEX);
        }
        ~Arguments() { luaL_unref(L, LUA_REGISTRYINDEX, table); }
        lua_State* L;
        int table;
    } arguments(L, call);
    const Call kept{call.L, call.first, call.count, 0, nullptr, arguments.table};
    Recorder recorder(f.host, natives_of(L), kept, f.tree, f.progress, f.limits);
    const vm::Host::Protected outcome = f.host.call_protected([&] { results = recorder.record(target); });
    const bool stopped = !recorder.stopped().empty() && !recorder.interrupted();
    if (stopped) recorder.withdraw();
    if (Block* parted = recorder.parted(); parted && !stopped) join_sizes(f.tree, *parted);
    keep_objects(f, L);
    settle(f.tree);
    if (stopped)
        refuse_recorded(f, recorder.stopped());
    else if (!recorder.grew() && ++f.fruitless >= 32)
        refuse(f, "the same calls have to be recorded over and over");
    if (std::string outside = f.full ? outside_graph(f) : ""; !outside.empty()) {
        refuse(f, std::move(outside));
        f.eager = f.refusal;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (f.unasked && f.eager.empty() && outcome.ok && !stopped) f.eager = why_not_worth_it(f.tree);
    std::string failure;
    if (!outcome.ok && !recorder.restart())
        failure = outcome.error.kind() == Value::Kind::string ? outcome.error.string() : "an error object";
    f.recordings.push_back({recorder.surprise(), failure, seconds.count(), f.tree.steps});
    if (f.recordings.size() > 100) f.recordings.erase(f.recordings.begin());
    tell(f, target, before > 0, stopped);
    return {outcome.ok && !recorder.restart(), recorder.can_restart(), outcome.error};
}

// Runs the call as far as it is known and records the rest. False: it has to be done in Lua.
bool attempt(Function& f, lua_State* L, const Call& call, vm::Values& results) {
    Progress& progress = f.progress;
    struct Clear {
        Progress& progress;
        ~Clear() { progress.clear(); }
    } clear{progress};
    // Not at the end of a call: its results may be among what the function keeps.
    constexpr size_t kMostForgotten = 4096;
    if (f.tree.forgotten > kMostForgotten) start_over(f, L);
    RandomStream random;
    if (f.tree.random) random = default_generator().state();
    if (run(f.host, call, f.tree, f.flat, progress, results)) {
        ++f.runs;
        if (f.tree.dirty) settle(f.tree);
        return true;
    }
    results.clear();
    if (!progress.effects && f.tree.random) default_generator().set_state(random);
    if (!progress.effects && !may_record(f)) return false;
    random = default_generator().state();
    const Recorded recorded = record(f, L, call, results);
    // Of a function that nobody asked to compile it may be large, and nothing will look for it.
    if (f.unasked && !f.eager.empty()) {
        std::destroy_at(&f.tree);
        std::construct_at(&f.tree);
    }
    if (recorded.ok) return true;
    results.clear();
    if (recorded.restart) {
        default_generator().set_state(random);
        return false;
    }
    f.host.push(L, recorded.error);
    lua_error(L);
    return false;
}

// Whether the function is left to Lua for this call.
bool is_left_to_lua(Function& f, lua_State* L) {
    // A program that is debugged runs as it is written.
    if (!f.stops) {
        lua_getiuservalue(L, 1, kCompiledTarget);
        f.stops = Debugger::calls_breakpoint(L, -1);
        lua_pop(L, 1);
    }
    const bool waits = (f.tree.steps == 0 || f.stopped_late) && f.calls < f.retry_at;
    return waits || !f.eager.empty() || f.busy || *f.stops || State::of(L).debugger().is_active() ||
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
    f.limits.ways = kWaysUnasked;
    f.limits.steps = kStepsUnasked;
    f.limits.live = kLiveUnasked;
}

bool is_left_to_lua_for_good(lua_State* L, int compiled) {
    const Held& held = held_at(L, compiled);
    return held && !held->eager.empty();
}

bool is_collected(lua_State* L, int compiled) { return !held_at(L, compiled); }

// try(f, arguments...): whether the call is done; take(f) gives its results then.
int try_call(lua_State* L) {
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
    Call call{L, 2, lua_gettop(L) - 1};
    luaL_checkstack(L, 16, "graph mode");
    lua_getiuservalue(L, 1, kCompiledKept);
    call.kept = lua_gettop(L);
    call.pool = f.pool;
    const bool done = attempt(f, L, call, f.results);
    f.interpreted += !done;
    check_full(f, done);
    lua_pushboolean(L, done);
    return 1;
}

namespace {

// Pushes the arguments in the table at `list`[i], whose number it has as n.
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
// as n; or with what the function `batches` gives, up to nil. The results of the last call, after the number of calls;
// the first result of each goes to the table `each`, if there is one.
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
    Steady steady;
    struct Use {
        explicit Use(Progress& p) : progress(p) {}
        ~Use() { progress.steady = nullptr; }
        Progress& progress;
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
        const Call call{L, kKept + 1, lua_gettop(L) - kKept, kKept, f.pool};
        ++f.calls;
        bool compiled = false;
        if (!is_left_to_lua(f, L)) {
            State::of(L).pace(L);
            Busy busy(f);
            LuaHost::Thread thread(f.host, L);
            luaL_checkstack(L, 16, "graph mode");
            const int64_t runs = f.runs;
            f.progress.steady = listed ? &steady : nullptr;
            compiled = attempt(f, L, call, results);
            f.progress.steady = nullptr;
            // The records have grown, or something was met that they do not know.
            if (listed && (f.runs == runs || done == 0 || !steady.is_of(f.tree))) steady.prepare(f.tree);
        }
        check_full(f, compiled);
        // The records may have begun anew.
        lua_getiuservalue(L, 1, kCompiledKept);
        lua_replace(L, kKept);
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

int is_jit(lua_State* L) {
    lua_pushboolean(L, luaL_testudata(L, 1, kMetatable) != nullptr);
    return 1;
}

// Whether a machine runs: what it calls belongs to what it records or differentiates. A recorder answers in
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

Tree& tree_at(lua_State* L, int index) { return function_at(L, index).tree; }

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
                                                               {"target", protect<target>},
                                                               {"is_jit", protect<is_jit>},
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
