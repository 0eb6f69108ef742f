#include "interpreter/terminal/launch_command.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/base/error.h"
#include "core/base/spelling.h"
#include "core/parallel/job_records.h"
#include "interpreter/values/values.h"

namespace lunaria {

namespace {

constexpr const char* kWhere = "lunaria launch";

constexpr std::string_view kLaunchUsage =
    "usage: lunaria launch [options] script.lua [args]     run a script as several ranks that work together\n"
    "  -n N             ranks (default: one for each processor); -n MIN:MAX: restarts may go on with MIN or more\n"
    "  --nodes M --node I --address HOST:PORT\n"
    "                   run N ranks on each of M machines, of which this is number I; rank 0 listens at the address.\n"
    "                   Started on each machine, with the same secret in LUNARIA_SECRET\n"
    "  --simulate R/N   run in this process what rank R of N would run; the others are not there\n"
    "  --logs DIR       write rank-0.log, rank-1.log ... to DIR (default: a temporary folder, kept if a rank fails)\n"
    "  --show all       show the output of all ranks, each line after its rank (default: that of rank 0)\n"
    "  --restarts K     start again up to K times after a failure; the script goes on from its last checkpoint\n"
    "  --grace S        seconds that the other ranks have to end by themselves after a failure (default 2)\n"
    "  --help           print this text\n"
    "  --               stop handling options\n"
    "The exit code is that of the first rank that failed. Ctrl-C and SIGTERM end all ranks. help(\"guide.ranks\")\n"
    "tells more.\n";

constexpr std::string_view kRanksUsage =
    "usage: lunaria ranks [JOB] [--last N]     what the ranks of a job of this machine do, or did last before it "
    "failed\n"
    "  JOB              its name or the beginning of it (default: lists the jobs, the newest first)\n"
    "  --last N         with the last N requests of each rank and what they took\n"
    "Records of a job are kept after a failure, for a day.\n";

int64_t number_in(std::string_view text, std::string_view option) {
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    constexpr int64_t kMost = 4096;
    if (problem != std::errc() || end != text.data() + text.size() || value < 0 || value > kMost)
        throw argument_error(kWhere, str(option, " takes a number up to ", kMost, ", got '", text, "'"));
    return value;
}

double seconds_in(const std::string& text, std::string_view option) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    constexpr double kMost = 1e6;
    if (text.empty() || *end || !(value >= 0 && value <= kMost))
        throw argument_error(kWhere, str(option, " takes a number of seconds, got '", text, "'"));
    return value;
}

void set_ranks(LaunchCommand& command, const std::string& text) {
    const size_t colon = text.find(':');
    auto& options = command.options;
    options.ranks = number_in(colon == std::string::npos ? text : text.substr(colon + 1), "-n");
    options.fewest_ranks = colon == std::string::npos ? options.ranks : number_in(text.substr(0, colon), "-n");
    if (options.fewest_ranks < 1 || options.fewest_ranks > options.ranks)
        throw argument_error(kWhere, str("-n takes N or MIN:MAX, with 1 or more ranks, got '", text, "'"));
}

void set_simulated(LaunchCommand& command, const std::string& text) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos) throw argument_error(kWhere, str("--simulate takes R/N, got '", text, "'"));
    command.simulated.emplace(number_in(text.substr(0, slash), "--simulate"),
                              number_in(text.substr(slash + 1), "--simulate"));
    if (command.simulated->first >= command.simulated->second)
        throw argument_error(kWhere, str("--simulate ", text, ": ranks count from 0 to N - 1"));
}

void set_show(LaunchCommand& command, const std::string& text) {
    if (text != "all" && text != "0") throw argument_error(kWhere, str("--show takes all or 0, got '", text, "'"));
    command.options.shows_all = text == "all";
}

constexpr std::pair<std::string_view, void (*)(LaunchCommand&, const std::string&)> kOptions[] = {
    {"-n", set_ranks},
    {"--simulate", set_simulated},
    {"--nodes", [](LaunchCommand& c, const std::string& text) { c.options.nodes = number_in(text, "--nodes"); }},
    {"--node", [](LaunchCommand& c, const std::string& text) { c.options.node = number_in(text, "--node"); }},
    {"--address", [](LaunchCommand& c, const std::string& text) { c.options.address = text; }},
    {"--logs", [](LaunchCommand& c, const std::string& text) { c.options.logs = text; }},
    {"--show", set_show},
    {"--restarts",
     [](LaunchCommand& c, const std::string& text) { c.options.restarts = number_in(text, "--restarts"); }},
    {"--grace", [](LaunchCommand& c, const std::string& text) { c.options.grace = seconds_in(text, "--grace"); }},
};

}  // namespace

LaunchCommand parse_launch(const std::vector<std::string>& words, const std::string& program) {
    LaunchCommand command;
    command.options.ranks = command.options.fewest_ranks = std::max(std::thread::hardware_concurrency(), 1u);
    size_t i = 0;
    for (; i < words.size() && words[i].starts_with("-") && words[i] != "-"; ++i) {
        if (words[i] == "--") {
            ++i;
            break;
        }
        if (words[i] == "--help" || words[i] == "-h") {
            command.help = true;
            return command;
        }
        const size_t equals = words[i].starts_with("--") ? words[i].find('=') : std::string::npos;
        std::string name = words[i].substr(0, equals), text;
        if (equals != std::string::npos) text = words[i].substr(equals + 1);
        const bool joined = name.starts_with("-n") && name.size() > 2;  // -n4
        if (joined) {
            text = name.substr(2);
            name = "-n";
        }
        const auto* option =
            std::find_if(std::begin(kOptions), std::end(kOptions), [&](const auto& o) { return o.first == name; });
        if (option == std::end(kOptions)) {
            std::vector<std::string_view> names;
            for (const auto& known : kOptions) names.push_back(known.first);
            const std::string near = nearest(name, names);
            throw argument_error(kWhere, str("unrecognized option '", name, "'"))
                .hint(str(near, near.empty() ? "" : " ", "lunaria launch --help lists the options"));
        }
        if (equals == std::string::npos && !joined) {
            if (i + 1 >= words.size()) throw argument_error(kWhere, str("option ", name, " needs an argument"));
            text = words[++i];
        }
        option->second(command, text);
    }
    if (i >= words.size()) throw argument_error(kWhere, "the script is missing").hint("lunaria launch -n 2 script.lua");
    if (words[i] == "-") throw argument_error(kWhere, "ranks have no standard input to read a script from");
    command.options.words = {program};
    command.options.words.insert(command.options.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i),
                                 words.end());
    return command;
}

int run_launch(int count, char** words) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    const LaunchCommand command = parse_launch({words, words + count}, program);
    if (command.help) {
        std::fwrite(kLaunchUsage.data(), 1, kLaunchUsage.size(), stdout);
        return 0;
    }
    if (command.simulated)
        parallel::simulate(command.options.words, command.simulated->first, command.simulated->second);
    return parallel::launch(command.options);
}

int run_ranks(int count, char** words) {
    std::string job;
    int64_t last = 0;
    for (int i = 0; i < count; ++i) {
        const std::string word = words[i];
        if (word == "--help" || word == "-h") {
            std::fwrite(kRanksUsage.data(), 1, kRanksUsage.size(), stdout);
            return 0;
        }
        if (word == "--last") {
            if (++i >= count) throw argument_error("lunaria ranks", "option --last needs an argument");
            last = number_in(words[i], "--last");
        } else if (word.starts_with("-") || !job.empty()) {
            throw argument_error("lunaria ranks", str("'", word, "' is not understood"))
                .hint("lunaria ranks --help tells more");
        } else {
            job = word;
        }
    }
    if (job.empty()) {
        for (const std::string& name : parallel::recorded_jobs()) std::puts(name.c_str());
        return 0;
    }
    std::fputs(parallel::describe_job(job, last).c_str(), stdout);
    return 0;
}

void begin_rank() {
    // A pipe to the launcher would be filled by thousands of bytes at a time.
    if (std::getenv("LUNARIA_JOB")) std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const char* role = std::getenv("MS_ROLE");
    if (role && std::string_view(role) == "MS_SCHED") {
        std::puts("lunaria: ranks meet without a scheduler of their own; this process has nothing to do");
        std::exit(0);
    }
}

}  // namespace lunaria
