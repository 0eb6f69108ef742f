// The lunaria command.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include "core/base/own_library.h"
#include "core/base/signals.h"
#include "core/parallel/communicator.h"
#include "interpreter/errors/script.h"
#include "interpreter/loader/loader.h"
#include "interpreter/program/program_state.h"
#include "interpreter/protect.h"
#include "interpreter/session/command_line.h"
#include "interpreter/session/debugger_prompt.h"
#include "interpreter/session/docs.h"
#include "interpreter/terminal/launch_command.h"
#include "interpreter/terminal/line_reader.h"
#include "interpreter/terminal/repl.h"

namespace {

using namespace lunaria;

constexpr int kInterrupted = 130;  // 128 + SIGINT, as in shells

// The state that Ctrl-C is meant for. A signal handler has no other way to find it.
State* interruptible = nullptr;

constexpr int64_t kSameInterrupt = 200'000'000;  // ns

// The time of the first signal; 0: none came.
volatile int64_t interrupted_at = 0;

void on_interrupt(int number) {
    if (interruptible->pass_on(number)) return;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t time = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    if (interrupted_at != 0) {
        // The second signal ends the process, should the first have no effect. A sender that signals both the process
        // and its group (timeout does) sends one twice.
        if (time - interrupted_at < kSameInterrupt) return;
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
        return;
    }
    interrupted_at = time;
    interruptible->interrupt();
    // For the debugger's prompt, which waits for a line.
    note_interrupt();
}

// Single lines: with editing and what was typed before where input and output are a terminal.
std::unique_ptr<LineReader> make_command_reader(bool color) {
    const LineReader::Hooks hooks{[](const std::string&, size_t) { return Completions(); },
                                  [](const std::string&) {
                                      return InputCheck{InputKind::complete, ""};
                                  }};
    const char* terminal = std::getenv("TERM");
    std::unique_ptr<LineReader> reader;
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && terminal && std::string_view(terminal) != "dumb")
        reader = make_readline_reader(hooks, "", color);
    return reader ? std::move(reader) : make_plain_reader(hooks);
}

// The debugger of scripts. Its parts are made only when the program stops.
class ScriptDebugger {
  public:
    explicit ScriptDebugger(State& state) : state_(state) {
        state.debugger().set_front([this](const Stop& stop) { return prompt().on_stop(stop); });
    }
    ~ScriptDebugger() { state_.debugger().set_front({}); }
    ScriptDebugger(const ScriptDebugger&) = delete;
    ScriptDebugger& operator=(const ScriptDebugger&) = delete;

  private:
    DebuggerPrompt& prompt() {
        if (prompt_) return *prompt_;
        const bool color = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
        reader_ = make_command_reader(color);
        prompt_.emplace(state_, DebuggerPrompt::Hooks{
                                    [this](const std::string& text,
                                           const DebuggerPrompt::Complete& complete) -> std::optional<std::string> {
                                        const LineReader::Input input = reader_->read_command(text, complete);
                                        if (input.event == LineReader::Event::text) return input.text;
                                        return std::nullopt;
                                    },
                                    [](const std::string& text) {
                                        std::fwrite(text.data(), 1, text.size(), stdout);
                                        std::fflush(stdout);
                                    },
                                    [color] { return PrettyOptions{.color = color}; }});
        return *prompt_;
    }

    State& state_;
    std::unique_ptr<LineReader> reader_;
    std::optional<DebuggerPrompt> prompt_;
};

// Reports a full disk by the exit status, since the functions that write to standard output do not. Runs after
// everything else, os.exit included.
void check_output() {
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return;
    std::fputs("lunaria: the standard output could not be written, or not all of it: is the disk full?\n", stderr);
    std::_Exit(1);
}

int report(State& state, const Outcome& outcome) {
    if (outcome.ok) return 0;
    std::fflush(stdout);
    parallel::tell_failure(outcome.message);
    // A user who left the debugger knows the state of the program.
    if (state.debugger().take_left()) return 1;
    std::fprintf(stderr, "lunaria: %s\n", outcome.message.c_str());
    if (!outcome.traceback.empty()) std::fprintf(stderr, "%s\n", outcome.traceback.c_str());
    return outcome.interrupted ? kInterrupted : 1;
}

void set_arg_table(lua_State* L, const CommandLine& command) {
    const int count = static_cast<int>(command.arguments.size());
    const int zero = command.script ? command.script_position : 0;
    lua_createtable(L, count - zero, zero + 1);
    for (int i = 0; i < count; ++i) {
        lua_pushstring(L, command.arguments[static_cast<size_t>(i)].c_str());
        lua_rawseti(L, -2, i - zero);
    }
    lua_setglobal(L, "arg");
}

// Statements, or an expression, whose values are printed as at the prompt.
void run_text(lua_State* L, const std::string& text) {
    constexpr const char* kName = "=(command line)";
    std::optional<Error> problem;
    try {
        State::of(L).loader().compile(L, text, kName);
    } catch (const Error& e) {
        problem = e;
    }
    if (!problem) return lua_call(L, 0, 0);
    try {
        State::of(L).loader().compile(L, "return " + text, kName);
    } catch (const Error&) {
        throw *problem;
    }
    const int base = lua_gettop(L) - 1;
    lua_call(L, 0, LUA_MULTRET);
    const int count = lua_gettop(L) - base;
    lua_getglobal(L, "print");
    lua_insert(L, base + 1);
    if (count > 0) lua_call(L, count, 0);
}

// help(...) of scripts: ms is loaded when it is called.
int script_help(lua_State* L) {
    lua_getglobal(L, "require");
    lua_pushliteral(L, "lunaria");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "help");
    lua_insert(L, 1);
    lua_pop(L, 1);
    lua_call(L, lua_gettop(L) - 1, 0);
    return 0;
}

void run_step(lua_State* L, const CommandLine::Step& step) {
    switch (step.kind) {
        case CommandLine::Step::Kind::warnings:
            lua_warning(L, "@on", 0);
            return;
        case CommandLine::Step::Kind::execute:
            run_text(L, step.text);
            return;
        case CommandLine::Step::Kind::require_module: {
            const size_t equals = step.text.find('=');
            const bool renamed = equals != std::string::npos;
            const std::string module = renamed ? step.text.substr(equals + 1) : step.text;
            lua_getglobal(L, "require");
            lua_pushstring(L, module.c_str());
            lua_call(L, 1, 1);
            lua_setglobal(L, renamed ? step.text.substr(0, equals).c_str() : module.c_str());
        }
    }
}

// LUA_INIT_5_4 or LUA_INIT: statements, or @file.
void run_init(lua_State* L) {
    const char* name = "LUA_INIT_5_4";
    const char* text = std::getenv(name);
    if (!text) text = std::getenv(name = "LUA_INIT");
    if (!text) return;
    if (*text == '@')
        State::of(L).loader().compile_file(L, text + 1);
    else
        State::of(L).loader().compile(L, text, std::string("=") + name);
    lua_call(L, 0, 0);
}

int run_script(State& state, const CommandLine& command, const char* path) {
    return report(state, run_protected(state, [&](lua_State* L) {
                      state.loader().compile_file(L, path);
                      if (command.debug) state.debugger().stop_at_next_line();
                      int arguments = 0;
                      if (command.script)
                          for (size_t i = static_cast<size_t>(command.script_position) + 1;
                               i < command.arguments.size(); ++i) {
                              luaL_checkstack(L, 1, "too many arguments");
                              lua_pushstring(L, command.arguments[i].c_str());
                              ++arguments;
                          }
                      lua_call(L, arguments, 0);
                  }));
}

int run_command(const CommandLine& command) {
    if (command.version) std::printf("Lunaria %s (%s)\n", LUNARIA_VERSION, LUA_RELEASE);
    ProgramState state({.ignore_environment = command.ignore_environment});
    if (command.docs)
        return report(state, run_protected(state, [&](lua_State*) { write_docs(state, *command.docs, command.html); }));
    std::optional<ScriptDebugger> debugger(std::in_place, state);
    interruptible = &state;
    // Without a restart of system calls: a script that waits for a pipe or for input would otherwise never come to a
    // point where it is stopped.
    handle_signal(SIGINT, on_interrupt);
    set_arg_table(state.lua(), command);
    lua_pushcfunction(state.lua(), protect<script_help>);
    lua_setglobal(state.lua(), "help");
    int code = 0;
    if (!command.ignore_environment) code = report(state, run_protected(state, run_init));
    for (const auto& step : command.steps) {
        if (code != 0) break;
        code = report(state, run_protected(state, [&](lua_State* L) { run_step(L, step); }));
    }
    const bool is_notebook = command.script && command.script->ends_with(".ipynb");
    if (code == 0 && is_notebook) {
        debugger.reset();
        return run_repl(state, {.startup_file = !command.ignore_environment,
                                .notebook = command.script,
                                .debug = command.debug,
                                .prompt = command.interactive});
    }
    if (code == 0 && command.script)
        code = run_script(state, command, *command.script == "-" ? nullptr : command.script->c_str());
    if (command.interactive || (code == 0 && command.wants_session() && isatty(STDIN_FILENO))) {
        // With -i the session starts however the script ended.
        signal(SIGINT, SIG_DFL);
        state.clear_interrupt();
        state.debugger().end_of_run();
        debugger.reset();
        return run_repl(state, {.startup_file = !command.ignore_environment});
    }
    if (code == 0 && command.wants_session()) code = run_script(state, command, nullptr);
    signal(SIGINT, SIG_DFL);
    return code;
}

// Removes lines of the library, which mean nothing to users who wrote no program.
void leave_out_library(Outcome& outcome) {
    const size_t end = outcome.message.find(": ");
    const size_t colon = end == std::string::npos ? end : outcome.message.find_last_not_of("0123456789", end - 1);
    const bool has_place = colon != std::string::npos && colon + 1 < end && outcome.message[colon] == ':';
    const bool of_library = outcome.message.starts_with("lunaria:");
    if (of_library && has_place) outcome.message.erase(0, end + 2);
    if (of_library || !has_place) outcome.traceback.clear();
}

// The first words of command lines whose other words a file of the library handles.
constexpr std::pair<std::string_view, const char*> kLibraryCommands[] = {
    {"onnx-run", "lunaria.onnx.run"},           {"ascend", "lunaria.ascend.command"},
    {"federated", "lunaria.federated.command"}, {"insight", "lunaria.insight.command"},
    {"lite", "lunaria.lite.command"},           {"serve", "lunaria.lite.serving.command"},
    {"chat", "lunaria.lite.serving.chat"},      {"checkpoint", "lunaria.parallel.checkpoint_command"},
    {"check", "lunaria.check.command"},         {"stubs", "lunaria.stubs.command"},
    {"lessons", "lunaria.help.lessons"}};

// read(prompt): a line of the user's; nil at the end, false after Ctrl-C. Upvalue 1: the reader, which the first call
// makes.
int read_line(lua_State* L) {
    auto& reader = *static_cast<std::unique_ptr<LineReader>*>(lua_touserdata(L, lua_upvalueindex(1)));
    if (!reader) reader = make_command_reader(false);
    const LineReader::Input input =
        reader->read_command(luaL_checkstring(L, 1), [](const std::string&, size_t) { return Completions(); });
    if (input.event == LineReader::Event::text) {
        lua_pushlstring(L, input.text.data(), input.text.size());
    } else if (input.event == LineReader::Event::interrupt) {
        State::of(L).clear_interrupt();
        interrupted_at = 0;
        lua_pushboolean(L, 0);
    } else {
        lua_pushnil(L);
    }
    return 1;
}

int run_words(const char* module, int count, char** words) {
    ProgramState state({.ignore_environment = false});
    interruptible = &state;
    handle_signal(SIGINT, on_interrupt);
    std::unique_ptr<LineReader> reader;
    Outcome outcome = run_protected(state, [&](lua_State* L) {
        luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
        lua_pushlightuserdata(L, &reader);
        lua_pushcclosure(L, protect<read_line>, 1);
        lua_setfield(L, -2, "lunaria.read_line");
        lua_pop(L, 1);
        lua_getglobal(L, "require");
        lua_pushstring(L, module);
        lua_call(L, 1, 1);
        luaL_checkstack(L, count, "too many arguments");
        for (int i = 0; i < count; ++i) lua_pushstring(L, words[i]);
        lua_call(L, count, 0);
    });
    leave_out_library(outcome);
    const int code = report(state, outcome);
    signal(SIGINT, SIG_DFL);
    return code;
}

// The kernel is a module.
int run_kernel(int count, char** words) {
    std::string problem;
    void* const run = own_library_function("liblunaria_kernel.so", "lunaria_kernel", problem);
    if (!run) throw file_error("lunaria kernel", problem).hint("build or install the target lunaria-kernel");
    return reinterpret_cast<int (*)(int, char**)>(run)(count, words);
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const std::string_view first = count > 1 ? arguments[1] : "";
        if (first == "kernel") return run_kernel(count - 2, arguments + 2);
        std::atexit(check_output);
        if (first == "launch") return run_launch(count - 2, arguments + 2);
        if (first == "ranks") return run_ranks(count - 2, arguments + 2);
        begin_rank();
        for (const auto& [name, module] : kLibraryCommands)
            if (count > 1 && arguments[1] == name) return run_words(module, count - 2, arguments + 2);
        const CommandLine command = parse_command_line(count, arguments);
        if (command.help) {
            std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
            return 0;
        }
        return run_command(command);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
