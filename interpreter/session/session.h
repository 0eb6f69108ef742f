// A session: cells run one after another in one Lua state, their results are shown, and their definitions stay. The
// terminal and the notebook kernel use it, so that it is independent of terminals: it returns texts and takes hooks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "interpreter/display/pretty.h"
#include "interpreter/errors/error_report.h"
#include "interpreter/session/completion.h"
#include "interpreter/session/debugger_prompt.h"
#include "interpreter/session/display.h"
#include "interpreter/session/inspection.h"
#include "interpreter/state.h"

namespace lunaria {

struct Execution {
    bool ok = true;
    int number = 0;                    // of the cell
    std::vector<std::string> results;  // the values of the last expression, as text; empty when silenced
    MimeBundle rich;                   // the same for a notebook, if asked for
    std::optional<ErrorReport> error;
    bool leave = false;              // the user asked to end the session: exit, quit
    std::optional<int> exit_status;  // the program has called os.exit: the owner of the session must exit with it
};

struct ExecuteOptions {
    std::string name;           // of the chunk in messages; empty: In[number]
    bool store_history = true;  // counts the cell and keeps its text for %history
    bool show = true;           // results as text
    bool rich = false;          // results in every format as well
};

enum class InputKind { complete, incomplete, invalid };
struct InputCheck {
    InputKind kind;
    std::string indent;  // for the next line of an incomplete cell
};

class Session {
  public:
    // The hooks may be empty; they must not throw.
    struct Hooks {
        // The output of print, io.write and writes to io.stdout and io.stderr, in place of the process's streams.
        std::function<void(bool is_error, std::string_view text)> output;
        // A line from the user, for commands that ask back; nothing at the end of input. With `output`, io.read asks
        // too.
        std::function<std::optional<std::string>(const std::string& prompt)> input;
        // The same for text that must not be shown; empty: as input.
        std::function<std::optional<std::string>(const std::string& prompt)> password;
        // Results of help commands, beside the output of the cell; empty: as output.
        std::function<void(const Inspection& found)> page;
        // Output of display functions, as text if empty; clear_output; comm messages to the front end.
        std::function<void(const Display& shown)> display;
        std::function<void(bool wait)> clear_output;
        std::function<void(const CommMessage& message)> comm;
        // Text with which the next cell should begin (%load).
        std::function<void(const std::string& text)> set_next_input;
        // A command for the debugger; empty: as input.
        std::function<std::optional<std::string>(const std::string& prompt, const DebuggerPrompt::Complete& complete)>
            command;
    };

    // Opens ms and help as globals. The state must outlive the session, which must be the only one over it.
    explicit Session(State& state, PrettyOptions pretty = {});
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void set_hooks(Hooks hooks);
    Hooks& hooks() { return hooks_; }

    // Runs Lua, or a command: `%time f()`, `!ls`, `?name`. Errors in the cell are not thrown.
    Execution execute(const std::string& text, const ExecuteOptions& options = {});
    // Runs the code cells of a notebook file in order, as `%run FILE` does. Each cell's results are shown before the
    // next one starts; an error of a cell that is not tagged for it ends the run. `debug`: stops at the first line.
    Execution run_notebook(const std::string& path, bool debug = false);
    // Passes a comm message of the front end to the functions that ms.notebook.comm registered. Errors as in execute.
    Execution receive(const CommMessage& message);
    Completions complete(const std::string& text, size_t cursor);
    Inspection inspect(const std::string& text, size_t cursor, int level = 0);
    InputCheck is_complete(const std::string& text) const;

    // Stops the running cell with the error "interrupted!". May be called from a signal handler, and from another
    // thread if a signal handler of the session's thread then calls it. Does nothing when no cell runs.
    void interrupt() noexcept;
    // The time from the last interrupt of a cell to its end; 0: none so far. From any thread.
    double interrupt_seconds() const { return interrupt_seconds_; }
    bool is_running() const { return running_; }

    State& state() { return state_; }
    DebuggerPrompt& debugger_prompt() { return prompt_; }
    const std::vector<std::string>& history() const { return history_; }
    int count() const { return count_; }  // of cells so far
    PrettyOptions& pretty_options() { return pretty_; }
    // The results as lines of a terminal: side by side where they are short.
    std::string lines_of(const std::vector<std::string>& results) const;

  private:
    friend struct SessionFunctions;  // functions for the commands in lua/lunaria/commands.lua
    class Run;
    Execution execute_cell(const std::string& text, const ExecuteOptions& options);
    void run_before_cell(Execution& execution);
    void run_after_cell(Execution& execution);
    void debug_error(const ErrorReport& error);
    void note(const char* table);
    void release_streams();
    void run_lua(const std::string& text, const std::string& name, const ExecuteOptions& options, Execution& execution);
    void run_command(const std::string& text, Execution& execution);
    // Runs a cell of a notebook for a command, and shows its results; true to go on with the next.
    bool run_notebook_cell(lua_State* L, const std::string& text, const std::string& name, bool may_fail);
    // Calls the function below `arguments` values on the stack; true leaves its results there.
    bool call(lua_State* L, int arguments, Execution& execution);
    void show_results(lua_State* L, int count, bool rich, Execution& execution);

    State& state_;
    PrettyOptions pretty_;
    Hooks hooks_;
    DebuggerPrompt prompt_;
    std::vector<std::string> history_;
    int count_ = 0;
    Execution* current_ = nullptr;
    ExecuteOptions options_;                  // of the running cell, for commands that run cells
    std::vector<std::string> commands_;       // names, with their %
    std::optional<int> exit_status_;          // on its way to the outermost cell
    std::atomic<int> running_ = 0;            // depth: commands run cells
    std::atomic<int64_t> interrupted_at_{0};  // by the steady clock, in nanoseconds; 0: not
    std::atomic<double> interrupt_seconds_{0};
};

}  // namespace lunaria
