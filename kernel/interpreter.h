// Requests that concern Lua, answered by a session (interpreter/session/session.h). Everything here runs on the main
// thread, except kernel_info_request and interrupt.
#pragma once

#include <pthread.h>

#include <xeus/xinterpreter.hpp>

#include "interpreter/session/session.h"
#include "kernel/host.h"
#include "kernel/server.h"

namespace lunaria::jupyter {

class DapSession;

class Interpreter final : public xeus::xinterpreter, public Host {
  public:
    // The session's hooks become this object's. To be made on the thread that runs Lua.
    explicit Interpreter(Session& session);

    // Before the server starts, which must outlive all cells.
    void connect(Server& server);

    void interrupt() override;
    double interrupt_seconds() const override { return session_.interrupt_seconds(); }
    void ask_for_visit() override { session_.state().ask_for_visit(); }
    int next_count(const std::string& code, bool store_history) const override;
    void receive_comm(const CommMessage& message) override;
    void set_debugger(DapSession* debugger) { debugger_ = debugger; }
    void on_wake() override;
    // The status that the program passed to os.exit, if it did.
    int exit_status() const { return exit_status_; }

  private:
    void configure_impl() override {}
    nl::json execute_request_impl(int, const std::string& code, bool silent, bool store_history,
                                  nl::json user_expressions, bool allow_stdin) override;
    nl::json complete_request_impl(const std::string& code, int cursor) override;
    nl::json inspect_request_impl(const std::string& code, int cursor, int level) override;
    nl::json is_complete_request_impl(const std::string& code) override;
    nl::json kernel_info_request_impl() override;
    void shutdown_request_impl() override {}

    nl::json evaluate(const nl::json& expressions);
    void show(const Display& shown);
    Session::Hooks hooks();

    Session& session_;
    Server* server_ = nullptr;
    DapSession* debugger_ = nullptr;
    pthread_t thread_ = pthread_self();
    nl::json payload_ = nl::json::array();  // of the running cell
    int exit_status_ = 0;
    bool started_ = false;  // the startup file was run
};

// In the form of the protocol: data by type, binary ones as base64, JSON as itself.
nl::json data_of(const MimeBundle& bundle);

}  // namespace lunaria::jupyter
