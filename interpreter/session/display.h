// Traffic between a running cell and the front end besides text: rich output, its updates, and comms, the message pipes
// of widgets. A session's hooks carry it (interpreter/session/session.h); without hooks the text form is printed.
#pragma once

#include <lua.hpp>
#include <string>
#include <vector>

#include "interpreter/display/mime.h"

namespace lunaria {

class Session;

struct Display {
    MimeBundle bundle;
    std::string id;       // names the output for later updates; may be empty
    bool update = false;  // replaces the outputs of that id instead of adding one
};

struct CommMessage {
    enum class Kind { open, message, close } kind = Kind::message;
    std::string id;
    std::string target;                // of open
    std::string data, metadata;        // JSON texts
    std::vector<std::string> buffers;  // bytes
};

// Sets the session that the display and comm functions of L use; null when it has ended.
void set_display_session(lua_State* L, Session* session);
Session* display_session(lua_State* L);

// Shows it through the session's hook or prints its text/plain.
void show(lua_State* L, const Display& display);

// Registry key of the functions to be called when the running cell has ended.
inline constexpr const char* kAfterCell = "lunaria.after_cell";

// Registry key of the function that takes messages of the front end's comms ...
inline constexpr const char* kOnComm = "lunaria.on_comm";
// ... which this pushes.
void push_comm_receiver(lua_State* L);

// A new name for an output, unlike all others.
std::string new_display_id();

}  // namespace lunaria
