#include "core/parallel/rank_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/parallel/job_records.h"

namespace lunaria::parallel {

namespace {

constexpr size_t kLastLines = 24;
constexpr size_t kLongestLine = 1000;      // of those kept
constexpr size_t kLongestBegun = 1 << 16;  // of one that does not end

// All of it, or an error number.
int write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(file, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) {
            pollfd wait{file, POLLOUT, 0};
            poll(&wait, 1, -1);
            continue;
        }
        if (written < 0) return errno;
        text.remove_prefix(static_cast<size_t>(written));
    }
    return 0;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

// The child between fork and exec: calls that are safe in signal handlers only.
[[noreturn]] void become(char* const* words, char* const* variables, pid_t launcher, int output, int errors) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The launcher may have died before the line above.
    if (getppid() != launcher) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    if (nothing > STDERR_FILENO) close(nothing);
    execve(words[0], words, variables);
    const char* problem = strerror(errno);
    for (const char* text : {"lunaria launch: ", static_cast<const char*>(words[0]), ": ", problem, "\n"})
        if (write(STDERR_FILENO, text, strlen(text)) < 0) break;
    _exit(127);
}

}  // namespace

RankProcess::RankProcess(int64_t rank, const RankStart& start) : rank_(rank), show_(start.show) {
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (start.continues_log ? 0 : O_TRUNC);
    log_.reset(open(start.log.c_str(), flags, 0666));
    if (!log_) throw file_error(start.log, std::strerror(errno));
    Descriptor inner[2];
    for (int i = 0; i < 2; ++i) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            throw file_error("lunaria launch", str("no pipe for a rank: ", std::strerror(errno)));
        pipes_[i].end.reset(ends[0]);
        inner[i].reset(ends[1]);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    const auto words = pointers_to(start.words), variables = pointers_to(start.variables);
    const pid_t launcher = getpid();
    pid_ = fork();
    if (pid_ < 0)
        throw file_error("lunaria launch", str("rank ", rank, " could not be started: ", std::strerror(errno)));
    if (pid_ == 0) become(words.data(), variables.data(), launcher, inner[0].number(), inner[1].number());
    // Also here: the launcher may send signals before the child has come to its own call.
    setpgid(pid_, pid_);
}

RankProcess::~RankProcess() {
    if (!runs()) return;  // the number of its group may be another's by now
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

bool RankProcess::was_killed() const { return wait_status_ && WIFSIGNALED(*wait_status_); }

int RankProcess::exit_code() const {
    constexpr int kSignals = 128;
    if (!wait_status_) return 0;
    return was_killed() ? kSignals + WTERMSIG(*wait_status_) : WEXITSTATUS(*wait_status_);
}

void RankProcess::signal(int number) const {
    if (runs()) kill(-pid_, number);
}

bool RankProcess::reap() {
    if (!runs()) return false;
    // Not yet waited for: until then its number names its group and no other process.
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
        return false;
    ended_at_ = Clock::now();
    kill(-pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    wait_status_ = status;
    for (int i = 0; i < 2; ++i) {
        read(i);
        end_line(i);
        pipes_[i].end.reset(-1);
    }
    return true;
}

void RankProcess::read(int index) {
    constexpr size_t kPiece = 1 << 16;
    // One rank that writes without end must not keep the launcher from the others.
    constexpr int kPieces = 16;
    char bytes[kPiece];
    for (int piece = 0; piece < kPieces && pipes_[index].end; ++piece) {
        const ssize_t count = ::read(pipe(index), bytes, sizeof(bytes));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return;
        if (count == 0) return pipes_[index].end.reset(-1);
        take(index, {bytes, static_cast<size_t>(count)});
    }
}

void RankProcess::take(int index, std::string_view text) {
    if (log_problem_.empty())
        if (const int problem = write_all(log_.number(), text)) log_problem_ = std::strerror(problem);
    if (show_ == RankStart::Show::plain) show(index, text);
    std::string& line = pipes_[index].line;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        line += text.substr(0, end);
        if (end == std::string_view::npos) {
            if (line.size() > kLongestBegun) end_line(index);
            break;
        }
        text.remove_prefix(end + 1);
        line += '\n';
        end_line(index);
    }
}

void RankProcess::end_line(int index) {
    std::string& line = pipes_[index].line;
    if (line.empty()) return;
    if (line.back() != '\n') line += '\n';
    if (show_ == RankStart::Show::with_rank) show(index, str("[", rank_, "] ", line));
    if (index == 1) {
        line.pop_back();
        if (line.size() > kLongestLine) line.resize(kLongestLine);
        last_errors_.push_back(std::move(line));
        if (last_errors_.size() > kLastLines) last_errors_.pop_front();
    }
    line.clear();
}

void RankProcess::show(int index, std::string_view text) {
    if (show_problem_ == 0) show_problem_ = write_all(index == 0 ? STDOUT_FILENO : STDERR_FILENO, text);
}

std::string RankProcess::describe_end() const { return wait_status_ ? describe_wait_status(*wait_status_) : "runs"; }

}  // namespace lunaria::parallel
