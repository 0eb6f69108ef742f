// Sends and receives through the channels of an arena. A message goes in pieces of a slot each; a channel carries one
// message after the other.
#pragma once

#include <memory>
#include <vector>

#include "core/parallel/arena.h"
#include "core/parallel/communicator.h"
#include "core/parallel/shared_watch.h"

namespace lunaria::parallel {

class SharedTransfers {
  public:
    SharedTransfers(Arena& arena, int rank, SharedWatch& watch);
    ~SharedTransfers();
    std::unique_ptr<Transfer> post(const Request& request, const Mark& mark);

  private:
    class Send;
    class Receive;
    struct Inbox;
    bool pump(int from);
    [[noreturn]] void disagree(const Mark& own, int from, const Mark& sent) const;

    Arena& arena_;
    const int rank_;
    SharedWatch& watch_;
    std::vector<std::unique_ptr<Inbox>> inboxes_;    // by the rank that sends
    std::vector<std::vector<const Send*>> sending_;  // by the rank that receives, oldest first
};

}  // namespace lunaria::parallel
