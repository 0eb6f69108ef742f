// The record that this process keeps in shared memory, and those of its partners.
#pragma once

#include <memory>
#include <string>

#include "core/parallel/job_records.h"

namespace lunaria::parallel {

// Makes the record of this process, in a file that outlives it. One that a dead process has left is replaced.
std::unique_ptr<RecordFile> make_record(const std::string& job, int rank, int ranks);
// The record of a partner; null as long as there is none.
std::unique_ptr<RecordFile> find_record(const std::string& job, int rank);

// Whether the process of a record is still there, and not only its end, which its parent has not asked for yet.
bool is_alive(const RankLog& log);

}  // namespace lunaria::parallel
