#include "core/parallel/job_records.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/io/descriptor.h"

namespace lunaria::parallel {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFamily = "lunaria-";

struct RecordName {
    std::string job;
    int64_t rank;
    std::string path;
    timespec written;
};

// The records of this user whose job's name begins with `job`, by job and rank.
std::vector<RecordName> records(std::string_view job) {
    std::vector<RecordName> found;
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator(kSegments, problem)) {
        const std::string name = entry.path().filename();
        const size_t mark = name.rfind(str("-", kRecordMark));
        if (!name.starts_with(str(kFamily, job)) || mark == std::string::npos || mark < kFamily.size()) continue;
        const char* digits = name.data() + mark + 1 + kRecordMark.size();
        const char* end = name.data() + name.size();
        int64_t rank = 0;
        const auto [stop, bad] = std::from_chars(digits, end, rank);
        struct stat status {};
        if (bad != std::errc() || stop != end || lstat(entry.path().c_str(), &status) != 0 || status.st_uid != getuid())
            continue;
        found.push_back({name.substr(kFamily.size(), mark - kFamily.size()), rank, entry.path(), status.st_mtim});
    }
    std::sort(found.begin(), found.end(), [](const RecordName& a, const RecordName& b) {
        return std::tie(a.job, a.rank) < std::tie(b.job, b.rank);
    });
    return found;
}

// What another process may change while it is read: a copy.
struct Seen {
    int64_t rank;
    std::unique_ptr<RecordFile> file;
    uint64_t written;
    std::string name() const { return str("rank ", rank); }
    const RankLog& log() const { return file->log(); }
    uint64_t first() const { return written > RankLog::kEntries ? written - RankLog::kEntries : 0; }
    const RankLog::Entry& entry(uint64_t number) const { return log().ring[number % RankLog::kEntries]; }
    bool is_alive() const {
        const int32_t pid = log().pid.load();
        return log().has_ended.load() == 0 && pid > 0 && kill(pid, 0) == 0;
    }
    std::string request(uint64_t number) const {
        const RankLog::Entry& e = entry(number);
        std::string text = describe(log(), e.mark);
        return text;
    }
};

std::string seconds_text(uint64_t nanoseconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(nanoseconds) * 1e-9);
    return text;
}

std::string describe_end(const Seen& seen) {
    const RankLog& log = seen.log();
    if (log.has_ended.load()) return describe_wait_status(log.wait_status.load());
    const RankState state = log.state.load();
    if (state == RankState::left) return "has left the job";
    if (!seen.is_alive()) return "is gone";
    return state == RankState::failed ? "has failed" : "runs";
}

std::string describe_rank(const Seen& seen, uint64_t now) {
    const RankLog& log = seen.log();
    std::string text = str(seen.name(), " (pid ", log.pid.load(), ") ", describe_end(seen));
    if (seen.written == 0) return text + ", has asked for nothing yet";
    const uint64_t number = seen.written - 1;
    const RankLog::Entry& last = seen.entry(number);
    const uint64_t begin = last.begin.load(), end = last.end.load();
    if (end != 0)
        text += str("; last: ", seen.request(number),
                    seen.is_alive() ? str(", done ", seconds_text(now - end), " ago") : "");
    else if (seen.is_alive())
        text += str("; waits since ", seconds_text(now - begin), " in ", seen.request(number));
    else
        text += str("; in ", seen.request(number));
    if (const std::string failure(log.failure, strnlen(log.failure, sizeof log.failure)); !failure.empty())
        text += str("\n    ", failure);
    return text;
}

// Ranks in words: "ranks 0, 2".
std::string list_of(const std::vector<int64_t>& ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (size_t i = 0; i < ranks.size(); ++i) text += str(i ? ", " : "", ranks[i]);
    return text;
}

bool is_transfer(const Mark& mark) { return mark.operation == Collective::send || mark.operation == Collective::recv; }

// The requests of one group by their numbers: of each rank that is in it.
using Sequences = std::map<int64_t, std::map<uint64_t, uint64_t>>;  // rank -> sequence -> entry

std::map<uint32_t, Sequences> sequences_of(const std::vector<Seen>& ranks) {
    std::map<uint32_t, Sequences> groups;
    for (const Seen& seen : ranks)
        for (uint64_t number = seen.first(); number < seen.written; ++number)
            if (const Mark& mark = seen.entry(number).mark; !is_transfer(mark))
                groups[mark.group][seen.rank][mark.sequence] = number;
    return groups;
}

// The first request of the group at which its ranks differ; empty: none.
std::string describe_parting(const std::vector<Seen>& ranks, const Sequences& members) {
    auto seen_of = [&](int64_t rank) -> const Seen& {
        return *std::find_if(ranks.begin(), ranks.end(), [&](const Seen& s) { return s.rank == rank; });
    };
    uint64_t begin = 0, end = 0;
    for (const auto& [rank, requests] : members) {
        begin = std::max(begin, requests.begin()->first);  // older ones have left the ring of this rank
        end = std::max(end, requests.rbegin()->first);
    }
    for (uint64_t sequence = begin; sequence <= end; ++sequence) {
        // Ranks that ask for the same, by that.
        std::vector<std::pair<uint64_t, std::vector<int64_t>>> parties;
        std::vector<int64_t> missing;
        for (const auto& [rank, requests] : members) {
            const auto found = requests.find(sequence);
            if (found == requests.end()) {
                missing.push_back(rank);
                continue;
            }
            const uint64_t asked = seen_of(rank).entry(found->second).mark.fingerprint();
            const auto party =
                std::find_if(parties.begin(), parties.end(), [&](const auto& p) { return p.first == asked; });
            if (party == parties.end())
                parties.push_back({asked, {rank}});
            else
                party->second.push_back(rank);
        }
        if (parties.empty() || (parties.size() == 1 && missing.empty())) continue;
        std::string text = str("they part at request #", sequence, ":\n");
        for (const auto& [fingerprint, party] : parties)
            text += str("  ", list_of(party), ": ",
                        seen_of(party.front()).request(members.at(party.front()).at(sequence)), "\n");
        if (!missing.empty()) text += str("  ", list_of(missing), ": not there yet\n");
        return text;
    }
    return "";
}

}  // namespace

std::string segment_prefix(std::string_view job) { return str(kFamily, job, "-"); }

std::string record_path(std::string_view job, int64_t rank) {
    return str(kSegments, "/", segment_prefix(job), kRecordMark, rank);
}

RecordFile::RecordFile(const std::string& path) : log_(nullptr) {
    const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file) throw file_error(path, std::strerror(errno));
    struct stat status {};
    if (fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
        static_cast<size_t>(status.st_size) < sizeof(RankLog))
        throw file_error(path, "is no record of a rank");
    void* memory = mmap(nullptr, sizeof(RankLog), PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (memory == MAP_FAILED) throw file_error(path, std::strerror(errno));
    log_ = static_cast<RankLog*>(memory);
}

RecordFile::~RecordFile() { munmap(log_, sizeof(RankLog)); }

void note_end(std::string_view job, int64_t rank, int wait_status) {
    try {
        const RecordFile file(record_path(job, rank));
        file.log().wait_status.store(wait_status);
        file.log().has_ended.store(1, std::memory_order_release);
    } catch (const Error&) {
        // A rank that asked for nothing has no record.
    }
}

std::vector<std::string> recorded_jobs() {
    std::map<std::string, timespec> jobs;
    for (const RecordName& record : records("")) jobs[record.job] = record.written;
    std::vector<std::string> names;
    for (const auto& [job, written] : jobs) names.push_back(job);
    std::sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
        return std::tie(jobs[a].tv_sec, jobs[a].tv_nsec) > std::tie(jobs[b].tv_sec, jobs[b].tv_nsec);
    });
    return names;
}

std::string describe_job(std::string_view job, int64_t last) {
    const std::vector<RecordName> names = records(job);
    if (names.empty())
        throw value_error("lunaria ranks", str("there are no records of a job '", job, "' in ", kSegments))
            .hint("records are kept after a failure, for a day; without a name, lunaria ranks lists the jobs");
    for (const RecordName& name : names)
        if (name.job != names.front().job)
            throw value_error("lunaria ranks", str("'", job, "' may be ", names.front().job, " or ", name.job));
    const uint64_t now = nanoseconds_now();
    std::vector<Seen> ranks;
    for (const RecordName& name : names) {
        auto file = std::make_unique<RecordFile>(name.path);
        const uint64_t written = file->log().written.load(std::memory_order_acquire);
        ranks.push_back({name.rank, std::move(file), written});
    }
    std::string text = str("job ", names.front().job, ": ", ranks.size(), ranks.size() == 1 ? " rank\n" : " ranks\n");
    for (const Seen& seen : ranks) {
        text += describe_rank(seen, now) + "\n";
        const auto most = static_cast<uint64_t>(std::max<int64_t>(last, 0));
        const uint64_t from = std::max(seen.first(), seen.written > most ? seen.written - most : 0);
        for (uint64_t number = from; number < seen.written; ++number) {
            const RankLog::Entry& entry = seen.entry(number);
            const uint64_t end = entry.end.load(), begin = entry.begin.load();
            text += str("    ", seen.request(number), end ? str(", ", seconds_text(end - begin)) : ", not done", "\n");
        }
    }
    for (const auto& [group, members] : sequences_of(ranks))
        if (members.size() > 1) text += describe_parting(ranks, members);
    return text;
}

void remove_segments(std::string_view job, bool with_records) {
    const std::string prefix = segment_prefix(job);
    std::error_code ignored;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(kSegments, ignored)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(prefix)) continue;
        if (with_records || !std::string_view(name).substr(prefix.size()).starts_with(kRecordMark))
            files.push_back(entry.path());
    }
    for (const auto& file : files) fs::remove(file, ignored);
}

void remove_old_records() {
    constexpr time_t kDay = 24 * 60 * 60;
    const time_t now = time(nullptr);
    std::error_code ignored;
    for (const RecordName& record : records("")) {
        if (now - record.written.tv_sec < kDay) continue;
        bool is_alive = false;
        try {
            const RecordFile file(record.path);
            const int32_t pid = file.log().pid.load();
            is_alive = pid > 0 && kill(pid, 0) == 0;
        } catch (const Error&) {
            // No record at all.
        }
        if (!is_alive) fs::remove(record.path, ignored);
    }
}

std::string describe_wait_status(int wait_status) {
    if (!WIFSIGNALED(wait_status)) return str("exited with ", WEXITSTATUS(wait_status));
    const int number = WTERMSIG(wait_status);
    return str("was killed by signal ", number, " (", strsignal(number), ")");
}

}  // namespace lunaria::parallel
