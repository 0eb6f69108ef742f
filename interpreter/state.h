// A Lua state for all folders: memory, the pace of the collector, interrupts. ProgramState
// (interpreter/program/program_state.h) makes one and fills it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <lua.hpp>
#include <memory>
#include <string>

#include "core/base/visit.h"
#include "interpreter/closers.h"
#include "interpreter/memory.h"

namespace lunaria {

class Debugger;
class Loader;
class ProgramEvents;
class State;

// Makes another state, as a worker.
using MakeWorker = std::unique_ptr<State> (*)();

class State {
  public:
    struct Options {
        bool ignore_environment = false;  // LUA_PATH and LUA_CPATH, as the option -E of the lua command
        bool is_worker = false;           // beside the program's own state: settings of the process stay as they are
    };
    virtual ~State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    lua_State* lua() const { return lua_; }
    // The state that a Lua thread belongs to.
    static State& of(lua_State* L) { return **static_cast<State**>(lua_getextraspace(L)); }

    LuaMemory& memory() { return memory_; }
    Loader& loader() { return loader_; }
    Debugger& debugger() { return debugger_; }
    ProgramEvents& events() { return events_; }
    Closers& closers() { return closers_; }

    // Registry key of the metatable of tensor handles.
    int tensor_metatable = LUA_NOREF;
    int prologue_calls = 0;  // in progress, on any stack (interpreter/errors/frames.h)

    // Makes the collector keep pace with the bytes of tensors, which it does not see. To be called before an operator
    // allocates its results, so that they can reuse memory of earlier ones ...
    void pace(lua_State* L) {
        if (thread_allocated_bytes() - paced_bytes_ >= step_bytes_) [[unlikely]]
            step(L);
    }
    // ... and after a tensor was passed to Lua.
    void count_handle(lua_State* L) {
        if (++new_handles_ >= kNursery || thread_allocated_bytes() - paced_bytes_ >= step_bytes_ + kOvershoot)
            [[unlikely]]
            step(L);
    }

    // Ctrl-C: may be called from a signal handler of the thread that made the state. Lua code stops at its next
    // instruction with the error "interrupted!", operators at their next block of work. The flag stays up, so that
    // pcall cannot swallow the error, until clear_interrupt(); variables are closed first (interpreter/closers.h).
    void interrupt() noexcept;
    void clear_interrupt();
    // While such an object lives an interrupt waits for its end, and a second one takes effect: for work that has to be
    // done as a whole, such as a step of training.
    class Whole {
      public:
        explicit Whole(State& state) : state_(state) { ++state_.wholes_; }
        ~Whole() {
            if (--state_.wholes_ == 0 && state_.waits_.exchange(false)) state_.interrupt();
        }
        Whole(const Whole&) = delete;
        Whole& operator=(const Whole&) = delete;

      private:
        State& state_;
    };
    // While such an object lives, the state, a worker, runs on this thread, which need not be the one that made it: an
    // interrupt of the program's state stops its code.
    class Beside {
      public:
        explicit Beside(State& state);
        ~Beside();
        Beside(const Beside&) = delete;
        Beside& operator=(const Beside&) = delete;

      private:
        State* outer_;
    };
    bool is_worker() const { return is_worker_; }
    // To be called once, before workers run.
    static void handle_nudges();
    // From here on other threads can reach a running program: the calling thread takes SIGURG for it. At most one state
    // in the process may listen.
    void listen();
    // From any thread, if it listens: makes it look at changes for the debugger.
    void nudge() const noexcept {
        if (listens_) pass_on(kNudge);
    }
    // Sets the function that is called at a safe point of a running program (core/base/visit.h) after ask_for_visit():
    // in a Lua thread of its own, where the debugger does not stop. It must not throw. Listens.
    void set_visitor(std::function<void()> visitor);
    void ask_for_visit() noexcept;  // from any thread
    // For signal handlers: the system delivers a signal to any thread, for instance one of the pool. On another thread
    // than the one that made the state, sends the signal there and returns true.
    bool pass_on(int signal) const noexcept;
    // The running Lua thread.
    lua_State* running() const { return running_; }
    // Notes that a coroutine runs, for as long as it lives.
    class RunningThread {
      public:
        RunningThread(State& state, lua_State* thread)
            : state_(state), before_(state.running_), outer_(state.innermost_) {
            state_.running_ = thread;
            state_.innermost_ = this;
            state_.hook(thread);
            if (visit_requested()) [[unlikely]]
                state_.arm();
        }
        ~RunningThread() {
            state_.running_ = before_;
            state_.innermost_ = outer_;
            state_.hook(before_);
            if (visit_requested()) [[unlikely]]
                state_.arm();
            // The coroutine may have swallowed an interrupt; its caller must not.
            if (interrupt_requested()) state_.interrupt();
        }
        RunningThread(const RunningThread&) = delete;
        RunningThread& operator=(const RunningThread&) = delete;

        lua_State* resumer() const { return before_; }
        const RunningThread* outer() const { return outer_; }

      private:
        State& state_;
        lua_State* before_;
        const RunningThread* outer_;
    };
    // The running coroutine and, by outer(), those that wait for it; null in the main thread.
    const RunningThread* innermost() const { return innermost_; }

    // The line hook that every Lua thread has while it runs, null for none. May be called from a signal handler of the
    // thread that made the state. A hook set by debug.sethook stays.
    void set_line_hook(lua_Hook hook) noexcept;

    // "file:line: " of the user's line that L executes, if there is one; otherwise of the library's.
    virtual std::string place(lua_State* L) const = 0;
    virtual MakeWorker worker_maker() const = 0;

  protected:
    // Without libraries. Throws std::bad_alloc.
    State(const Options& options, Loader& loader, Debugger& debugger, ProgramEvents& events);
    void begin();  // called when the libraries are there
    void end();    // closes the Lua state
    void set_generational(bool generational) { generational_ = generational; }

  private:
    // A full collection that also frees circles through Lua and the virtual machine; false: nothing was done.
    virtual bool collect_cycles(lua_State* L) = 0;
    // Runs `body`, for which the virtual machine's Lua thread is `thread`.
    virtual void in_thread(lua_State* thread, const std::function<void()>& body) = 0;
    void collect(lua_State* L);
    void step(lua_State* L);
    void hook(lua_State* thread) noexcept {
        if (lua_gethook(thread) != line_hook_) change_hook(thread);
    }
    void change_hook(lua_State* thread) noexcept;
    static void on_event(lua_State* L, lua_Debug* frame);
    static void on_nudge(int);
    void arm() noexcept;
    void receive_visitor();
    bool relieve_pressure();

    // The number and bytes of temporaries that may accumulate between two steps: about the room of the free lists for
    // bodies and blocks, and of the second-level cache.
    static constexpr int kNursery = 2048;
    static constexpr uint64_t kOvershoot = 32u << 20;
    static const int kNudge;  // a signal

    const bool is_worker_;
    LuaMemory memory_;  // outlives lua_
    Loader& loader_;
    Debugger& debugger_;
    ProgramEvents& events_;
    std::atomic<int> wholes_ = 0;
    std::atomic<bool> waits_ = false;  // an interrupt that waits for the end of Whole
    Closers closers_;
    lua_State* lua_ = nullptr;
    lua_State* volatile running_ = nullptr;
    const RunningThread* innermost_ = nullptr;
    volatile lua_Hook line_hook_ = nullptr;
    volatile lua_Hook last_line_hook_ = nullptr;  // a hook that threads which did not run since may still have
    // A hook of the program's own, which the hook of a visit has replaced.
    struct OwnHook {
        lua_State* volatile thread = nullptr;
        volatile lua_Hook hook = nullptr;
        volatile int mask = 0, count = 0;
    } own_hook_;
    std::function<void()> visitor_;
    int visits_ = 0;  // in progress, nested
    volatile bool listens_ = false;
    pthread_t owner_ = pthread_self();
    bool generational_ = true;
    int new_handles_ = 0;        // since the last step
    uint64_t paced_bytes_ = 0;   // thread_allocated_bytes() at the last step
    uint64_t step_bytes_ = 0;    // between two steps
    int64_t settled_bytes_ = 0;  // live after the last full collection
};

}  // namespace lunaria
