#include "interpreter/state.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <new>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/signals.h"
#include "core/memory/memory.h"
#include "interpreter/events.h"
#include "interpreter/protect.h"
#include "jit/vm/watcher.h"

namespace lunaria {

namespace {

// A young collection costs a microsecond or less, so one per half megabyte of tensors is cheap, and temporaries are
// reused while they are still in the cache.
constexpr uint64_t kSmallestStep = 512u << 10;
// Growth of live tensors that calls for a full collection, at least: by the size of Lua's own heap.
constexpr int64_t kSmallestGrowth = 16 << 20, kLargestGrowth = 64 << 20;
// The limit of nested visits: each takes some of the C stack.
constexpr int kMostVisits = 16;
constexpr int kEvents = LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE | LUA_MASKCOUNT;

// The state that the signal is meant for. A signal handler has no other way to find it.
State* listening = nullptr;

// The worker that runs on this thread, for the same handler.
thread_local State* volatile beside = nullptr;

// Threads on which workers have run, for signals from a handler: each has a place for as long as it lives.
struct WorkerThread {
    std::atomic<bool> taken{false}, runs{false};
    std::atomic<pthread_t> thread{};
};
std::array<WorkerThread, 1024> worker_threads;
std::atomic<size_t> worker_places{0};  // places from this one on are free

class WorkerPlace {
  public:
    WorkerPlace() {
        for (size_t i = 0; i < worker_threads.size() && !place_; ++i) {
            if (worker_threads[i].taken.exchange(true)) continue;
            place_ = &worker_threads[i];
            place_->thread = pthread_self();
            for (size_t n = worker_places; n <= i && !worker_places.compare_exchange_weak(n, i + 1);) continue;
        }
    }
    ~WorkerPlace() {
        if (place_) place_->taken = false;
    }
    WorkerPlace(const WorkerPlace&) = delete;
    WorkerPlace& operator=(const WorkerPlace&) = delete;

    // Without a place, in a process of very many threads, only operators see an interrupt.
    void set(bool runs) {
        if (place_) place_->runs = runs;
    }

  private:
    WorkerThread* place_ = nullptr;
};

WorkerPlace& worker_place() {
    thread_local WorkerPlace place;
    return place;
}

int panic(lua_State* L) {
    const char* text = lua_tostring(L, -1);
    throw state_error("lua", text ? text : "error outside of a protected call");
}

int call_visitor(lua_State* L) {
    (*static_cast<const std::function<void()>*>(lua_touserdata(L, 1)))();
    return 0;
}

}  // namespace

// A signal without other users, which is ignored where no state listens.
const int State::kNudge = SIGURG;

// A write beyond the limit of a file's size (ulimit -f) is an error of that write, like one to a full disk; by default
// the signal that comes with it ends the process. A handler of the program's own is kept. The signal is not ignored:
// children would inherit that.
static void survive_full_files() {
    struct sigaction before {};
    if (sigaction(SIGXFSZ, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
        handle_signal(
            SIGXFSZ, [](int) {}, SA_RESTART);
}

State::State(const Options& options, Loader& loader, Debugger& debugger, ProgramEvents& events)
    : is_worker_(options.is_worker), loader_(loader), debugger_(debugger), events_(events) {
    lua_ = lua_newstate(LuaMemory::allocate, &memory_);
    if (!lua_) throw std::bad_alloc();
    *static_cast<State**>(lua_getextraspace(lua_)) = this;
    running_ = lua_;
    survive_full_files();
    lua_atpanic(lua_, panic);
}

void State::begin() {
    // Generational: it suits loops over temporaries, and a large live heap costs it nothing.
    lua_gc(lua_, LUA_GCGEN, 20, 100);
    paced_bytes_ = thread_allocated_bytes();
    step_bytes_ = kSmallestStep;
    if (!is_worker_) set_memory_pressure_handler([this] { return relieve_pressure(); });
}

void State::end() {
    if (listening == this) {
        signal(kNudge, SIG_DFL);
        listening = nullptr;
    }
    if (visitor_) lunaria::set_visitor({});
    if (!is_worker_) set_memory_pressure_handler({});
    lua_close(lua_);
}

void State::collect(lua_State* L) {
    if (!collect_cycles(L)) lua_gc(L, LUA_GCCOLLECT);
}

void State::step(lua_State* L) {
    const uint64_t allocated = thread_allocated_bytes() - std::exchange(paced_bytes_, thread_allocated_bytes());
    new_handles_ = 0;
    if (!lua_gc(L, LUA_GCISRUNNING)) return;
    int64_t live = memory_stats().live_bytes;
    // Only a full collection finds tensors that outlived the nursery. It takes the longer the larger Lua's own heap is:
    // with a small heap it runs more often, and memory stays level.
    const int64_t growth = std::clamp(int64_t{lua_gc(L, LUA_GCCOUNT)} * 1024 * 8, kSmallestGrowth, kLargestGrowth);
    if (live - settled_bytes_ > std::max(settled_bytes_ / 2, growth)) {
        collect(L);
        live = settled_bytes_ = memory_stats().live_bytes;
    } else {
        // Generational: a young collection whatever Lua thinks of its debt, which includes handles but not tensors, or
        // a full one where the heap is twice what the last full one left. Lua looks at that only where there is a debt:
        // as much as the whole heap is one. Incremental: as much work as for that many bytes of Lua's own.
        const int debt = generational_ ? lua_gc(L, LUA_GCCOUNT) + 1
                                       : static_cast<int>(std::min<uint64_t>(allocated >> 10, 1u << 20));
        lua_gc(L, LUA_GCSTEP, debt);
        settled_bytes_ = std::min(settled_bytes_, live);
    }
    // Tensors that are alive in the middle of a training step should be dead by the next collection, rather than old.
    step_bytes_ = std::max(kSmallestStep, static_cast<uint64_t>(live) / 8);
    paced_bytes_ = thread_allocated_bytes();
}

bool State::relieve_pressure() {
    // Only the thread that runs Lua may collect.
    if (!pthread_equal(pthread_self(), owner_)) return false;
    const int64_t before = memory_stats().live_bytes;
    collect(running_);
    return memory_stats().live_bytes < before;
}

// Hooks are called like C functions.
void State::on_event(lua_State* L, lua_Debug* event) {
    State& state = of(L);
    if (state.closers_.runs(L, event)) {
        // The hook waits for its end and checks now and then whether it ended in another way.
        constexpr int kInstructions = 1000;
        lua_sethook(L, on_event, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, kInstructions);
        return;
    }
    try {
        if (interrupt_requested()) {
            state.events_.skip_handlers(L);
            // Setting a hook walks over all calls, and a deep recursion has hundreds of thousands.
            if (lua_gethook(L) != on_event || lua_gethookmask(L) != kEvents || lua_gethookcount(L) != 1)
                lua_sethook(L, on_event, kEvents, 1);
        }
        poll_interrupt();
    } catch (const Error& e) {
        raise_error(L, e);
    }
    OwnHook& own = state.own_hook_;
    if (own.thread == L) {
        lua_sethook(L, own.hook, own.mask, own.count);
        own.thread = nullptr;
    } else {
        lua_sethook(L, nullptr, 0, 0);
        state.hook(L);
    }
    // One that came in between has set the hook that was just taken away.
    if (interrupt_requested()) lua_sethook(L, on_event, kEvents, 1);
    if (visit_requested()) visit();
}

void State::change_hook(lua_State* thread) noexcept {
    const lua_Hook now = lua_gethook(thread), wanted = line_hook_;
    if (now && now != last_line_hook_ && now != wanted) return;
    lua_sethook(thread, wanted, wanted ? LUA_MASKLINE : 0, 0);
    if (interrupt_requested()) lua_sethook(thread, on_event, kEvents, 1);
}

void State::set_line_hook(lua_Hook hook) noexcept {
    if (hook == line_hook_) return this->hook(running_);
    if (line_hook_) last_line_hook_ = line_hook_;
    line_hook_ = hook;
    this->hook(running_);
}

void State::interrupt() noexcept {
    if (wholes_ > 0 && !waits_.exchange(true)) return;
    request_interrupt();
    lua_sethook(running_, on_event, kEvents, 1);
    for (size_t i = 0; i < worker_places; ++i)
        if (worker_threads[i].runs) pthread_kill(worker_threads[i].thread, kNudge);
}

State::Beside::Beside(State& state) : outer_(beside) {
    take_signal(kNudge);
    state.owner_ = pthread_self();
    beside = &state;
    worker_place().set(true);
    // An interrupt in between had no thread to signal.
    if (interrupt_requested()) lua_sethook(state.running_, on_event, kEvents, 1);
}

State::Beside::~Beside() {
    beside = outer_;
    if (!outer_)
        worker_place().set(false);
    else if (interrupt_requested())
        lua_sethook(outer_->running_, on_event, kEvents, 1);
}

void State::listen() {
    listening = this;
    handle_nudges();
    listens_ = true;
}

void State::handle_nudges() { handle_signal(kNudge, on_nudge, SA_RESTART); }

void State::on_nudge(int) {
    if (State* worker = beside) {
        if (interrupt_requested()) lua_sethook(worker->running_, on_event, kEvents, 1);
        if (!pthread_equal(pthread_self(), listening ? listening->owner_ : pthread_self())) return;
    }
    State* state = listening;
    if (!state || state->pass_on(kNudge)) return;
    state->events_.on_nudge();
    if (visit_requested()) state->arm();
}

// The signal handler calls it too.
void State::arm() noexcept {
    lua_State* thread = running_;
    const lua_Hook now = lua_gethook(thread);
    if (now == on_event) return;
    if (now && now != line_hook_ && now != last_line_hook_) {
        own_hook_.hook = now;
        own_hook_.mask = lua_gethookmask(thread);
        own_hook_.count = lua_gethookcount(thread);
        own_hook_.thread = thread;
    }
    lua_sethook(thread, on_event, kEvents, 1);
}

void State::set_visitor(std::function<void()> visitor) {
    visitor_ = std::move(visitor);
    lunaria::set_visitor([this] { receive_visitor(); });
    listen();
}

void State::ask_for_visit() noexcept {
    request_visit();
    if (!pass_on(kNudge)) arm();
}

void State::receive_visitor() {
    lua_State* L = running_;
    if (visits_ >= kMostVisits || !lua_checkstack(L, 4)) return;
    const int top = lua_gettop(L);
    // A thread of its own: hooks do not run within a hook.
    lua_State* T = lua_newthread(L);
    {
        ++visits_;
        const RunningThread note(*this, T);
        vm::Watcher* const watcher = std::exchange(vm::watcher(), nullptr);
        in_thread(T, [&] {
            events_.quietly([&] {
                lua_pushcfunction(T, protect<call_visitor>);
                lua_pushlightuserdata(T, &visitor_);
                lua_pcall(T, 1, 0, 0);
            });
        });
        vm::watcher() = watcher;
        --visits_;
    }
    lua_settop(L, top);
    if (visit_requested()) arm();
}

bool State::pass_on(int signal) const noexcept {
    if (pthread_equal(pthread_self(), owner_)) return false;
    pthread_kill(owner_, signal);
    return true;
}

void State::clear_interrupt() {
    lunaria::clear_interrupt();
    waits_ = false;
    closers_.clear();
    if (lua_gethook(lua_) == on_event) lua_sethook(lua_, nullptr, 0, 0);
    hook(lua_);
    if (visit_requested()) arm();
}

}  // namespace lunaria
