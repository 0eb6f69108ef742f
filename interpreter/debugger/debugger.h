// The debugger's engine: breakpoints, steps, stops at errors, and the evaluation of Lua in the frames of a stopped
// program. It is independent of front ends: a front end that shows stops is called with each stop, in Lua's thread, and
// returns how to go on.
//
// Nothing is paid while nothing is debugged: the line hook is there only while breakpoints, watches or steps want it,
// and functions that the virtual machine runs have stop points only then.
//
// Breakpoints, stops at errors and pause may be set from any thread; all else belongs to Lua's.
#pragma once

#include <atomic>
#include <functional>
#include <lua.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "interpreter/errors/debugger_stack.h"
#include "interpreter/events.h"
#include "interpreter/loader/fingerprint.h"

namespace lunaria {

struct Breakpoint {
    int id = 0;
    std::string source;  // the name of the chunk in messages, the end of that path, or a name from rename_sources()
    int line = 0;
    std::string condition;  // Lua; empty: none
    int from_hit = 1;       // stops at that hit and all later ones
    std::string log;        // instead of stopping: a text with {expressions}
    bool temporary = false, enabled = true;
    int hits = 0;
};

enum class StopReason { entry, call, breakpoint, step, pause, error, watch };
enum class Resume { go, into, over, out, leave };

struct Stop {
    lua_State* thread;
    StopReason reason;
    std::string text;              // the error's message, the change, or the error of a condition
    std::vector<int> breakpoints;  // ids of the breakpoints that were hit
    int value = LUA_NOREF;         // of an error: its object, in the registry
};

struct Watch {
    int id = 0;
    std::string expression, value;
    Fingerprint print;   // of the value: its text may hide a change
    std::string chunk;   // name of the function's chunk in whose scope the expression is evaluated
    int first_line = 0;  // of that function
    bool stops = true;   // when it changes; otherwise it is only shown
};

class Debugger : public ProgramEvents {
  public:
    using Front = std::function<Resume(const Stop&)>;

    explicit Debugger(State& state) : state_(state) {}

    // Installs the global `breakpoint`, and versions of pcall and xpcall that stop at errors.
    void install(lua_State* L);

    // Callable from any thread. Breakpoints get their ids here; ids stay as long as source and line do.
    std::vector<Breakpoint> set_breakpoints(const std::string& source, std::vector<Breakpoint> list);
    int add_breakpoint(Breakpoint b);
    bool change_breakpoint(int id, const std::function<void(Breakpoint&)>& change);
    bool remove_breakpoint(int id);
    void remove_breakpoints();
    std::vector<Breakpoint> breakpoints() const;
    void stop_at_errors(bool caught, bool uncaught);
    void request_pause();

    // Sets the front end that shows stops from now on; without one nothing stops.
    void set_front(Front front);
    Front front() const;
    // Sets the destination of the texts of breakpoints with `log`; by default Lua's print.
    void set_log(std::function<void(const std::string& text)> log);
    // While it is on, programs of the machine have stop points even without breakpoints.
    void set_attached(bool attached) { attached_ = attached; }

    // From here on for Lua's thread.
    // Sets a function for another name of a chunk, as breakpoints have it: the file of a notebook's cell. Empty: none.
    void rename_sources(std::function<std::string(const std::string& source)> name) { rename_ = std::move(name); }
    std::string source_name(const std::string& source) const;
    // Stops at the next line of the user's program.
    void stop_at_next_line();
    // Called when a cell or script has ended: steps end with it.
    void end_of_run();
    // Whether the user ended the program from a stop; asking resets it.
    bool take_left() { return std::exchange(left_, false); }

    std::vector<Watch>& watches() { return watches_; }
    int add_watch(Watch w);
    // Evaluates the watch's expression in a frame of the stopped program, and returns whether its value has changed.
    // Nothing where it cannot be evaluated, for the reason in `problem`.
    std::optional<bool> look(Watch& w, size_t frame, std::string& problem);
    // Watches need every line; to be called when there are others.
    void update();

    // While the program is stopped.
    bool is_stopped() const { return stopped_; }
    const DebugStack& stack() const { return stack_; }
    // Shows frames that are gone, with the functions for a stopped program.
    void inspect(DebugStack stack, const std::function<void()>& body);
    // Runs `body` in a Lua thread of its own; Lua's errors end up in `error`. Ctrl-C ends it.
    bool guarded(const std::function<void(lua_State*)>& body, std::string& error);
    // Pushes the values of Lua code in a frame (npos: with globals alone), an expression or statements, and returns
    // their number. Assignments reach the variables.
    int evaluate(lua_State* T, size_t frame, const std::string& code);

    // Whether the text of the function at `index` mentions breakpoint.
    static bool calls_breakpoint(lua_State* L, int index);
    // Whether there is a front end or a breakpoint.
    bool is_active() const;
    void on_line(lua_State* L, lua_Debug* record);
    void on_call_error(lua_State* L);

    bool wants_stop_points() const override;
    void on_machine_line(lua_State* L) override;
    void on_failure(lua_State* L, const Error& e) override;
    void on_error(lua_State* L, bool outermost) override;
    void on_dead_coroutine(lua_State* thread) override;
    bool push_error_handler(lua_State* L) override;
    void push_call_handler(lua_State* L) override;
    void forget_error() override { reported_ = false; }
    void skip_handlers(lua_State* L) override;
    void on_nudge() noexcept override;
    void quietly(const std::function<void()>& body) override;

  private:
    enum class Mode { none, into, over };
    struct Place {
        std::string source, chunk;
        int line = 0;
    };
    struct Position {
        lua_State* thread = nullptr;
        int threads = 0, levels = 0;
        size_t machine = 0;              // frames of the machine, 0 for a function of Lua
        const void* function = nullptr;  // null: any
    };
    // Breakpoints as Lua's thread uses them.
    struct Lines {
        std::vector<Breakpoint> list;
        std::vector<bool> at;  // by line
        bool has(int line) const { return static_cast<size_t>(line) < at.size() && at[static_cast<size_t>(line)]; }
    };
    void on_pause(lua_State* L) override { stop(L, {L, StopReason::pause, {}, {}}); }
    static void line_hook(lua_State* L, lua_Debug* record);
    static int breakpoint_function(lua_State* L);
    bool is_armed() const;
    void changed();  // callable from any thread
    void refresh();
    bool matches(const std::string& wanted, const std::string& source);
    bool hits(lua_State* L, const Place& place, Stop& s);
    bool steps_here(const Position& now);
    bool watches_changed(lua_State* L, const Place& place, int first_line, Stop& s);
    void at_place(lua_State* L, const Place& place, int first_line, const Position& now);
    Position position_of(const StackFrame& frame) const;
    void go_on(Resume how);
    void stop(lua_State* L, Stop s);
    bool is_caught(lua_State* L) const;
    void write_log(const std::string& text);
    std::string filled_in(lua_State* L, const std::string& text);

    State& state_;
    std::function<std::string(const std::string&)> rename_;
    std::unordered_map<std::string, std::string> paths_;  // of sources, made absolute

    mutable std::mutex mutex_;  // for the following members, up to the atomics
    std::vector<Breakpoint> breakpoints_;
    int next_id_ = 1;
    Front front_;
    std::function<void(const std::string&)> log_;
    std::atomic<uint64_t> version_{0};
    std::atomic<bool> any_{false}, has_front_{false}, attached_{false}, caught_{false}, uncaught_{false};

    uint64_t known_version_ = 0;
    Lines lines_;
    Mode mode_ = Mode::none;
    Position from_;
    std::vector<Watch> watches_;
    int next_watch_ = 1;
    bool busy_ = false;     // stopped, or evaluating for the debugger itself: nothing stops
    bool stopped_ = false;  // a front end is in control
    bool left_ = false;
    bool reported_ = false;  // the present error was shown
    DebugStack stack_;
    uint64_t stop_count_ = 0;  // identifies the stop: an object made for an earlier stop is no longer valid
};

}  // namespace lunaria
