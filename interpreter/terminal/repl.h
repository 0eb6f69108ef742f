// The session at a terminal.
#pragma once

#include <optional>
#include <string>

#include "interpreter/state.h"

namespace lunaria {

struct ReplOptions {
    bool startup_file = true;                  // ~/.config/lunaria/init.lua
    std::optional<std::string> notebook = {};  // is run first
    bool debug = false;                        // the notebook stops at its first line
    bool prompt = true;                        // reads cells after a notebook, too
};

// Reads cells from standard input until its end, `exit` or os.exit. Prompt, banner, colours and history are for
// terminals only. Returns the exit code; without a prompt that of the notebook: 1 after an error, 130 when interrupted.
// Takes over SIGINT while it runs.
int run_repl(State& state, const ReplOptions& options = {});

}  // namespace lunaria
