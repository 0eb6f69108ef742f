// The report of an error in a cell: the message with its place, the frames of the stack with their source lines, and,
// for post-mortem debugging, the values of the locals.
#pragma once

#include <lua.hpp>
#include <string>
#include <vector>

#include "interpreter/state.h"

namespace lunaria {

struct ErrorFrame {
    std::string function;  // "function 'f'", "main chunk"
    std::string source;    // as in messages
    int line = 0;
    std::string text;  // of that line, without the space around it; may be empty
};

struct ErrorReport {
    enum class Kind { error, syntax, interrupt, memory } kind = Kind::error;
    std::string message;             // several lines when there is a hint
    std::vector<ErrorFrame> frames;  // innermost first
};

// Calls the function below `arguments` values on L's stack. True: `results` values (or LUA_MULTRET) are left there.
// False: `report` is filled in, and the frames with their locals are kept for push_post_mortem.
bool call_reported(lua_State* L, int arguments, int results, ErrorReport& report);

// Keeps the frames of the virtual machine when an error is about to end its functions, for the report of the error.
void keep_machine_frames(lua_State* L, std::string_view message);
void forget_machine_frames(lua_State* L);
// Pushes the innermost of these frames, {name =, source =, line =, text =, variables =}; false: there is none.
bool push_machine_frame(lua_State* L);
// Returns these frames, innermost first, and drops them.
std::vector<ErrorFrame> take_machine_frames(lua_State* L);

// Pushes the frames of the last error, innermost first: {name =, source =, chunk =, line =, text =, variables = {{name
// =, value
// =, kind = "local" or "upvalue"}, ...}}; nil when there was none.
void push_post_mortem(lua_State* L);

// The text that a session shows: the message, the line with a caret below the failing name where that is known, the
// other frames.
std::string format_error(const ErrorReport& report, bool color);

// "KeyboardInterrupt"-like names for protocols: Error, SyntaxError, Interrupted, OutOfMemory.
std::string_view kind_name(ErrorReport::Kind kind);

}  // namespace lunaria
