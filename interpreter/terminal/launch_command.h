// The words of `lunaria launch` and `lunaria ranks`: jobs of several ranks.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/parallel/launcher.h"

namespace lunaria {

struct LaunchCommand {
    parallel::LaunchOptions options;
    std::optional<std::pair<int64_t, int64_t>> simulated;  // a rank, of how many
    bool help = false;
};

// `words` are those after "launch". `program` is what the ranks run. Throws argument_error on words that it does not
// know.
LaunchCommand parse_launch(const std::vector<std::string>& words, const std::string& program);

// Run the commands; the exit code.
int run_launch(int count, char** words);
int run_ranks(int count, char** words);

// At the start of each other program: what it prints as a rank comes line by line.
void begin_rank();

}  // namespace lunaria
