// The Jupyter kernel: `lunaria kernel ...` opens this module, and so do kernel specs. It is no part of the program,
// because loading its libraries would cost every script time.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include <xeus/xeus_context.hpp>
#include <xeus/xkernel.hpp>

#include "core/base/signals.h"
#include "interpreter/program/program_state.h"
#include "interpreter/session/session.h"
#include "kernel/connection.h"
#include "kernel/dap_session.h"
#include "kernel/history.h"
#include "kernel/install.h"
#include "kernel/interpreter.h"
#include "kernel/log.h"
#include "kernel/server.h"

namespace {

using namespace lunaria;
using namespace lunaria::jupyter;

constexpr const char* kUsage =
    "usage: lunaria kernel [-f FILE]          run a kernel; FILE is its connection file, made if it is not there\n"
    "       lunaria kernel install [--user | --prefix P | --sys-prefix] [--name N] [--display-name TEXT]\n"
    "                                         let Jupyter find the kernel\n";

// The targets of signals. A signal handler has no other way to find them.
Session* running_session = nullptr;
int crash_file = -1;

void on_interrupt(int) {
    if (running_session) running_session->interrupt();
}

// Reports why the kernel is gone, which Jupyter does not; then the signal has its usual effect.
void on_crash(int number) {
    char text[] = "lunaria kernel: ended by signal 00\n";
    text[sizeof text - 4] = static_cast<char>('0' + number / 10);
    text[sizeof text - 3] = static_cast<char>('0' + number % 10);
    if (crash_file >= 0 && write(crash_file, text, sizeof text - 1) < 0) crash_file = -1;
    signal(number, SIG_DFL);
    raise(number);
}

// SIGINT goes to the calling thread alone: all threads that are made while this object lives have it blocked. A signal
// must not reach a thread that waits in ZeroMQ.
class BlockedInterrupts {
  public:
    BlockedInterrupts() {
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        pthread_sigmask(SIG_BLOCK, &signals, &before_);
    }
    ~BlockedInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedInterrupts(const BlockedInterrupts&) = delete;
    BlockedInterrupts& operator=(const BlockedInterrupts&) = delete;

  private:
    sigset_t before_;
};

// Children of a cell must not read the kernel's input.
void close_input() {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0) return;
    dup2(nothing, STDIN_FILENO);
    close(nothing);
}

int run_kernel(const std::string& file) {
    const xeus::xconfiguration configuration = read_connection(file);
    Log log;
    crash_file = log.file();
    close_input();
    ProgramState state;
    Session session(state);
    running_session = &session;
    handle_signal(SIGINT, on_interrupt);
    // A child that ends before it has read everything must not end the kernel. The signal is not ignored: children
    // would inherit that.
    handle_signal(SIGPIPE, [](int) {});
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) handle_signal(number, on_crash);

    auto interpreter = std::make_unique<Interpreter>(session);
    Interpreter& lua = *interpreter;
    auto context = xeus::make_context<Context>();
    Context& ours = context->m_context;
    ours.log = &log;
    ours.key = configuration.m_key;
    std::optional<DapSession> debugger;
    std::unique_ptr<xeus::xkernel> kernel;
    {
        const BlockedInterrupts blocked;
        kernel = std::make_unique<xeus::xkernel>(
            configuration, "kernel", std::move(context), std::move(interpreter), make_server,
            std::make_unique<History>(History::user_file(), [&ours] { return ours.server->count(); }), nullptr,
            xeus::make_null_debugger, nl::json::object(), nl::json::error_handler_t::replace);
        lua.connect(*ours.server);
        ours.server->set_host(lua);
        debugger.emplace(session, DapSession::Hooks{[server = ours.server](nl::json event) {
                                                        server->publish_debug_event(std::move(event));
                                                    },
                                                    [server = ours.server] { server->wake(); }});
        lua.set_debugger(&*debugger);
        ours.server->set_debug_adapter(&*debugger);
        ours.server->streams().capture();
        ours.server->start_threads();
    }
    kernel->start();
    running_session = nullptr;
    session.set_hooks({});
    const int status = lua.exit_status();
    kernel.reset();
    return status;
}

int run(const std::vector<std::string>& arguments) {
    if (!arguments.empty() && arguments[0] == "install") {
        const std::string folder = install_spec(parse_install({arguments.begin() + 1, arguments.end()}));
        std::printf("kernel spec written to %s\n", folder.c_str());
        return 0;
    }
    std::string file;
    for (size_t i = 0; i < arguments.size(); ++i) {
        if (arguments[i] == "--help" || arguments[i] == "-h") {
            std::fputs(kUsage, stdout);
            return 0;
        }
        if (arguments[i] != "-f")
            throw argument_error("kernel", str("unrecognized argument '", arguments[i], "'"))
                .hint("lunaria kernel --help lists them");
        if (++i >= arguments.size()) throw argument_error("kernel", "option -f needs a file");
        file = arguments[i];
    }
    std::error_code failure;
    const bool is_new = file.empty() || !std::filesystem::exists(file, failure);
    if (is_new) {
        file = write_connection(file);
        std::printf("To connect a client: jupyter console --existing %s\n", file.c_str());
        std::fflush(stdout);
    }
    const int code = run_kernel(file);
    if (is_new) std::filesystem::remove(file, failure);
    return code;
}

}  // namespace

// The words after `lunaria kernel`; gives the exit status.
extern "C" [[gnu::visibility("default")]] int lunaria_kernel(int count, char** words) {
    try {
        return run({words, words + count});
    } catch (const std::exception& e) {
        std::fprintf(stderr, "lunaria: %s\n", e.what());
        return 1;
    }
}
