// Events of a running program, reported to the state's debugger (interpreter/debugger/debugger.h), and questions to it
// about them.
#pragma once

#include <atomic>
#include <functional>
#include <lua.hpp>

#include "core/base/error.h"

namespace lunaria {

class ProgramEvents {
  public:
    ProgramEvents() = default;
    virtual ~ProgramEvents() = default;
    ProgramEvents(const ProgramEvents&) = delete;
    ProgramEvents& operator=(const ProgramEvents&) = delete;

    // Whether functions that the virtual machine runs are to have stop points.
    virtual bool wants_stop_points() const = 0;
    void on_poll(lua_State* L) {
        if (pause_.load(std::memory_order_relaxed)) [[unlikely]]
            on_pause(L);
    }
    virtual void on_machine_line(lua_State* L) = 0;
    // An operation of the machine's program has failed.
    virtual void on_failure(lua_State* L, const Error& e) = 0;
    // The error object is on top of the stack of L, which raised it.
    virtual void on_error(lua_State* L, bool outermost) = 0;
    // A coroutine ended with the error on top of its stack.
    virtual void on_dead_coroutine(lua_State* thread) = 0;
    // Pushes a message handler that reports errors, if a front end wants them; returns whether it did.
    virtual bool push_error_handler(lua_State* L) = 0;
    // Pushes a handler for a function that the machine calls, which also keeps the frames for later.
    virtual void push_call_handler(lua_State* L) = 0;
    virtual void forget_error() = 0;
    // Removes the message handlers of xpcalls: for an error that is raised in a hook, within which no other hook could
    // stop a handler that does not end.
    virtual void skip_handlers(lua_State* L) = 0;
    // In Lua's thread, also in a signal handler: another thread has changed something.
    virtual void on_nudge() noexcept = 0;
    // Runs `body`, which must not throw, without stops.
    virtual void quietly(const std::function<void()>& body) = 0;

  protected:
    std::atomic<bool> pause_{false};  // a pause was asked for

  private:
    virtual void on_pause(lua_State* L) = 0;
};

}  // namespace lunaria
