// `lunaria launch`: the ranks of a job as processes of this machine, from their start until none is left. A rank that
// fails ends the others, after a while in which they can tell their part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::parallel {

struct LaunchOptions {
    std::vector<std::string> words;  // of each rank: the program by its path, its arguments
    int64_t ranks = 1;               // of this machine
    int64_t fewest_ranks = 1;        // with which a restart goes on where machines or memory are lost
    int64_t restarts = 0;
    // Each machine has a launcher of its own, with its number.
    int64_t nodes = 1, node = 0;
    std::string address;     // "host:port" of machine 0, where the ranks meet
    double grace = 2;        // seconds between the first failure or signal and the end of those that still run
    std::string logs;        // folder for rank-0.log ...; empty: a temporary one, which is removed unless the job fails
    bool shows_all = false;  // output of all ranks and not of rank 0 alone
};

// Runs the job to its end and returns the exit code: 0, or that of the first rank that failed, as a shell has it, or
// 128 + number after a signal to the launcher. Tells failures on standard error.
int launch(const LaunchOptions& options);

// Runs the words in the place of this process, as rank `rank` of `ranks` of which the others do not exist. Returns only
// by an exception.
[[noreturn]] void simulate(const std::vector<std::string>& words, int64_t rank, int64_t ranks);

}  // namespace lunaria::parallel
