// One rank as a child process of the launcher: its start, its two pipes, its log, its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/descriptor.h"

namespace lunaria::parallel {

using Clock = std::chrono::steady_clock;

// What a rank's process is started with.
struct RankStart {
    std::vector<std::string> words;      // the program and its arguments
    std::vector<std::string> variables;  // its whole environment, "NAME=value"
    std::string log;                     // file
    bool continues_log = false;          // of an earlier attempt
    // Where output is shown beside the log: as it is, with the rank before each line, or not at all.
    enum class Show { no, plain, with_rank } show = Show::no;
};

class RankProcess {
  public:
    // Starts the process: in a group of its own, which dies with the thread that starts it, without standard input.
    // Throws file_error where that fails.
    RankProcess(int64_t rank, const RankStart& start);
    // Kills what is left of its group.
    ~RankProcess();
    RankProcess(const RankProcess&) = delete;
    RankProcess& operator=(const RankProcess&) = delete;

    int64_t rank() const { return rank_; }
    pid_t pid() const { return pid_; }
    bool runs() const { return !wait_status_; }
    // As waitpid gives it.
    std::optional<int> wait_status() const { return wait_status_; }
    bool failed() const { return wait_status_ && *wait_status_ != 0; }
    bool was_killed() const;
    int exit_code() const;  // as a shell has it: 128 + the signal's number
    Clock::time_point ended_at() const { return ended_at_; }
    // To the process and all that it has started.
    void signal(int number) const;
    // Asks the system whether the process has ended; whether that is news. What it has left running is killed, and what
    // it has written is read to its end.
    bool reap();

    // Pipes to wait for; -1 where closed. Index 0: standard output, 1: errors.
    int pipe(int index) const { return pipes_[index].end.number(); }
    // Moves what a pipe has to the log and the terminal.
    void read(int index);
    // The last lines of errors.
    const std::deque<std::string>& last_errors() const { return last_errors_; }
    // "was killed by signal 9 (Killed)", "exited with 1".
    std::string describe_end() const;
    // The problem of the log, if it could not be written.
    const std::string& log_problem() const { return log_problem_; }
    // The error number of showing its output; 0: none.
    int show_problem() const { return show_problem_; }

  private:
    struct Pipe {
        Descriptor end;
        std::string line;  // begun, not ended
    };
    void take(int index, std::string_view text);
    void show(int index, std::string_view text);
    void end_line(int index);

    const int64_t rank_;
    const RankStart::Show show_;
    pid_t pid_ = -1;
    std::optional<int> wait_status_;
    Clock::time_point ended_at_;
    Pipe pipes_[2];
    Descriptor log_;
    std::string log_problem_;
    int show_problem_ = 0;
    std::deque<std::string> last_errors_;
};

}  // namespace lunaria::parallel
