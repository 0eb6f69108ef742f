// Ranks under watch by one that waits for them: a rank that is dead, has ended, has failed or waits for this one in
// turn will never do its part.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/parallel/arena.h"

namespace lunaria::parallel {

class SharedWatch {
  public:
    SharedWatch(Arena& arena, int rank);
    ~SharedWatch();
    SharedWatch(const SharedWatch&) = delete;
    SharedWatch& operator=(const SharedWatch&) = delete;

    // Throws if the other rank will never do its part of the request, or has not done it for too long since `begin`.
    // Callable often: looks that cost something are made some times in a second.
    void look_after(int other, const Mark& mark, uint64_t begin);

  private:
    struct Peer {
        int process = -1;  // a descriptor of it, which is readable when it has ended
        uint64_t last_look = 0;
    };
    bool is_dead(int other, const RankLog& record);
    void look_for_circle(const Mark& mark);
    [[noreturn]] void tell_of_death(int other, const RankLog& record, const Mark& mark) const;
    std::string waiting(int other, const Mark& mark) const;
    std::string last_request(const RankLog& record) const;

    Arena& arena_;
    const int rank_;
    std::mutex mutex_;  // the program and its transfers wait at the same time
    std::vector<Peer> peers_;
    uint64_t circle_ = 0, circle_since_ = 0;
    bool has_warned_ = false;
};

// Seconds that a rank waits for another one that is alive; 0: for ever. LUNARIA_COMMUNICATION_TIMEOUT, or 600.
double patience();
void set_patience(double seconds);

}  // namespace lunaria::parallel
