// Running chunks for the command line and the session: protected calls with a traceback that shows source lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "interpreter/state.h"

namespace lunaria {

// How a run ended.
struct Outcome {
    bool ok = true;
    bool interrupted = false;
    std::string message;    // of the error
    std::string traceback;  // "stack traceback:\n\t..." with the source line below each place that has one
};

// Runs `body`, which may use the Lua API without further protection; errors of Lua and of C++ end up in the outcome.
// The stack is as before, but for what the body left on it when all went well.
Outcome run_protected(State& state, const std::function<void(lua_State*)>& body);

// Calls the function below `arguments` values on the stack with a message handler that collects the traceback. Leaves
// `results` values (or LUA_MULTRET) if all went well.
Outcome call_protected(State& state, int arguments, int results);

// Pushes a message handler, for lua_pcall, that fills in the message and the traceback of `outcome`, which outlives it.
void push_message_handler(lua_State* L, Outcome& outcome);

// The message of an interrupt that came as a request for memory that was refused (interpreter/memory.h).
inline constexpr const char* kRefusedMemory = "interrupted!";

// Text of the error object on top of the stack: a string, what its __tostring says, or the contents of a table with the
// place of who runs now.
std::string error_text(lua_State* L);

}  // namespace lunaria
