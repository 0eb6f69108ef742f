// The session at a terminal.
#pragma once

#include "interpreter/state.h"

namespace lunaria {

struct ReplOptions {
    bool startup_file = true;  // ~/.config/lunaria/init.lua
};

// Reads cells from standard input until its end, `exit` or os.exit. Prompt, banner, colours and history are for
// terminals only. Gives the exit code. Takes over SIGINT while it runs.
int run_repl(State& state, const ReplOptions& options = {});

}  // namespace lunaria
