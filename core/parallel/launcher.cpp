#include "core/parallel/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/io/secure_random.h"
#include "core/io/socket.h"
#include "core/parallel/job_records.h"
#include "core/parallel/rank_process.h"

namespace lunaria::parallel {

namespace {

namespace fs = std::filesystem;
using std::chrono::duration;
using std::chrono::duration_cast;

constexpr const char* kWhere = "lunaria launch";
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCHLD};
constexpr double kUntilKill = 3;  // seconds after SIGTERM

std::string random_hex(size_t bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::vector<unsigned char> drawn(bytes);
    secure_random(kWhere, drawn.data(), bytes);
    std::string text;
    for (const unsigned char byte : drawn) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

int64_t processors() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
    return std::max(CPU_COUNT(&set), 1);
}

// How often the kernel has killed a process of this control group for memory; -1: not told.
int64_t out_of_memory_kills() {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        if (!line.starts_with("0::")) continue;
        std::ifstream events(str("/sys/fs/cgroup", line.substr(3), "/memory.events"));
        std::string name;
        for (int64_t count = 0; events >> name >> count;)
            if (name == "oom_kill") return count;
    }
    return -1;
}

// Signals are read from a file meanwhile, and come to the process again afterwards.
class Signals {
  public:
    Signals() {
        sigset_t set;
        sigemptyset(&set);
        for (const int number : kSignals) sigaddset(&set, number);
        sigprocmask(SIG_BLOCK, &set, &before_);
        pipe_before_ = signal(SIGPIPE, SIG_IGN);
        file_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    }
    ~Signals() {
        signal(SIGPIPE, pipe_before_);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;
    int file() const { return file_.number(); }
    int next() const {  // 0: none
        signalfd_siginfo info{};
        return read(file(), &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
    }

  private:
    Descriptor file_;
    sigset_t before_;
    void (*pipe_before_)(int);
};

// Folder of the logs of a job.
class Logs {
  public:
    explicit Logs(const std::string& folder) : is_temporary_(folder.empty()) {
        if (!is_temporary_) {
            folder_ = folder;
            std::error_code problem;
            fs::create_directories(folder_, problem);
            if (problem) throw file_error(folder, str("no folder for logs: ", problem.message()));
            return;
        }
        std::string name = fs::temp_directory_path() / "lunaria-launch-XXXXXX";
        if (!mkdtemp(name.data())) throw file_error(name, str("no folder for logs: ", std::strerror(errno)));
        folder_ = name;
    }
    ~Logs() {
        std::error_code ignored;
        if (is_temporary_ && !keeps_) fs::remove_all(folder_, ignored);
    }
    Logs(const Logs&) = delete;
    Logs& operator=(const Logs&) = delete;
    void keep() { keeps_ = true; }
    std::string file(int64_t rank) const { return folder_ / str("rank-", rank, ".log"); }
    bool stay() const { return keeps_ || !is_temporary_; }

  private:
    const bool is_temporary_;
    bool keeps_ = false;
    fs::path folder_;
};

class Job {
  public:
    explicit Job(const LaunchOptions& options) : options_(options), logs_(options.logs) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);  // what ranks leave behind becomes a child of this process
    }

    int run() {
        remove_old_records();
        int64_t ranks = options_.ranks;
        for (int64_t attempt = 0;; ++attempt) {
            run_attempt(attempt, ranks);
            const bool goes_on = first_ && interrupted_ == 0 && attempt < options_.restarts;
            tell(goes_on, attempt);
            remove_segments(job_, goes_on || !first_ || interrupted_ != 0);
            if (!goes_on) return exit_code();
            ranks = std::max(ranks - lost(), std::min(options_.fewest_ranks, ranks));
            std::fprintf(stderr, "%s: starts again with %lld ranks (restart %lld of %lld)\n", kWhere,
                         static_cast<long long>(ranks), static_cast<long long>(attempt + 1),
                         static_cast<long long>(options_.restarts));
        }
    }

  private:
    struct Step {  // a signal to all that still run, at a time
        Clock::time_point at;
        int signal;
    };

    void run_attempt(int64_t attempt, int64_t ranks) {
        constexpr size_t kJobBytes = 6;
        job_ = options_.nodes == 1 ? random_hex(kJobBytes) : job_of_machines(attempt);
        // Ranks of this machine need no address but where TCP was asked for.
        const char* engine = std::getenv("LUNARIA_ENGINE");
        if (options_.nodes == 1 && engine && std::string_view(engine) == "tcp") {
            constexpr size_t kSecretBytes = 16;
            own_address_ = str("127.0.0.1:", port_of(listen_at("127.0.0.1", 0)));
            secret_ = random_hex(kSecretBytes);
        }
        first_ = nullptr;
        ends_others_ = false;
        steps_.clear();
        processes_.clear();
        killed_for_memory_ = out_of_memory_kills();
        started_ = Clock::now();
        for (int64_t rank = 0; rank < ranks && interrupted_ == 0; ++rank) start(rank, ranks, attempt);
        while (is_running()) {
            wait();
            for (const auto& process : processes_)
                for (int i = 0; i < 2; ++i)
                    if (process->pipe(i) >= 0) process->read(i);
            take_signals();
            reap();
            take_steps();
            if (interrupted_ == 0 && std::any_of(processes_.begin(), processes_.end(),
                                                 [](const auto& p) { return p->show_problem() == EPIPE; }))
                interrupt(SIGPIPE);
        }
        end_others();
    }

    void start(int64_t rank, int64_t ranks, int64_t attempt) {
        RankStart start;
        start.words = options_.words;
        start.log = logs_.file(first_rank() + rank);
        start.continues_log = attempt > 0;
        if (options_.shows_all)
            start.show = RankStart::Show::with_rank;
        else if (rank == 0)
            start.show = RankStart::Show::plain;
        for (char** variable = environ; *variable; ++variable)
            if (!std::string_view(*variable).starts_with("LUNARIA_RANK") &&
                !std::string_view(*variable).starts_with("LUNARIA_LOCAL_"))
                start.variables.emplace_back(*variable);
        auto set = [&](std::string_view name, const auto& value) {
            const std::string begin = str(name, "=");
            std::erase_if(start.variables, [&](const std::string& v) { return v.starts_with(begin); });
            start.variables.push_back(begin + str(value));
        };
        set("LUNARIA_RANK", first_rank() + rank);
        set("LUNARIA_RANKS", ranks * options_.nodes);
        set("LUNARIA_NODE", options_.node);
        if (options_.nodes > 1) set("LUNARIA_ADDRESS", options_.address);
        if (!own_address_.empty()) {
            set("LUNARIA_ADDRESS", own_address_);
            set("LUNARIA_SECRET", secret_);
        }
        set("LUNARIA_LOCAL_RANK", rank);
        set("LUNARIA_LOCAL_RANKS", ranks);
        set("LUNARIA_JOB", job_);
        set("LUNARIA_ATTEMPT", attempt);
        // Each rank would start as many threads as there are processors.
        if (!std::getenv("OMP_NUM_THREADS")) set("OMP_NUM_THREADS", std::max<int64_t>(processors() / ranks, 1));
        processes_.push_back(std::make_unique<RankProcess>(first_rank() + rank, start));
    }

    int64_t first_rank() const { return options_.node * options_.ranks; }

    // The same for the launchers of all machines, which don't talk to each other.
    std::string job_of_machines(int64_t attempt) const {
        std::string job = str(options_.address, "-", attempt);
        std::replace_if(
            job.begin(), job.end(), [](unsigned char c) { return !std::isalnum(c) && c != '.'; }, '-');
        return job;
    }

    bool is_running() const {
        return std::any_of(processes_.begin(), processes_.end(), [](const auto& p) { return p->runs(); });
    }

    // Until there is something to do.
    void wait() {
        std::vector<pollfd> files{{signals_.file(), POLLIN, 0}};
        for (const auto& process : processes_)
            for (int i = 0; i < 2; ++i)
                if (process->pipe(i) >= 0) files.push_back({process->pipe(i), POLLIN, 0});
        int milliseconds = -1;
        if (!steps_.empty())
            milliseconds = static_cast<int>(std::max<int64_t>(
                0, duration_cast<std::chrono::milliseconds>(steps_.front().at - Clock::now()).count() + 1));
        poll(files.data(), files.size(), milliseconds);
    }

    void take_signals() {
        while (const int number = signals_.next()) {
            if (number == SIGTSTP) {
                send(SIGSTOP);
                raise(SIGSTOP);
                send(SIGCONT);
            } else if (number != SIGCHLD) {
                interrupt(number);
            }
        }
    }

    void interrupt(int number) {
        if (interrupted_ != 0) {
            send(SIGKILL);  // asked for twice
            return;
        }
        interrupted_ = number;
        send(number == SIGPIPE ? SIGTERM : number);
        steps_.clear();
        end_after_grace();
    }

    void reap() {
        std::vector<RankProcess*> ended;
        for (const auto& process : processes_)
            if (process->reap()) {
                // First of all: the other ranks wait for this to tell why it is gone.
                note_end(job_, process->rank(), *process->wait_status());
                ended.push_back(process.get());
            }
        if (first_) return;
        // Where several have ended meanwhile, the one that was killed is the reason of the others.
        for (const bool killed : {true, false})
            for (RankProcess* process : ended)
                if (!first_ && process->failed() && process->was_killed() == killed) first_ = process;
        if (first_ && interrupted_ == 0) end_after_grace();
    }

    void end_after_grace() {
        auto after = [](double seconds) {
            return Clock::now() + duration_cast<Clock::duration>(duration<double>(seconds));
        };
        steps_.push_back({after(options_.grace), SIGTERM});
        steps_.push_back({after(options_.grace + kUntilKill), SIGKILL});
    }

    void take_steps() {
        while (!steps_.empty() && steps_.front().at <= Clock::now()) {
            ends_others_ = true;
            send(steps_.front().signal);
            steps_.erase(steps_.begin());
        }
    }

    void send(int number) const {
        for (const auto& process : processes_) process->signal(number);
    }

    // Processes that ranks have started in groups of their own.
    static void end_others() {
        const std::string path = str("/proc/self/task/", getpid(), "/children");
        constexpr int kRounds = 100;  // each may have children that come next
        for (int round = 0; round < kRounds; ++round) {
            std::ifstream children(path);
            std::vector<pid_t> list;
            for (pid_t pid = 0; children >> pid;) list.push_back(pid);
            if (list.empty()) return;
            for (const pid_t pid : list) kill(pid, SIGKILL);
            for (const pid_t pid : list) waitpid(pid, nullptr, 0);
        }
    }

    int64_t lost() const {
        return std::count_if(processes_.begin(), processes_.end(), [&](const auto& p) {
            return p->was_killed() &&
                   (p.get() == first_ || p->ended_at() < first_->ended_at() + duration<double>(options_.grace));
        });
    }

    int exit_code() const {
        constexpr int kBySignal = 128;
        if (interrupted_ != 0) return kBySignal + interrupted_;
        if (first_) return first_->exit_code();
        return has_told_problem_ ? 1 : 0;
    }

    void tell(bool goes_on, int64_t attempt) {
        std::fflush(stdout);
        for (const auto& process : processes_) {
            if (!process->log_problem().empty() && !has_told_problem_) {
                std::fprintf(stderr, "%s: %s: %s: not all of the output is there\n", kWhere,
                             logs_.file(process->rank()).c_str(), process->log_problem().c_str());
                has_told_problem_ = true;
            }
            if (process->show_problem() != 0 && process->show_problem() != EPIPE && !has_told_problem_) {
                std::fprintf(stderr, "%s: output could not be shown: %s\n", kWhere,
                             std::strerror(process->show_problem()));
                has_told_problem_ = true;
            }
        }
        if (interrupted_ != 0) {
            if (interrupted_ != SIGPIPE)
                std::fprintf(stderr, "%s: ended by signal %d (%s); no rank runs any more\n", kWhere, interrupted_,
                             strsignal(interrupted_));
            return;
        }
        if (first_) tell_failure(goes_on, attempt);
    }

    void tell_failure(bool goes_on, int64_t attempt) {
        const double seconds = duration<double>(first_->ended_at() - started_).count();
        std::string text =
            str(kWhere, ": rank ", first_->rank(), " (pid ", first_->pid(), ") ", first_->describe_end(), " ");
        char time[64];
        std::snprintf(time, sizeof(time), "after %.1f s", seconds);
        text += time;
        if (processes_.size() > 1) text += str(", the first of ", processes_.size(), " ranks to fail");
        text += '\n';
        const int64_t for_memory = out_of_memory_kills();
        if (first_->was_killed() && first_->exit_code() == 128 + SIGKILL && for_memory > killed_for_memory_)
            text += "  the kernel has killed it because the memory was used up\n";
        // The first rank has been shown already.
        if (first_->rank() != first_rank() && !options_.shows_all)
            for (const auto& line : first_->last_errors()) text += str("  | ", line, "\n");
        text += tell_others();
        if (!goes_on) {
            logs_.keep();
            text += str("  logs: ", logs_.file(first_rank()), processes_.size() > 1 ? " and so on\n" : "\n");
            const bool recorded = std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
                return fs::exists(record_path(job_, process->rank()));
            });
            if (recorded) text += str("  what each rank asked of the others: lunaria ranks ", job_, "\n");
        } else {
            text += str("  attempt ", attempt + 1, " has failed\n");
        }
        std::fputs(text.c_str(), stderr);
    }

    std::string tell_others() const {
        std::string text, ended;
        int64_t count = 0;
        for (const auto& process : processes_) {
            if (process.get() == first_ || !process->failed()) continue;
            if (process->was_killed() && ends_others_) {
                ended += str(count++ ? ", " : "", process->rank());
                continue;
            }
            text += str("  then rank ", process->rank(), " ", process->describe_end());
            const auto& errors = process->last_errors();
            const auto own =
                std::find_if(errors.begin(), errors.end(), [](const auto& l) { return l.starts_with("lunaria: "); });
            if (own != errors.end()) text += str(": ", own->substr(std::strlen("lunaria: ")));
            text += '\n';
        }
        if (count) text += str("  still at work and ended: rank", count > 1 ? "s " : " ", ended, "\n");
        return text;
    }

    const LaunchOptions& options_;
    const Signals signals_;
    Logs logs_;
    std::string job_, own_address_, secret_;
    std::vector<std::unique_ptr<RankProcess>> processes_;
    RankProcess* first_ = nullptr;  // of those that failed
    std::vector<Step> steps_;       // in the order of time
    bool ends_others_ = false;      // signals of steps_ have been sent
    int interrupted_ = 0;           // signal to the launcher
    bool has_told_problem_ = false;
    int64_t killed_for_memory_ = -1;
    Clock::time_point started_;
};

}  // namespace

static void check_machines(const LaunchOptions& options) {
    split_address(options.address);
    if (options.node < 0 || options.node >= options.nodes)
        throw argument_error(
            kWhere, str("machine ", options.node, " of ", options.nodes, ": they count from 0 to ", options.nodes - 1));
    if (options.fewest_ranks != options.ranks)
        throw argument_error(kWhere, "with several machines the number of ranks is fixed: -n N");
    if (const char* secret = std::getenv("LUNARIA_SECRET"); !secret || !*secret)
        throw argument_error(kWhere, "ranks of several machines need a secret by which they know each other")
            .hint("export LUNARIA_SECRET=..., the same random text on all machines");
}

int launch(const LaunchOptions& options) {
    if (options.words.empty()) throw argument_error(kWhere, "nothing to run was named");
    if (options.ranks < 1) throw argument_error(kWhere, str("there are no ", options.ranks, " ranks"));
    if (options.nodes > 1) check_machines(options);
    return Job(options).run();
}

void simulate(const std::vector<std::string>& words, int64_t rank, int64_t ranks) {
    const std::pair<const char*, std::string> variables[] = {{"LUNARIA_RANK", str(rank)},
                                                             {"LUNARIA_RANKS", str(ranks)},
                                                             {"LUNARIA_PHANTOM", "1"},
                                                             {"LUNARIA_JOB", "phantom"}};
    for (const auto& [name, value] : variables) setenv(name, value.c_str(), 1);
    unsetenv("LUNARIA_LOCAL_RANK");
    unsetenv("LUNARIA_LOCAL_RANKS");
    std::vector<char*> pointers;
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    throw file_error(words[0], std::strerror(errno));
}

}  // namespace lunaria::parallel
