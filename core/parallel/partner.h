// Partners: ranks of this host, and what has become of them, as their records and the system tell it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/parallel/recorder.h"

namespace lunaria::parallel {

// Looks after the process of one rank. Not for several threads at once.
class Partner {
  public:
    Partner() = default;
    ~Partner();
    Partner(Partner&& other) noexcept;
    Partner(const Partner&) = delete;
    Partner& operator=(const Partner&) = delete;

    // Whether the process of the record has ended; false for a rank that is a thread, or has not come yet. Each call
    // has the same record.
    bool is_dead(const RankLog& record);

  private:
    int process_ = -1;  // a descriptor of it, which is readable when it has ended
};

// "(process 812) was killed by signal 9 (Killed) in all_reduce #41 (float32, 4 elements), train.lua:57" of a rank whose
// process has ended. The launcher learns of the signal, and gets a moment to write it down.
std::string end_of(const RankLog& record);
// "in all_reduce #41 ..." for a request under way, "after ..." for one that is done, "before its first request".
std::string last_request(const RankLog& record);
// The first line of the error that ended the rank.
std::string failure_in(const RankLog& record);

// Seconds that a rank waits for another one that is alive; 0: for ever. LUNARIA_COMMUNICATION_TIMEOUT, or 600.
double patience();
void set_patience(double seconds);

// Waiting for a rank that is alive: a warning after a while, and an error after the time that patience() gives.
class Impatience {
  public:
    // `waited`: nanoseconds. `waiting`: "rank 0 waits for rank 1 in ..."; `other`: what that rank does.
    void look(std::string_view where, uint64_t waited, const std::string& waiting, const std::string& other);

  private:
    bool has_warned_ = false;
};

}  // namespace lunaria::parallel
