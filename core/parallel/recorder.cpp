#include "core/parallel/recorder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace lunaria::parallel {

std::string_view name_of(Collective operation) {
    static constexpr std::string_view names[kCollectives] = {"barrier",    "all_reduce",   "reduce",  "reduce_scatter",
                                                             "all_gather", "gather",       "scatter", "broadcast",
                                                             "all_to_all", "all_to_all_v", "send",    "recv"};
    const auto i = static_cast<size_t>(operation);
    return i < kCollectives ? names[i] : "unknown request";
}

std::string_view name_of(Combine combine) {
    static constexpr std::string_view names[] = {"sum", "product", "max", "min", "mean"};
    const auto i = static_cast<size_t>(combine);
    return i < std::size(names) ? names[i] : "unknown";
}

uint64_t Mark::fingerprint() const {
    // Each step is a bijection of the sum so far, so that one differing field always shows.
    const auto mixed = [](uint64_t h, uint64_t x) { return (h ^ x) * 0x9e3779b97f4a7c15u; };
    uint64_t h = mixed(sequence, static_cast<uint64_t>(count));
    h = mixed(h ^ (h >> 32), uint64_t{group} << 32 | static_cast<uint32_t>(root));
    return mixed(h ^ (h >> 32), uint64_t{static_cast<uint32_t>(tag)} << 32 | static_cast<uint64_t>(operation) << 16 |
                                    static_cast<uint64_t>(dtype) << 8 | static_cast<uint64_t>(combine));
}

uint16_t NameTable::number(RankLog& log, std::string_view name) {
    if (name.empty()) return 0;
    const auto found = known_.find(std::string(name));
    if (found != known_.end()) return found->second;
    const uint32_t used = std::max(1u, log.names_used.load(std::memory_order_relaxed));
    if (used >= RankLog::kNames) return 0;
    std::string_view end = name;
    if (end.size() >= RankLog::kNameSize) end.remove_prefix(end.size() - RankLog::kNameSize + 1);
    std::memcpy(log.names[used], end.data(), end.size());
    log.names_used.store(used + 1, std::memory_order_release);
    return known_[std::string(name)] = static_cast<uint16_t>(used);
}

std::string name_in(const RankLog& log, uint16_t number) {
    if (number >= RankLog::kNames) return {};
    return std::string(log.names[number], strnlen(log.names[number], RankLog::kNameSize));
}

std::string describe(const RankLog& log, const Mark& mark) {
    std::string text = str(name_of(mark.operation), " #", mark.sequence);
    if (mark.operation == Collective::send || mark.operation == Collective::recv)
        text += str(mark.operation == Collective::send ? " to" : " from", " place ", mark.root, " with tag ", mark.tag);
    if (mark.operation != Collective::barrier) {
        const bool is_known = static_cast<size_t>(mark.dtype) < static_cast<size_t>(kDTypeCount);
        text += str(" (", is_known ? name_of(mark.dtype) : "unknown type", ", ", mark.count,
                    mark.count == 1 ? " element" : " elements");
        const bool combines = mark.operation == Collective::all_reduce || mark.operation == Collective::reduce ||
                              mark.operation == Collective::reduce_scatter;
        if (combines && mark.combine != Combine::sum) text += str(", ", name_of(mark.combine));
        const bool has_root = mark.operation == Collective::broadcast || mark.operation == Collective::reduce ||
                              mark.operation == Collective::gather || mark.operation == Collective::scatter;
        if (has_root) text += str(", root ", mark.root);
        text += ")";
    }
    if (const std::string parameter = name_in(log, mark.parameter); !parameter.empty()) text += " of " + parameter;
    if (const std::string chunk = name_in(log, mark.chunk); !chunk.empty()) text += str(", ", chunk, ":", mark.line);
    return text;
}

std::string ring_path(const std::string& job, int rank) { return str("/dev/shm/lunaria-", job, "-ring-", rank); }

RingFile::RingFile(RingFile&& other) noexcept : log_(std::exchange(other.log_, nullptr)) {}
RingFile& RingFile::operator=(RingFile&& other) noexcept {
    std::swap(log_, other.log_);
    return *this;
}
RingFile::~RingFile() {
    if (log_) munmap(log_, sizeof(RankLog));
}

RingFile RingFile::create(const std::string& job, int rank, int ranks) {
    const std::string path = ring_path(job, rank);
    int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST) {
        const RingFile before = open(path);
        if (before.log() && is_alive(*before.log()))
            throw state_error("communication", str("rank ", rank, " of job ", job, " runs already, as process ",
                                                   before.log()->pid.load()));
        unlink(path.c_str());
        file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    // Room is taken now: a full file system would else end the process when it writes.
    const int failed = file < 0 ? errno : posix_fallocate(file, 0, sizeof(RankLog));
    void* memory = MAP_FAILED;
    if (!failed) memory = mmap(nullptr, sizeof(RankLog), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    const int reason = failed ? failed : errno;
    if (file >= 0) close(file);
    if (memory == MAP_FAILED) {
        if (file >= 0) unlink(path.c_str());
        throw file_error("communication", str(path, " cannot be made: ", std::strerror(reason)))
            .hint(reason == ENOSPC ? "/dev/shm is full" : "the ranks of a host need /dev/shm");
    }
    RingFile made;
    made.log_ = static_cast<RankLog*>(memory);
    made.log_->ranks = static_cast<uint32_t>(ranks);
    made.log_->started = start_of_process(getpid());
    made.log_->pid = getpid();
    made.log_->state = RankState::running;
    return made;
}

RingFile RingFile::open(const std::string& path) {
    RingFile found;
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return found;
    struct stat about {};
    if (fstat(file, &about) == 0 && about.st_size == static_cast<off_t>(sizeof(RankLog))) {
        void* memory = mmap(nullptr, sizeof(RankLog), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) found.log_ = static_cast<RankLog*>(memory);
    }
    close(file);
    return found;
}

namespace {

// The state and the start of a process, as /proc tells them.
bool read_process(int pid, char& state, unsigned long long& start) {
    std::FILE* file = std::fopen(str("/proc/", pid, "/stat").c_str(), "re");
    if (!file) return false;
    char text[1024] = {};
    const size_t size = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    // The name of the program is in parentheses and may hold any character.
    const char* end = static_cast<const char*>(memrchr(text, ')', size));
    return end &&
           std::sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                       &state, &start) == 2;
}

}  // namespace

uint64_t start_of_process(int pid) {
    char state = 0;
    unsigned long long start = 0;
    return read_process(pid, state, start) ? start : 0;
}

bool is_alive(const RankLog& log) {
    char state = 0;
    unsigned long long start = 0;
    return read_process(log.pid, state, start) && start == log.started && state != 'Z' && state != 'X';
}

uint64_t nanoseconds_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace lunaria::parallel
