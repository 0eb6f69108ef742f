// Running chunks for the command line and the session: protected calls with a traceback that shows source lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "interpreter/state.h"

namespace lunaria {

// The outcome of a run.
struct Outcome {
    bool ok = true;
    bool interrupted = false;
    std::string message;    // of the error
    std::string traceback;  // "stack traceback:\n\t..." with the source line below each place that has one
};

// Runs `body`, which may use the Lua API without further protection; errors of Lua and of C++ go to the outcome. The
// stack is as before, except for values that the body left on it without an error.
Outcome run_protected(State& state, const std::function<void(lua_State*)>& body);

// Calls the function below `arguments` values on the stack with a message handler that collects the traceback. Leaves
// `results` values (or LUA_MULTRET) if all went well.
Outcome call_protected(State& state, int arguments, int results);

// Pushes a message handler, for lua_pcall, that fills in the message and the traceback of `outcome`, which must outlive
// the handler.
void push_message_handler(lua_State* L, Outcome& outcome);

// The message of an interrupt that was raised by refusing memory (interpreter/memory.h).
inline constexpr const char* kRefusedMemory = "interrupted!";

// Text of the error object on top of the stack: a string, the result of its __tostring, or the contents of a table with
// the running place.
std::string error_text(lua_State* L);

}  // namespace lunaria
