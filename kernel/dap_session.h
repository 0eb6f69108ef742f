// The Debug Adapter Protocol as JupyterLab's debugger panel speaks it, over the session's debugger: requests and
// responses as JSON, without a socket.
//
// Requests come on a thread of their own. Breakpoints and the like take effect at once; tasks that need Lua run on
// Lua's thread, which takes them while it is at a stop and, by serve(), between cells.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "interpreter/debugger/debugger_variables.h"
#include "interpreter/session/session.h"
#include "kernel/host.h"

namespace lunaria::jupyter {

class DapSession final : public DebugAdapter {
  public:
    struct Hooks {
        std::function<void(nlohmann::json event)> event;  // from any thread
        // Lua's thread is to call serve() as soon as it runs nothing.
        std::function<void()> wake;
    };

    // To be called on Lua's thread, like the destructor. The session must outlive it.
    DapSession(Session& session, Hooks hooks);
    ~DapSession() override;
    DapSession(const DapSession&) = delete;
    DapSession& operator=(const DapSession&) = delete;

    // From any thread but Lua's. Never throws; a failure is a response without success.
    nlohmann::json answer(const nlohmann::json& request) override;
    // On Lua's thread, between cells.
    void serve();
    // The time for which a request may wait for a running program.
    void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }

    // The file that represents a cell with this text.
    std::string cell_path(std::string_view code) const;

  private:
    using Json = nlohmann::json;
    using Handler = Json (DapSession::*)(const Json& arguments);
    struct Task {
        std::function<void()> run;
        bool taken = false, done = false;
    };
    static const std::map<std::string, Handler, std::less<>>& handlers();

    Resume on_stop(const Stop& stop);
    void run_task(std::unique_lock<std::mutex>& lock);
    // Runs it on Lua's thread and waits; throws its exception, or state_error when the program does not reach a point
    // where it can run.
    void on_lua(const std::function<void()>& body);
    void event(const std::string& name, Json body = Json::object());
    void start();
    void stop();
    Json resume(Resume how);
    Json frame_json(const StackFrame& frame, size_t index) const;
    // A frame by the number that stackTrace gave it, or npos.
    static size_t frame_of(const Json& arguments);
    std::string path_of(const std::string& source) const;

    Json initialize(const Json& a);
    Json attach(const Json& a);
    Json disconnect(const Json& a);
    Json terminate(const Json& a);
    Json configuration_done(const Json& a);
    Json debug_info(const Json& a);
    Json dump_cell(const Json& a);
    Json set_breakpoints(const Json& a);
    Json set_exception_breakpoints(const Json& a);
    Json exception_info(const Json& a);
    Json source(const Json& a);
    Json threads(const Json& a);
    Json stack_trace(const Json& a);
    Json scopes(const Json& a);
    Json variables(const Json& a);
    Json inspect_variables(const Json& a);
    Json rich_inspect_variables(const Json& a);
    Json copy_to_globals(const Json& a);
    Json modules(const Json& a);
    Json evaluate(const Json& a);
    Json set_variable(const Json& a);
    Json set_expression(const Json& a);
    Json go(const Json& a) { return static_cast<void>(a), resume(Resume::go); }
    Json next(const Json& a) { return static_cast<void>(a), resume(Resume::over); }
    Json step_in(const Json& a) { return static_cast<void>(a), resume(Resume::into); }
    Json step_out(const Json& a) { return static_cast<void>(a), resume(Resume::out); }
    Json pause(const Json& a);

    Session& session_;
    Debugger& debugger_;
    Hooks hooks_;
    const std::string prefix_;  // of the files of cells
    std::chrono::milliseconds patience_{2000};
    DebugVariables variables_;  // Lua's thread
    Debugger::Front prompt_;    // the front end that showed stops before
    bool shown_stop_ = false;   // Lua's thread: references belong to this stop

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool started_ = false, stopped_ = false;
    std::optional<Resume> how_;
    Stop stop_{};
    std::deque<std::shared_ptr<Task>> tasks_;  // shared by the waiting thread and the thread that runs it
    std::map<std::string, Json> breakpoints_;  // as requested, by source
    std::atomic<int64_t> sequence_{1};
};

}  // namespace lunaria::jupyter
