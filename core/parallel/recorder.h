// The record that each rank keeps of what it asked of others: a ring of its last requests, in memory that all ranks see
// and that outlives the process. Errors about a rank that is gone or disagrees are told from it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/operator/collective.h"
#include "core/tensor/dtype_list.h"

namespace lunaria::parallel {

inline constexpr size_t kCollectives = 12;
std::string_view name_of(Collective operation);

std::string_view name_of(Combine combine);

// A request as it is told to others. Names are numbers in the table of the rank that made it.
struct Mark {
    uint64_t sequence = 0;  // the number of the request in its group, from 1
    int64_t count = 0;
    uint32_t group = 0;  // the lower half of the group's key
    int32_t root = 0, tag = 0;
    uint32_t line = 0;
    uint16_t chunk = 0, parameter = 0;
    Collective operation = Collective::barrier;
    DType dtype = DType::f32;
    Combine combine = Combine::sum;
    uint8_t is_elsewhere = 0;  // 1: the data lie on a device and travel by its library
    // What has to be equal in all ranks of a group, as one number; engines may add to it.
    uint64_t fingerprint() const;
};
static_assert(sizeof(Mark) == 40);

enum class RankState : uint8_t { absent, running, left, failed };

// The record of one rank. It lies in shared memory: it holds no pointers, and zeros are an empty record.
struct RankLog {
    static constexpr size_t kEntries = 1024, kNames = 1024, kNameSize = 64;
    struct Entry {
        Mark mark;
        std::atomic<uint64_t> begin, end;  // nanoseconds of the monotonic clock; end 0: not done yet
        uint64_t size;                     // ranks of the group
    };
    static_assert(sizeof(Entry) == 64);
    std::atomic<int32_t> pid;
    std::atomic<RankState> state;
    std::atomic<int32_t> wait_status;  // as waitpid gives it, once the launcher knows it; see kHasEnded
    std::atomic<uint32_t> has_ended;   // wait_status is valid
    std::atomic<uint64_t> started;     // when the process began, in the ticks of /proc: tells it from a later one
    std::atomic<int32_t> arena;        // of rank 0: 1 + the descriptor of the memory that the ranks of a host share
    uint32_t ranks;
    std::atomic<uint64_t>
        job_key;  // a number of rank 0, which the others copy: tells the job from one of the same name
    std::atomic<uint64_t> written;  // entries so far; entry k lies at k % kEntries
    std::atomic<uint32_t> names_used;
    char names[kNames][kNameSize];  // each ends with a zero
    char failure[512];              // the first line of the error that ended the rank
    Entry ring[kEntries];
};

// The names of one rank's record, with their numbers at hand.
class NameTable {
  public:
    // The number of a name in the log; long names keep their ends. 0 is no name, also where the table is full.
    uint16_t number(RankLog& log, std::string_view name);

  private:
    std::unordered_map<std::string, uint16_t> known_;
    // The names that were asked for last: mostly a file and a parameter in turn.
    struct Last {
        std::string name;
        uint16_t number = 0;
    };
    std::array<Last, 2> last_;
    size_t older_ = 0;
};

std::string name_in(const RankLog& log, uint16_t number);
// "all_reduce #41 (float32, 1000 elements) of fc1.weight, train.lua:57".
std::string describe(const RankLog& log, const Mark& mark);
uint64_t nanoseconds_now();

}  // namespace lunaria::parallel
