// Bytes from rank to rank: what engines without shared memory are made of. Messages of one rank to another with the
// same lane and tag arrive in the order in which they were sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lunaria::parallel {

enum class Lane : uint8_t { requests, marks, data };  // of collective requests; the two parts of transfers

// A message under way. Its memory stays as it is, and the ticket lives, until it is done or the transport is gone.
class Ticket {
  public:
    virtual ~Ticket() = default;
    // Moves on as far as it can; whether the message has been sent, or is there. Throws where it can never be.
    virtual bool is_done() = 0;
};

// Calls come from several threads.
class Transport {
  public:
    virtual ~Transport() = default;
    virtual int rank() const = 0;
    virtual int ranks() const = 0;
    virtual std::string_view name() const = 0;
    // The machine of this rank; ranks of one host reach each other faster.
    virtual std::string host() const;
    virtual std::unique_ptr<Ticket> send(int to, Lane lane, int tag, const void* bytes, size_t count) = 0;
    // The message has exactly `count` bytes; a longer one is an error of the ticket.
    virtual std::unique_ptr<Ticket> receive(int from, Lane lane, int tag, void* bytes, size_t count) = 0;
    // Why nothing will come from a rank any more; empty: it may.
    virtual std::string loss_of(int rank) = 0;
    // Tells the others that nothing will come from this rank any more, and why where it is for a failure.
    virtual void leave(std::string_view failure) = 0;
    // Waits a little for messages.
    virtual void wait(int round) = 0;
};

}  // namespace lunaria::parallel
