// The command line of lunaria-run.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lunaria::runtime {

// A mistake on the command line: the program ends with status 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct CommandLine {
    std::string program;
    std::vector<std::string> inputs;
    std::string out;     // beginning of the results' files, or a folder; empty: none are written
    bool print = false;  // also where results are written
    bool info = false, help = false, version = false, kernels = true;
    int repeat = 1;
    int threads = 0;    // 0: as many as the system says
    std::string cache;  // empty: where the full program has it
};

// Throws UsageError.
CommandLine read_command_line(std::span<const char* const> arguments);
// What --help prints.
std::string help_text();

}  // namespace lunaria::runtime
