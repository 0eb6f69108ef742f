#include "interpreter/session/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "core/memory/memory.h"
#include "interpreter/debugger/debugger.h"
#include "interpreter/display/output.h"
#include "interpreter/display/terminal_text.h"
#include "interpreter/loader/cell.h"
#include "interpreter/loader/loader.h"
#include "interpreter/protect.h"
#include "interpreter/session/session_functions.h"
#include "interpreter/values/values.h"
#include "jit/frontend/interactive.h"
#include "jit/frontend/token.h"

namespace lunaria {

namespace {

std::string_view trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// x = !command
bool assigns_command(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) return false;
    const std::string_view target = trimmed(text.substr(0, equals));
    const bool is_name = std::ranges::all_of(target, [](char c) { return lua::is_name_part(c) || c == '.'; });
    return is_name && trimmed(text.substr(equals + 1)).starts_with('!');
}

// Nothing in Lua begins with these signs, and no Lua chunk is a name with a question mark.
bool is_command(std::string_view text) {
    text = trimmed(text);
    if (text.empty()) return false;
    if (text[0] == '%' || text[0] == '!' || text[0] == '?' || assigns_command(text)) return true;
    return text.back() == '?' && text.find_first_of(" \t\n\"'") == std::string_view::npos;
}

// A command that includes the lines below it, such as %%sh: an empty line ends them.
bool is_open_cell_command(std::string_view text) {
    if (!trimmed(text).starts_with("%%")) return false;
    const size_t last = text.rfind('\n');
    return last == std::string_view::npos || !trimmed(text.substr(last)).empty();
}

bool is_leave(std::string_view text) {
    text = trimmed(text);
    return text == "exit" || text == "quit" || text == "exit()" || text == "quit()";
}

// Only `---` lines: the code that they describe is still to come. An empty line after them means that there is none.
bool is_doc_comment(std::string_view text) {
    while (!text.empty()) {
        if (!trimmed(text.substr(0, text.find('\n'))).starts_with("---")) return false;
        const size_t end = text.find('\n');
        if (end == std::string_view::npos) return true;
        text.remove_prefix(end + 1);
    }
    return false;
}

// The word alone, where it is no variable of the user's.
bool asks_for_help(lua_State* L, std::string_view text) {
    if (trimmed(text) != "help") return false;
    lua_getglobal(L, "help");
    const bool own = lua_iscfunction(L, -1);
    lua_pop(L, 1);
    return own;
}

// A signal handler may call it.
int64_t nanoseconds_now() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// Pushes a table of lua/lunaria/commands.lua.
void push_of_commands(lua_State* L, const char* name) {
    lua_getfield(L, LUA_REGISTRYINDEX, kCommands);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

// Loads the receiver on the first message, which happens within the protected call.
int receive_comm(lua_State* L) {
    push_comm_receiver(L);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

}  // namespace

// Marks that a cell runs, so that an interrupt has a target, and clears the interrupt when all cells have ended.
class Session::Run {
  public:
    Run(Session& session, Execution& execution) : session_(session), before_(session.current_) {
        session.current_ = &execution;
        if (session.running_ == 0) {
            session.interrupted_at_ = 0;
            session.state_.clear_interrupt();
        }
        session.running_ = session.running_ + 1;
    }
    ~Run() {
        session_.running_ = session_.running_ - 1;
        session_.current_ = before_;
        if (session_.running_ > 0) return;
        if (const int64_t since = session_.interrupted_at_.exchange(0))
            session_.interrupt_seconds_ = static_cast<double>(nanoseconds_now() - since) * 1e-9;
        session_.state_.clear_interrupt();
        session_.state_.debugger().end_of_run();
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

  private:
    Session& session_;
    Execution* before_;
};

void Session::interrupt() noexcept {
    if (!running_) return;
    int64_t first = 0;
    interrupted_at_.compare_exchange_strong(first, nanoseconds_now());
    state_.interrupt();
}

Session::Session(State& state, PrettyOptions pretty)
    : state_(state),
      pretty_(pretty),
      prompt_(state, {[this](const std::string& prompt,
                             const DebuggerPrompt::Complete& complete) -> std::optional<std::string> {
                          if (hooks_.command) return hooks_.command(prompt, complete);
                          return hooks_.input ? hooks_.input(prompt) : std::nullopt;
                      },
                      [this](const std::string& text) {
                          if (hooks_.output) return hooks_.output(false, text);
                          std::fwrite(text.data(), 1, text.size(), stdout);
                          std::fflush(stdout);
                      },
                      [this] { return pretty_; }}) {
    state.debugger().set_front([this](const Stop& stop) { return prompt_.on_stop(stop); });
    lua_State* L = state.lua();
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria");
    lua_call(L, 1, 1);
    if (lua_getglobal(L, "ms") == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_setglobal(L, "ms");
    }
    lua_pop(L, 1);
    // The `help` of scripts is replaced.
    if (lua_getglobal(L, "help") == LUA_TNIL || lua_iscfunction(L, -1)) {
        lua_getfield(L, -2, "help");
        lua_setglobal(L, "help");
    }
    lua_pop(L, 1);
    for (const char* name : {"display", "update_display", "clear_output"}) {
        if (lua_getglobal(L, name) == LUA_TNIL) {
            lua_getfield(L, -2, name);
            lua_setglobal(L, name);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    set_display_session(L, this);
    commands_ = install_session_functions(L, *this);
}

Session::~Session() {
    set_display_session(state_.lua(), nullptr);
    state_.debugger().set_front({});
    release_streams();
}

// Undoes the changes of set_hooks to Lua's input and output.
void Session::release_streams() {
    if (!hooks_.output) return;
    restore_output(state_.lua());
    if (hooks_.input) restore_input(state_.lua());
}

void Session::set_hooks(Hooks hooks) {
    release_streams();
    hooks_ = std::move(hooks);
    if (!hooks_.output) return;
    redirect_output(state_.lua(), hooks_.output);
    // io.read works by itself on a terminal.
    if (hooks_.input) redirect_input(state_.lua(), *this);
}

// Calls what a command wants to be called before each cell.
void Session::run_before_cell(Execution& execution) {
    lua_State* L = state_.running();
    const int top = lua_gettop(L);
    push_of_commands(L, "hooks");
    if (lua_getfield(L, -1, "before_cell") == LUA_TFUNCTION) {
        const Run run(*this, execution);
        call(L, 0, execution);
    }
    lua_settop(L, top);
}

// After an error, where %pdb is on: its first line, and the debugger.
void Session::debug_error(const ErrorReport& error) {
    lua_State* L = state_.running();
    push_of_commands(L, "hooks");
    const bool wanted = lua_getfield(L, -1, "debugs_errors") != LUA_TNIL;
    lua_pop(L, 2);
    if (!wanted || error.kind != ErrorReport::Kind::error || (!hooks_.input && !hooks_.command)) return;
    const std::string message = error.message.substr(0, error.message.find('\n')) + "\n";
    if (hooks_.output)
        hooks_.output(true, message);
    else
        std::fputs(message.c_str(), stderr);
    execute_cell("%debug", {.name = "", .store_history = false});
}

Execution Session::execute(const std::string& text, const ExecuteOptions& options) {
    Execution before;
    if (!running_ && options.store_history) run_before_cell(before);
    if (before.error) return before;
    Execution execution = execute_cell(text, options);
    if (running_) return execution;
    run_after_cell(execution);
    if (execution.error && options.store_history) debug_error(*execution.error);
    // Freeing gigabytes takes longer than a user who interrupts wants to wait: that is left to the next cell.
    if (!execution.error || execution.error->kind != ErrorReport::Kind::interrupt) trim_memory_cache();
    return execution;
}

// Calls the functions that the cell registered. An interrupt of the cell is over by then.
void Session::run_after_cell(Execution& execution) {
    lua_State* L = state_.running();
    const int top = lua_gettop(L);
    if (lua_getfield(L, LUA_REGISTRYINDEX, kAfterCell) == LUA_TTABLE) {
        const Run run(*this, execution);
        lua_pushnil(L);
        lua_setfield(L, LUA_REGISTRYINDEX, kAfterCell);
        Execution ignored;
        for (lua_Integer i = 1; lua_rawgeti(L, top + 1, i) == LUA_TFUNCTION; ++i) {
            call(L, 0, execution.error ? ignored : execution);
            lua_settop(L, top + 1);
        }
        execution.ok = !execution.error;
    }
    lua_settop(L, top);
}

Execution Session::execute_cell(const std::string& text, const ExecuteOptions& options) {
    Execution execution;
    const Run run(*this, execution);
    const ExecuteOptions before = std::exchange(options_, options);
    if (options.store_history && !trimmed(text).empty()) {
        ++count_;
        history_.push_back(text);
        push(state_.running(), std::string_view(text));
        note("In");
    }
    execution.number = count_;
    if (is_leave(text)) {
        execution.leave = true;
    } else if (asks_for_help(state_.running(), text)) {
        run_lua("help()", str("=In[", count_, "]"), options, execution);
    } else if (is_command(text)) {
        run_command(text, execution);
    } else {
        run_lua(text, options.name.empty() ? str("=In[", count_, "]") : options.name, options, execution);
    }
    options_ = before;
    execution.exit_status = exit_status_;
    if (running_ == 1) exit_status_.reset();
    execution.ok = !execution.error;
    return execution;
}

void Session::run_lua(const std::string& text, const std::string& name, const ExecuteOptions& options,
                      Execution& execution) {
    lua_State* L = state_.running();
    const int top = lua_gettop(L);
    const bool marked = name.starts_with('=') || name.starts_with('@');
    bool silent = false;
    try {
        luaL_checkstack(L, 20, "too many commands within commands");
        Cell cell = prepare_cell(text, marked ? name.substr(1) : name);
        silent = cell.silent;
        state_.loader().compile(L, cell.chunk, name);
    } catch (const Error& e) {
        lua_settop(L, top);
        execution.error = ErrorReport{ErrorReport::Kind::syntax, e.what(), {}};
        return;
    }
    if (!call(L, 0, execution)) return;
    const int count = lua_gettop(L) - top;
    if (count > 0 && !lua_isnil(L, top + 1)) {
        lua_pushvalue(L, top + 1);
        lua_setglobal(L, "_");
        lua_pushvalue(L, top + 1);
        if (options.store_history && !silent)
            note("Out");
        else
            lua_pop(L, 1);
    }
    if (options.show && !silent) show_results(L, count, options.rich, execution);
    lua_settop(L, top);
}

// Keeps the value on top of the stack, which is popped, under the number of the cell: of the last kKept ones.
void Session::note(const char* table) {
    constexpr lua_Integer kKept = 1000;
    lua_State* L = state_.running();
    push_of_commands(L, table);
    lua_insert(L, -2);
    lua_rawseti(L, -2, count_);
    lua_pushnil(L);
    lua_rawseti(L, -2, count_ - kKept);
    lua_pop(L, 1);
}

bool Session::call(lua_State* L, int arguments, Execution& execution) {
    ErrorReport report;
    if (call_reported(L, arguments, LUA_MULTRET, report)) return true;
    if (exit_status_) return false;
    // A user who left the debugger knows where the program was.
    if (state_.debugger().take_left()) report = {ErrorReport::Kind::interrupt, "the debugger ended the program", {}};
    // An interrupt unwinds every call: its place tells more than its trace.
    if (!execution.error) execution.error = std::move(report);
    return false;
}

void Session::show_results(lua_State* L, int count, bool rich, Execution& execution) {
    for (int i = 0; i < count; ++i)
        execution.results.push_back(rich ? pretty(L, i - count, pretty_) : shown_text(L, i - count, pretty_));
    // In a notebook, a call without results and a result of nil show nothing.
    if (!rich || count == 0 || (count == 1 && lua_isnil(L, -1))) return;
    if (count == 1) {
        execution.rich = mime_bundle(L, -1, pretty_);
        return;
    }
    std::string line;
    for (const std::string& text : execution.results) line += str(line.empty() ? "" : "\t", text);
    execution.rich.set("text/plain", line);
}

Execution Session::receive(const CommMessage& message) {
    Execution execution;
    const Run run(*this, execution);
    lua_State* L = state_.running();
    const int top = lua_gettop(L);
    static constexpr const char* kKinds[] = {"open", "message", "close"};
    luaL_checkstack(L, 20, "too many messages within messages");
    lua_pushcfunction(L, protect<receive_comm>);
    lua_pushstring(L, kKinds[static_cast<int>(message.kind)]);
    for (const std::string* text : {&message.id, &message.target, &message.data, &message.metadata})
        push(L, std::string_view(*text));
    lua_createtable(L, static_cast<int>(message.buffers.size()), 0);
    for (size_t i = 0; i < message.buffers.size(); ++i) {
        push(L, std::string_view(message.buffers[i]));
        lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
    }
    call(L, 6, execution);
    lua_settop(L, top);
    execution.ok = !execution.error;
    return execution;
}

void Session::run_command(const std::string& text, Execution& execution) {
    lua_State* L = state_.running();
    const int top = lua_gettop(L);
    luaL_checkstack(L, 20, "too many commands within commands");
    lua_getfield(L, LUA_REGISTRYINDEX, kCommands);
    lua_getfield(L, -1, "run");
    const std::string_view line = trimmed(text);
    lua_pushlstring(L, line.data(), line.size());
    call(L, 1, execution);
    lua_settop(L, top);
}

Execution Session::run_notebook(const std::string& path, bool debug) {
    Execution execution;
    const Run run(*this, execution);
    lua_State* L = state_.running();
    const int top = lua_gettop(L);
    lua_getfield(L, LUA_REGISTRYINDEX, kCommands);
    lua_getfield(L, -1, "notebook");
    push(L, std::string_view(path));
    lua_pushboolean(L, debug);
    call(L, 2, execution);
    lua_settop(L, top);
    execution.ok = !execution.error;
    return execution;
}

bool Session::run_notebook_cell(lua_State* L, const std::string& text, const std::string& name, bool may_fail) {
    Execution& outer = *current_;
    Execution cell = execute_cell(text, {.name = name, .store_history = false, .rich = options_.rich});
    run_after_cell(cell);
    if (cell.error) {
        // An exit of the process or an interrupt ends the notebook as well.
        const bool goes_on = may_fail && cell.error->kind != ErrorReport::Kind::interrupt;
        if (!goes_on) {
            outer.error = std::move(cell.error);
            return false;
        }
        const std::string message = format_error(*cell.error, pretty_.color) + "\n";
        if (hooks_.output) {
            hooks_.output(true, message);
        } else {
            std::fflush(stdout);
            std::fputs(message.c_str(), stderr);
        }
        return true;
    }
    Display shown;
    // As in a notebook, nil alone shows nothing.
    if (!cell.rich.parts.empty()) {
        shown.bundle = std::move(cell.rich);
    } else if (cell.results.size() > 1 || (!cell.results.empty() && cell.results.front() != "nil")) {
        std::string lines = lines_of(cell.results);
        lines.pop_back();
        shown.bundle.set("text/plain", std::move(lines));
    }
    if (!shown.bundle.parts.empty()) lunaria::show(L, shown);
    return !cell.leave;
}

std::string Session::lines_of(const std::vector<std::string>& results) const {
    size_t length = 0;
    bool one_line = true;
    for (const std::string& text : results) {
        length += text.size() + 8;
        one_line &= text.find('\n') == std::string::npos;
    }
    one_line &= length <= static_cast<size_t>(pretty_.width) || results.size() == 1;
    std::string lines;
    for (size_t i = 0; i < results.size(); ++i)
        lines += str(results[i], one_line && i + 1 < results.size() ? "\t" : "\n");
    return lines;
}

Completions Session::complete(const std::string& text, size_t cursor) {
    return lunaria::complete(state_, text, cursor, commands_);
}

Inspection Session::inspect(const std::string& text, size_t cursor, int level) {
    return lunaria::inspect(state_, text, cursor, level);
}

InputCheck Session::is_complete(const std::string& text) const {
    if (is_open_cell_command(text)) return {InputKind::incomplete, ""};
    if (trimmed(text).empty() || is_command(text) || is_leave(text)) return {InputKind::complete, ""};
    if (is_doc_comment(text)) return {InputKind::incomplete, ""};
    const lua::InputState input = lua::input_state(text);
    if (input.completeness == lua::Completeness::complete) return {InputKind::complete, ""};
    // Statements followed by an expression are a cell, but not a chunk.
    try {
        prepare_cell(text, "cell");
        return {InputKind::complete, ""};
    } catch (const lua::SyntaxError&) {
        const bool goes_on = input.completeness == lua::Completeness::incomplete;
        return goes_on ? InputCheck{InputKind::incomplete, input.indent} : InputCheck{InputKind::invalid, ""};
    }
}

}  // namespace lunaria
