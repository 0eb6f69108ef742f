// The server's questions to the side that runs Lua.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "interpreter/session/display.h"

namespace lunaria::jupyter {

class Host {
  public:
    virtual ~Host() = default;

    // From any thread: stops the running cell, if there is one.
    virtual void interrupt() = 0;
    // From any thread: makes the main thread call Server::visit() at the next point where the running cell can be left
    // for a moment.
    virtual void ask_for_visit() = 0;
    // The time from the last interrupt of a cell to the end of that cell.
    virtual double interrupt_seconds() const = 0;

    // On the main thread. The execution count that a cell with this text will have.
    virtual int next_count(const std::string& code, bool store_history) const = 0;
    virtual void receive_comm(const CommMessage& message) = 0;
    virtual void on_wake() = 0;
};

// The debugger's end of the control channel. DAP requests come as JSON on a thread of their own, while the main thread
// may be running a cell or be at a breakpoint; events go out by Server::publish_debug_event.
class DebugAdapter {
  public:
    virtual ~DebugAdapter() = default;
    // The DAP response to a DAP request. May wait for the main thread; exceptions become failed responses.
    virtual nlohmann::json answer(const nlohmann::json& request) = 0;
};

}  // namespace lunaria::jupyter
