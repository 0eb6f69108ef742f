// Functions of a session for its commands (lua/lunaria/commands.lua).
#pragma once

#include <lua.hpp>
#include <string>
#include <vector>

namespace lunaria {

class Session;

// Registry key of the table that commands.lua returns; its field `run` runs a line.
inline constexpr const char* kCommands = "lunaria.commands";

// Loads the commands for the session and returns their names ("%time" ...).
std::vector<std::string> install_session_functions(lua_State* L, Session& session);

// Makes io.read and its like ask through the session's hook (lua/lunaria/captured.lua), until restore_input.
void redirect_input(lua_State* L, Session& session);
void restore_input(lua_State* L);

}  // namespace lunaria
