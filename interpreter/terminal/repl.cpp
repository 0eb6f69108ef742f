#include "interpreter/terminal/repl.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/signals.h"
#include "interpreter/display/terminal_text.h"
#include "interpreter/session/session.h"
#include "interpreter/session/startup.h"
#include "interpreter/terminal/line_reader.h"

namespace lunaria {

namespace {

constexpr int kInterrupted = 130;  // 128 + SIGINT, as in shells

// The session that Ctrl-C is meant for. A signal handler has no other way to find it.
Session* running_session = nullptr;

void on_interrupt(int number) {
    if (running_session && running_session->state().pass_on(number)) return;
    if (running_session) running_session->interrupt();
    // For readers, which may also wait for an answer within a cell.
    note_interrupt();
}

// While it lives, SIGINT interrupts the session and SIGPIPE ends nothing. Without SA_RESTART, so that waiting reads
// return.
class InterruptHandler {
  public:
    explicit InterruptHandler(Session& session) {
        running_session = &session;
        sigaction(SIGINT, nullptr, &before_);
        handle_signal(SIGINT, on_interrupt);
        // A child that ends before it has read everything must not end the session. The signal is not ignored: children
        // would inherit that.
        sigaction(SIGPIPE, nullptr, &pipe_before_);
        handle_signal(SIGPIPE, [](int) {});
    }
    ~InterruptHandler() {
        sigaction(SIGPIPE, &pipe_before_, nullptr);
        sigaction(SIGINT, &before_, nullptr);
        running_session = nullptr;
    }
    InterruptHandler(const InterruptHandler&) = delete;
    InterruptHandler& operator=(const InterruptHandler&) = delete;

  private:
    struct sigaction before_ {
    }, pipe_before_{};
};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string history_file() {
    const std::string folder = user_folder("XDG_STATE_HOME", ".local/state");
    std::error_code failure;
    if (folder.empty()) return "";
    std::filesystem::create_directories(folder, failure);
    return failure ? "" : folder + "/history";
}

class Repl {
  public:
    explicit Repl(State& state)
        : terminal_(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)),
          color_(isatty(STDOUT_FILENO) && environment("NO_COLOR").empty() && environment("TERM") != "dumb"),
          session_(state, PrettyOptions{.color = color_}),
          handler_(session_) {
        LineReader::Hooks hooks{[this](const std::string& text, size_t at) { return session_.complete(text, at); },
                                [this](const std::string& text) { return session_.is_complete(text); }};
        if (terminal_ && environment("TERM") != "dumb") reader_ = make_readline_reader(hooks, history_file(), color_);
        if (!reader_) reader_ = make_plain_reader(hooks);
        Session::Hooks session_hooks;
        session_hooks.input = [this](const std::string& prompt) -> std::optional<std::string> {
            const LineReader::Input input = reader_->read_line(prompt);
            if (input.event == LineReader::Event::text) return input.text;
            return std::nullopt;
        };
        session_hooks.set_next_input = [this](const std::string& text) { initial_ = text; };
        session_hooks.command = [this](const std::string& prompt, const DebuggerPrompt::Complete& complete) {
            return command(prompt, complete);
        };
        session_.set_hooks(std::move(session_hooks));
    }

    int run_notebook(const std::string& path, bool debug) {
        session_.pretty_options().width = terminal_size().columns;
        const Execution execution = session_.run_notebook(path, debug);
        show(execution);
        if (!execution.error) return 0;
        return execution.error->kind == ErrorReport::Kind::interrupt ? kInterrupted : 1;
    }

    int run(bool startup_file) {
        if (terminal_)
            std::printf("Lunaria %s (%s). help() or ?name explains, %%lsmagic lists commands, Ctrl-D leaves.\n",
                        LUNARIA_VERSION, LUA_RELEASE);
        if (startup_file) show(run_startup_file(session_));
        for (;;) {
            const std::string initial = std::exchange(initial_, "");
            const LineReader::Input input = reader_->read_cell(terminal_ ? "> " : "", initial);
            if (input.event == LineReader::Event::end) return 0;
            if (input.event == LineReader::Event::interrupt) continue;
            if (input.text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
            reader_->remember(input.text);
            session_.pretty_options().width = terminal_size().columns;
            const Execution execution = session_.execute(input.text);
            if (execution.leave) return 0;
            show(execution);
        }
    }

  private:
    // Ctrl-C ends the program that is debugged, as it would without a debugger.
    std::optional<std::string> command(const std::string& prompt, const DebuggerPrompt::Complete& complete) {
        const LineReader::Input input = reader_->read_command(prompt, complete);
        if (input.event == LineReader::Event::text) return input.text;
        return std::nullopt;
    }

    void show(const Execution& execution) {
        std::fputs(session_.lines_of(execution.results).c_str(), stdout);
        std::fflush(stdout);
        if (!execution.error) return;
        std::fprintf(stderr, "%s\n", format_error(*execution.error, color_ && isatty(STDERR_FILENO)).c_str());
    }

    bool terminal_, color_;
    Session session_;
    InterruptHandler handler_;
    std::unique_ptr<LineReader> reader_;
    std::string initial_;
};

}  // namespace

int run_repl(State& state, const ReplOptions& options) {
    Repl repl(state);
    const int code = options.notebook ? repl.run_notebook(*options.notebook, options.debug) : 0;
    return options.prompt ? repl.run(options.startup_file) : code;
}

}  // namespace lunaria
