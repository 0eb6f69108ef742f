// Ranks that work together by messages: requests as sends and receives of bytes, over any transport. Results are the
// same bits as over shared memory.
//
// Before a collective request moves data its ranks compare their marks: in round k a rank tells the one 2^k places on
// what it knows, so that after log n rounds each knows of one rank that asks for something else, if there is one.
#pragma once

#include <memory>
#include <vector>

#include "core/parallel/communicator.h"
#include "core/parallel/end_signal.h"
#include "core/parallel/message_watch.h"
#include "core/parallel/transport.h"

namespace lunaria::parallel {

class MessageCommunicator : public Communicator {
  public:
    // With a job's name the record of this rank's requests lies in shared memory and outlives a failure.
    // `is_ended_with_others`: what has started the ranks ends all when one is lost; then each tells which.
    explicit MessageCommunicator(std::unique_ptr<Transport> transport, const std::string& job = "",
                                 bool is_ended_with_others = false);
    ~MessageCommunicator() override;
    std::string_view engine() const override { return transport_->name(); }
    std::string casualty() override { return watch_.casualty(); }

  protected:
    void execute(const Request& request, const Mark& mark) override;
    std::unique_ptr<Transfer> post(const Request& request, const Mark& mark) override;
    uint32_t news() const override { return 0; }
    void wait_for_news(uint32_t seen) override;

  private:
    void end_by_signal(const std::string& reason);
    class Collectives;
    class Exchange;
    const std::string job_;
    std::unique_ptr<RecordFile> record_;
    std::unique_ptr<Transport> transport_;
    MessageWatch watch_;
    std::unique_ptr<EndSignal> end_signal_;
};

}  // namespace lunaria::parallel
