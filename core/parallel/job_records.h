// The records of the ranks of a job of this host, read from outside: files of shared memory that outlive their
// processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel/recorder.h"

namespace lunaria::parallel {

// The shared memory of a job: files of this folder whose names begin with segment_prefix(job). Those that go on with
// kRecordMark and the rank's number are records.
inline constexpr std::string_view kSegments = "/dev/shm";
inline constexpr std::string_view kRecordMark = "ring-";
std::string segment_prefix(std::string_view job);
std::string record_path(std::string_view job, int64_t rank);

// The record of a rank as it lies in its file, which other processes may write meanwhile.
class RecordFile {
  public:
    // Throws file_error where the file is not there or is no record.
    explicit RecordFile(const std::string& path);
    ~RecordFile();
    RecordFile(const RecordFile&) = delete;
    RecordFile& operator=(const RecordFile&) = delete;
    RankLog& log() const { return *log_; }

  private:
    RankLog* log_;
};

// Writes the end of a rank, as waitpid tells it, into its record, if there is one: its process can no longer do so, and
// only its parent learns of the signal.
void note_end(std::string_view job, int64_t rank, int wait_status);

// Names of the jobs of which records of this user are there, the newest first.
std::vector<std::string> recorded_jobs();
// A line for each rank: what it asked last and when, or how it ended; then where the ranks of a group have parted. With
// `last` more requests of each. `job` may be the beginning of a name. Throws value_error where there is no such job.
std::string describe_job(std::string_view job, int64_t last);

// Removes what is left of a job; its records only if asked to.
void remove_segments(std::string_view job, bool records);
// Removes records of this user that are older than a day, whose ranks are gone.
void remove_old_records();

// "was killed by signal 9 (Killed)", "exited with 1".
std::string describe_wait_status(int wait_status);

}  // namespace lunaria::parallel
