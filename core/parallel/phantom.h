// One rank whose partners do not exist: each request is answered as if all others had what this rank has. Shapes, plans
// and memory are those of a rank among many; of a world of one rank the answers are true.
#pragma once

#include "core/parallel/communicator.h"

namespace lunaria::parallel {

class PhantomCommunicator : public Communicator {
  public:
    PhantomCommunicator(int rank, int ranks) : Communicator(rank, ranks) {}
    ~PhantomCommunicator() override { stop(); }
    std::string_view engine() const override { return ranks() == 1 ? "one rank" : "phantom"; }

  protected:
    void execute(const Request& request, const Mark& mark) override;
    std::unique_ptr<Transfer> post(const Request& request, const Mark& mark) override;
    uint32_t news() const override { return 0; }
    void wait_for_news(uint32_t) override {}
};

}  // namespace lunaria::parallel
