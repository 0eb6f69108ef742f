// Frames to be sent: any thread puts them in, the thread that owns the sockets takes them out, in order. ZeroMQ sockets
// must not be shared between threads.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <zmq_addon.hpp>

namespace lunaria::jupyter {

enum class Channel { shell, control, stdin, iopub };

class Outbox {
  public:
    struct Letter {
        Channel channel;
        zmq::multipart_t frames;
    };

    Outbox();
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    void put(Channel channel, zmq::multipart_t frames);
    // The bytes for iopub that have not been sent; sent() subtracts those that have.
    size_t unpublished() const { return unpublished_.load(std::memory_order_relaxed); }
    void sent(size_t bytes) { unpublished_ -= bytes; }
    // For publications of the taker that were never letters.
    void add_unpublished(size_t bytes) { unpublished_ += bytes; }
    // All letters so far; also makes wake_file() unreadable again.
    std::deque<Letter> take();
    // Wakes the taker, with or without letters.
    void wake();
    // Readable when there is something to do: for poll.
    int wake_file() const { return event_; }

  private:
    std::mutex mutex_;
    std::deque<Letter> letters_;
    std::atomic<size_t> unpublished_{0};
    int event_;
};

size_t size_of(const zmq::multipart_t& frames);

}  // namespace lunaria::jupyter
