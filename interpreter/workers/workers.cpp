#include "interpreter/workers/workers.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/interrupt.h"
#include "core/random/own_generator.h"
#include "core/run/placement.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/errors/script.h"
#include "interpreter/host/lua_host.h"
#include "interpreter/protect.h"
#include "interpreter/state.h"
#include "interpreter/values/values.h"
#include "interpreter/watchers/graph_trace.h"
#include "interpreter/workers/data_handles.h"
#include "interpreter/workers/dataset_host.h"
#include "jit/vm/watcher.h"

namespace lunaria {

namespace {

constexpr const char* kWorkers = "lunaria.data.workers";
int workers_key;  // in the registry: workers by functions, whose keys are weak

// The numbers that math.random draws in a row: seeded at the first call, since few functions call it.
struct RowSeed {
    RandomStream stream;
    bool is_used = true;
};

RowSeed& seed_of(lua_State* L) { return *static_cast<RowSeed*>(lua_touserdata(L, lua_upvalueindex(2))); }

// math.random(...). Upvalues: Lua's own function, the seed, Lua's math.randomseed.
int random_number(lua_State* L) {
    if (RowSeed& seed = seed_of(L); !std::exchange(seed.is_used, true)) {
        lua_pushvalue(L, lua_upvalueindex(3));
        lua_pushinteger(L, static_cast<lua_Integer>(seed.stream.seed));
        lua_pushinteger(L, static_cast<lua_Integer>(seed.stream.counter));
        lua_call(L, 2, 0);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

// math.randomseed(...). Upvalues: Lua's own function, the seed.
int seed_numbers(lua_State* L) {
    seed_of(L).is_used = true;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int no_exit(lua_State*) {
    throw state_error("os.exit", "a function in a worker cannot end the program").hint("raise an error instead");
}

int no_breakpoint(lua_State*) {
    throw state_error("breakpoint", "a function in a worker cannot be debugged")
        .hint("leave python_multiprocessing out while you debug");
}

}  // namespace

class Workers::Worker {
  public:
    // `output`: the hook for its printed output; none: the streams of the process.
    Worker(std::unique_ptr<State> state, const Captured& captured, const OutputHook& output)
        : state_(std::move(state)) {
        if (output) redirect_output(state_->lua(), output);
        const Outcome outcome = run_protected(*state_, [&](lua_State* L) { set_up(L, captured); });
        if (!outcome.ok) throw WorkerFailure(outcome.message);
    }

    void call(std::span<const Value> in, size_t results, data::Row& out, const data::Place& place) {
        lua_State* L = state_->lua();
        const State::Beside beside(*state_);
        seed_ = {stream_of(place), false};
        const OwnGenerator generator(seed_.stream);
        lua_settop(L, kFunction);
        lua_pushvalue(L, kFunction);
        if (!lua_checkstack(L, static_cast<int>(in.size()) + 8)) throw state_error(place.operation, "too many columns");
        for (const Value& v : in) push(L, v);
        if (lua_pcall(L, static_cast<int>(in.size()), LUA_MULTRET, kHandler) == LUA_OK)
            return take_results(L, kFunction + 1, results, out, place);
        if (interrupt_requested()) throw_interrupted();
        // An error for lack of memory does not pass through the handler.
        const std::string message = outcome_.message.empty() ? error_text(L) : outcome_.message;
        std::string text = str(message, "\n  ", text_of(place));
        if (!outcome_.traceback.empty()) text += "\n  in a worker, " + outcome_.traceback;
        // For a function that ended in a tail call, Lua only knows that there was one.
        if (outcome_.traceback.ends_with("(...tail calls...)") ||
            outcome_.traceback.find("calls...)\n\t\t") < text.size()) {
            lua_Debug info;
            lua_pushvalue(L, kFunction);
            lua_getinfo(L, ">S", &info);
            text += str("\n\t", info.short_src, ":", info.linedefined, ": the function of ", place.operation);
        }
        throw WorkerFailure(std::move(text));
    }

    std::thread::id last_thread;

  private:
    void set_up(lua_State* L, const Captured& captured) {
        for (const char* module : {"lunaria", "lunaria.data", "lunaria.steps"}) {
            lua_getglobal(L, "require");
            lua_pushstring(L, module);
            lua_call(L, 1, 0);
        }
        lua_getglobal(L, LUA_MATHLIBNAME);
        lua_getfield(L, -1, "random");
        lua_pushlightuserdata(L, &seed_);
        lua_getfield(L, -3, "randomseed");
        lua_pushvalue(L, -1);
        lua_insert(L, 2);
        lua_pushcclosure(L, protect<random_number>, 3);
        lua_setfield(L, -3, "random");
        lua_pushlightuserdata(L, &seed_);
        lua_pushcclosure(L, protect<seed_numbers>, 2);
        lua_setfield(L, 1, "randomseed");
        lua_getglobal(L, LUA_OSLIBNAME);
        lua_pushcfunction(L, protect<no_exit>);
        lua_setfield(L, -2, "exit");
        lua_register(L, "breakpoint", protect<no_breakpoint>);
        lua_settop(L, 0);
        push_message_handler(L, outcome_);
        captured.put(L);
    }

    static constexpr int kHandler = 1, kFunction = 2;  // on the stack

    std::unique_ptr<State> state_;
    Outcome outcome_;  // of the last call that failed
    RowSeed seed_;
};

Workers::Workers(Captured captured, MakeWorker make_state, bool keeps_output)
    : captured_(std::move(captured)), make_state_(make_state) {
    if (!keeps_output) return;
    output_ = [this](bool is_error, std::string_view text) {
        const std::lock_guard lock(mutex_);
        written_.emplace_back(is_error, text);
    };
}
Workers::~Workers() = default;

std::shared_ptr<Workers> Workers::of(lua_State* L, int index, std::string_view where) {
    using Pointer = std::shared_ptr<Workers>;
    luaL_checkstack(L, 8, "workers");
    const int top = lua_gettop(L);
    Captured captured(L, index, where);
    if (luaL_newmetatable(L, kWorkers)) {
        make_handle_type(L, kWorkers, protect<release_handle<Pointer>>);
        State::handle_nudges();
    }
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &workers_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_createtable(L, 0, 1);
        lua_pushliteral(L, "k");
        lua_setfield(L, -2, "__mode");
        lua_setmetatable(L, -2);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &workers_key);
    }
    lua_pushvalue(L, index);
    lua_rawget(L, -2);
    Pointer workers;
    const bool redirected = is_output_redirected(L);
    if (auto* known = static_cast<Pointer*>(luaL_testudata(L, -1, kWorkers));
        known && static_cast<bool>((*known)->output_) == redirected && (*known)->captured_ == captured) {
        workers = *known;
    } else {
        lua_pop(L, 1);
        workers = std::make_shared<Workers>(std::move(captured), State::of(L).worker_maker(), redirected);
        lua_pushvalue(L, index);
        push_handle(L, workers, kWorkers);
        lua_rawset(L, -3);
    }
    lua_settop(L, top);
    return workers;
}

void Workers::pass_output_on(lua_State* L) {
    std::vector<std::pair<bool, std::string>> written;
    {
        const std::lock_guard lock(mutex_);
        written.swap(written_);
    }
    const int top = lua_gettop(L);
    luaL_checkstack(L, 4, "output");
    for (const auto& [is_error, text] : written) {
        lua_getglobal(L, LUA_IOLIBNAME);
        lua_getfield(L, -1, is_error ? "stderr" : "stdout");
        lua_getfield(L, -1, "write");
        lua_insert(L, -2);
        push(L, std::string_view(text));
        lua_call(L, 2, 0);
        lua_settop(L, top);
    }
}

// Prefers the one that this thread used last, whose data is still in its cache.
std::unique_ptr<Workers::Worker> Workers::take() {
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            auto at =
                std::ranges::find_if(free_, [](const auto& w) { return w->last_thread == std::this_thread::get_id(); });
            if (at == free_.end()) --at;
            auto worker = std::move(*at);
            free_.erase(at);
            return worker;
        }
    }
    return std::make_unique<Worker>(make_state_(), captured_, output_);
}

void Workers::give_back(std::unique_ptr<Worker> worker) {
    worker->last_thread = std::this_thread::get_id();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(worker));
}

void Workers::record(lua_State* L, int index, std::span<const Value> example, const void* owner) {
    constexpr size_t kMostRecorded = 8;
    owners_.insert(owner);
    std::vector<TensorType> types;
    for (const Value& v : example) {
        if (!v.is_tensor()) return;
        types.push_back({v.tensor().dtype(), v.tensor().shape()});
    }
    // A worker has no virtual machine, and a machine that is recording or being debugged is not available.
    if (types.empty() || captured_.refuses() || recorded_.size() >= kMostRecorded || State::of(L).is_worker() ||
        vm::watcher() || State::of(L).debugger().wants_stop_points())
        return;
    if (std::ranges::any_of(recorded_, [&](const Recorded& r) { return r.types == types; })) return;
    const PlaceScope host(nullptr);
    const OwnGenerator generator({1, 0});
    std::shared_ptr<const RowProgram> program;
    try {
        auto graph = trace_pure_graph(L, LuaHost::of(L).to_value(L, index), example);
        if (graph) program = std::make_shared<RowProgram>(std::move(graph));
    } catch (const Error& e) {
        if (e.kind() == ErrorKind::interrupt) throw;
    }
    const std::lock_guard lock(mutex_);
    recorded_.push_back({std::move(types), std::move(program)});
}

size_t Workers::programs(bool batched) const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::ranges::count_if(
        recorded_, [&](const Recorded& r) { return r.program && (!batched || r.program->is_batched()); }));
}

std::shared_ptr<const RowProgram> Workers::program_for(std::span<const Value> in) const {
    const std::lock_guard lock(mutex_);
    for (const Recorded& r : recorded_)
        if (r.program && r.program->takes(in)) return r.program;
    return nullptr;
}

void Workers::call(std::span<const Value> in, size_t results, data::Row& out, const data::Place& place) {
    if (const auto program = program_for(in); program && program->results() == results) {
        try {
            const OwnGenerator generator(stream_of(place));
            const PlaceScope host(nullptr);
            for (Value& v : program->run(in)) out.push_back(std::move(v));
            return;
        } catch (const Error& e) {
            // Lua reports where it happened.
            if (e.kind() == ErrorKind::interrupt) throw;
        }
    }
    auto worker = take();
    // A worker whose function has failed begins anew: the error may have left something undone.
    worker->call(in, results, out, place);
    give_back(std::move(worker));
}

void Workers::call_together(std::span<data::Row> in, size_t results, std::span<data::Row> out, const data::Place& place,
                            std::span<const int64_t> numbers) {
    if (const auto program = in.empty() ? nullptr : program_for(in.front());
        program && program->results() == results &&
        std::ranges::all_of(in, [&](const data::Row& row) { return program->takes(row); })) {
        try {
            const PlaceScope host(nullptr);
            if (program->run_together(in, out)) return;
        } catch (const Error& e) {
            if (e.kind() == ErrorKind::interrupt) throw;
        }
    }
    for (size_t i = 0; i < in.size(); ++i) {
        data::Place own = place;
        own.row = numbers[i];
        out[i].clear();
        call(in[i], results, out[i], own);
    }
}

}  // namespace lunaria
