// The debugger at a terminal, or wherever lines can be read: shows the place where the program stopped and takes
// commands in the manner of Python's pdb.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "interpreter/debugger/debugger.h"
#include "interpreter/display/pretty.h"
#include "interpreter/session/completion.h"

namespace lunaria {

class DebuggerPrompt {
  public:
    using Complete = std::function<Completions(const std::string& text, size_t cursor)>;
    struct Hooks {
        // A line from the user; nothing at the end of input or after Ctrl-C.
        std::function<std::optional<std::string>(const std::string& prompt, const Complete& complete)> ask;
        std::function<void(const std::string& text)> write;
        std::function<PrettyOptions()> pretty;
    };

    DebuggerPrompt(State& state, Hooks hooks) : state_(state), hooks_(std::move(hooks)) {}

    // For Debugger::set_front.
    Resume on_stop(const Stop& stop);
    // Shows the place of the last error. Throws state_error when there was none.
    void post_mortem();

    static constexpr const char* kPrompt = "debug> ";

    // The commands, for help.
    struct Description {
        std::string_view name, usage, text;
    };
    static std::vector<Description> descriptions();

  private:
    struct Command {
        void (DebuggerPrompt::*run)(const std::string& rest);
        const char* usage;
        const char* text;
        bool takes_text;  // without one, the text after the name makes it Lua
    };
    static const std::map<std::string, Command, std::less<>>& commands();
    static const std::map<std::string, std::string, std::less<>>& aliases();

    std::optional<Resume> run();
    void line(const std::string& text);
    void show_frame();
    void show_watches();
    void select(size_t frame);
    Debugger& debugger() { return state_.debugger(); }
    const StackFrame& frame() { return debugger().stack().frames()[frame_]; }
    void write(const std::string& text) { hooks_.write(text + "\n"); }
    // The value of the code in the frame; nothing after an error, which is printed.
    std::optional<std::string> value_of(const std::string& code, const PrettyOptions& options, bool tell = true);
    void write_source(int first, int last);
    void write_variables(VariableKind kind, const char* mark);
    // "12", "file.lua:12", "f"; prints an error for other texts.
    std::optional<Breakpoint> place_of(const std::string& text);
    void add_breakpoint(const std::string& rest, bool temporary);
    std::optional<int> number_of(const std::string& text, std::string& rest);
    Completions complete(const std::string& text, size_t cursor);

    void step_over(const std::string&) { how_ = Resume::over; }
    void step_into(const std::string&) { how_ = Resume::into; }
    void step_out(const std::string&) { how_ = Resume::out; }
    void go(const std::string&) { how_ = Resume::go; }
    void leave(const std::string&) { how_ = Resume::leave; }
    void up(const std::string& rest);
    void down(const std::string& rest);
    void where(const std::string&);
    void list(const std::string& rest);
    void list_function(const std::string&);
    void print(const std::string& rest);
    void print_deep(const std::string& rest);
    void what(const std::string& rest);
    void arguments(const std::string&);
    void locals(const std::string&);
    void set_breakpoint(const std::string& rest);
    void set_temporary(const std::string& rest);
    void clear(const std::string& rest);
    void set_condition(const std::string& rest);
    void ignore(const std::string& rest);
    void enable(const std::string& rest);
    void disable(const std::string& rest);
    void stop_at_errors(const std::string& rest);
    void watch(const std::string& rest);
    void display(const std::string& rest);
    void unwatch(const std::string& rest);
    void help(const std::string& rest);

    State& state_;
    Hooks hooks_;
    size_t frame_ = 0;
    std::optional<Resume> how_;
    std::string last_;     // an empty line repeats it
    int listed_ = 0;       // the last line that `list` wrote
    bool running_ = true;  // the program can go on
};

}  // namespace lunaria
