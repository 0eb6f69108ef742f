#include "kernel/outbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace lunaria::jupyter {

Outbox::Outbox() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::runtime_error("the system gives no event descriptor");
}

Outbox::~Outbox() { close(event_); }

void Outbox::put(Channel channel, zmq::multipart_t frames) {
    if (channel == Channel::iopub) unpublished_ += size_of(frames);
    bool was_empty;
    {
        const std::lock_guard lock(mutex_);
        was_empty = letters_.empty();
        letters_.push_back({channel, std::move(frames)});
    }
    if (was_empty) wake();
}

std::deque<Outbox::Letter> Outbox::take() {
    uint64_t count;
    // A read without data is fine: the letters are checked either way.
    if (read(event_, &count, sizeof count) < 0) count = 0;
    const std::lock_guard lock(mutex_);
    return std::exchange(letters_, {});
}

size_t size_of(const zmq::multipart_t& frames) {
    size_t size = 0;
    for (size_t i = 0; i < frames.size(); ++i) size += frames[i].size();
    return size;
}

void Outbox::wake() {
    const uint64_t one = 1;
    // It fails only when the counter is full, and then the taker is awake.
    if (write(event_, &one, sizeof one) < 0) return;
}

}  // namespace lunaria::jupyter
