#include "core/parallel/own_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/error.h"

namespace lunaria::parallel {

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

// When a process began; 0: there is none.
uint64_t start_of_process(int pid) {
    char state = 0;
    unsigned long long start = 0;
    return read_process(pid, state, start) ? start : 0;
}

}  // namespace

bool is_alive(const RankLog& log) {
    char state = 0;
    unsigned long long start = 0;
    return read_process(log.pid, state, start) && start == log.started && state != 'Z' && state != 'X';
}

std::unique_ptr<RecordFile> make_record(const std::string& job, int rank, int ranks) {
    const std::string path = record_path(job, rank);
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno == EEXIST) {
        const auto before = find_record(job, rank);
        if (before && is_alive(before->log()))
            throw state_error("communication", str("rank ", rank, " of job ", job, " runs already, as process ",
                                                   before->log().pid.load()));
        unlink(path.c_str());
        file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    // Room is taken now: a full file system would else end the process when it writes.
    const int reason = file < 0 ? errno : posix_fallocate(file, 0, sizeof(RankLog));
    if (file >= 0) close(file);
    if (reason) {
        if (file >= 0) unlink(path.c_str());
        throw file_error("communication", str(path, " cannot be made: ", std::strerror(reason)))
            .hint(reason == ENOSPC ? "/dev/shm is full" : "the ranks of a host need /dev/shm");
    }
    auto made = std::make_unique<RecordFile>(path);
    RankLog& log = made->log();
    log.ranks = static_cast<uint32_t>(ranks);
    log.started = start_of_process(getpid());
    log.pid = getpid();
    log.state = RankState::running;
    return made;
}

std::unique_ptr<RecordFile> find_record(const std::string& job, int rank) {
    try {
        return std::make_unique<RecordFile>(record_path(job, rank));
    } catch (const Error&) {
        return nullptr;  // not there yet, or just being made
    }
}

}  // namespace lunaria::parallel
