// What is to be sent: any thread puts frames in, the thread that owns the sockets takes them out, in order. ZeroMQ
// sockets must not be shared between threads.
#pragma once

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
    // Everything so far; also makes wake_file() unreadable again.
    std::deque<Letter> take();
    // Makes the taker look, with or without letters.
    void wake();
    // Readable when there is something to do: for poll.
    int wake_file() const { return event_; }

  private:
    std::mutex mutex_;
    std::deque<Letter> letters_;
    int event_;
};

}  // namespace lunaria::jupyter
