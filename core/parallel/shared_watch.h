// Ranks under watch by one that waits for them: a rank that is dead, has ended, has failed or waits for this one in
// turn will never do its part.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/parallel/arena.h"
#include "core/parallel/partner.h"

namespace lunaria::parallel {

class SharedWatch {
  public:
    SharedWatch(Arena& arena, int rank);
    SharedWatch(const SharedWatch&) = delete;
    SharedWatch& operator=(const SharedWatch&) = delete;

    // Throws if the other rank will never do its part of the request, or has not done it for too long since `begin`.
    // Callable often: looks that cost something are made some times in a second.
    void look_after(int other, const Mark& mark, uint64_t begin);
    // As Communicator::casualty.
    std::string casualty();

  private:
    struct Peer {
        Partner partner;
        uint64_t last_look = 0;
    };
    void look_for_circle(const Mark& mark);
    std::string waiting(int other, const Mark& mark) const;

    Arena& arena_;
    const int rank_;
    std::mutex mutex_;  // the program and its transfers wait at the same time
    std::vector<Peer> peers_;
    uint64_t circle_ = 0, circle_since_ = 0;
    Impatience impatience_;
};

}  // namespace lunaria::parallel
