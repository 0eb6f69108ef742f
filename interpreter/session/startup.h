// The user's folders, and the file that every session runs first: ~/.config/lunaria/init.lua.
#pragma once

#include <string>

#include "interpreter/session/session.h"

namespace lunaria {

// A folder of the user by freedesktop.org's base directories: that of the variable, else `below_home` in the home
// folder; empty when there is no home.
std::string user_folder(const char* variable, const char* below_home);

// Runs the file as a cell that is not counted, if there is one. Errors as in Session::execute.
Execution run_startup_file(Session& session);

}  // namespace lunaria
