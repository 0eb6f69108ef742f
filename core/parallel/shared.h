// Ranks of one host, which work together through an arena of shared memory.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "core/parallel/arena.h"
#include "core/parallel/communicator.h"
#include "core/parallel/shared_transfers.h"
#include "core/parallel/shared_watch.h"

namespace lunaria::parallel {

class SharedCommunicator : public Communicator {
  public:
    // Threads have the same arena, processes each an object of their own.
    SharedCommunicator(std::shared_ptr<Arena> arena, int rank);
    ~SharedCommunicator() override;
    std::string_view engine() const override { return "shared memory"; }
    std::string casualty() override { return watch_.casualty(); }

  protected:
    void execute(const Request& request, const Mark& mark) override;
    std::unique_ptr<Transfer> post(const Request& request, const Mark& mark) override;
    uint32_t news() const override;
    void wait_for_news(uint32_t seen) override;
    void waits_for(const Request* transfer) override;

  private:
    class Steps;
    struct Area {
        Seat* seats = nullptr;
        uint32_t step = 0;
    };
    Area& area(const Group& group);
    void publish_wait(int other, const Seat* seat, uint32_t step, bool sends);

    std::shared_ptr<Arena> arena_;  // also that of the other ranks, where they are threads of this process
    std::unordered_map<const Group*, Area> areas_;
    SharedWatch watch_;
    SharedTransfers transfers_;
    int spins_;
};

}  // namespace lunaria::parallel
