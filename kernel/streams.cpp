#include "kernel/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

namespace lunaria::jupyter {

namespace {

constexpr auto kDelay = std::chrono::milliseconds(15);  // shorter than an eye can tell
constexpr size_t kLargest = 256 << 10;                  // of a message, about
constexpr int kPipeSize = 1 << 20;

}  // namespace

size_t incomplete_tail(std::string_view text) {
    for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if (byte < 0x80) return 0;
        if (byte < 0xC0) continue;
        const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
        return length > back ? back : 0;
    }
    return 0;
}

Streams::Streams(Publish publish, std::function<void()> wake) : publish_(std::move(publish)), wake_(std::move(wake)) {}

Streams::~Streams() {
    for (int which = 0; which < 2; ++which) {
        Pipe& pipe = pipes_[static_cast<size_t>(which)];
        if (pipe.original >= 0) {
            std::fflush(which ? stderr : stdout);
            dup2(pipe.original, which + 1);
            close(pipe.original);
        }
        if (pipe.read_end >= 0) close(pipe.read_end);
    }
}

void Streams::capture() {
    for (int which = 0; which < 2; ++which) {
        Pipe& pipe = pipes_[static_cast<size_t>(which)];
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("the system gives no pipe for the output");
        pipe.read_end = ends[0];
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        // More than the default, so that a burst of output does not wait for the reader. The system may refuse it.
        fcntl(ends[1], F_SETPIPE_SZ, kPipeSize);
        pipe.original = fcntl(which + 1, F_DUPFD_CLOEXEC, 10);
        dup2(ends[1], which + 1);
        close(ends[1]);
    }
}

void Streams::add(bool is_error, std::string_view text) {
    if (text.empty()) return;
    if (segments_.empty() || segments_.back().is_error != is_error) segments_.push_back({is_error, {}});
    segments_.back().text += text;
    size_ += text.size();
    if (size_ >= kLargest) {
        flush_locked(false);
    } else if (!due_) {
        due_ = Clock::now() + kDelay;
        wake_();
    }
}

void Streams::drain_locked() {
    std::array<char, 65536> buffer;
    for (int which = 0; which < 2; ++which) {
        const int file = pipes_[static_cast<size_t>(which)].read_end;
        // Not for ever: a child may write faster than this thread reads.
        for (int turn = 0; file >= 0 && turn < kPipeSize / 4096; ++turn) {
            const ssize_t count = read(file, buffer.data(), buffer.size());
            if (count <= 0) break;
            add(which, {buffer.data(), static_cast<size_t>(count)});
        }
    }
}

void Streams::drain() {
    const std::lock_guard lock(mutex_);
    drain_locked();
}

void Streams::write(bool is_error, std::string_view text) {
    // Output of C code before this text stays before it. Not under the lock: it may wait for the pipe to be drained.
    std::fflush(stdout);
    const std::lock_guard lock(mutex_);
    drain_locked();
    add(is_error, text);
}

void Streams::flush_locked(bool final) {
    const std::vector<Segment> segments = std::exchange(segments_, {});
    size_ = 0;
    due_.reset();
    for (const Segment& segment : segments) {
        std::string& half = halves_[segment.is_error];
        std::string text = std::exchange(half, {}) + segment.text;
        const size_t tail = incomplete_tail(text);
        half = text.substr(text.size() - tail);
        text.resize(text.size() - tail);
        if (!text.empty()) publish_(segment.is_error ? "stderr" : "stdout", std::move(text));
    }
    if (!final) return;
    for (const bool is_error : {false, true})
        if (!halves_[is_error].empty()) publish_(is_error ? "stderr" : "stdout", std::exchange(halves_[is_error], {}));
}

void Streams::flush() {
    const std::lock_guard lock(mutex_);
    drain_locked();
    flush_locked(false);
}

void Streams::finish_cell() {
    std::fflush(stdout);
    std::fflush(stderr);
    const std::lock_guard lock(mutex_);
    drain_locked();
    flush_locked(true);
}

std::optional<Streams::Clock::time_point> Streams::due() {
    const std::lock_guard lock(mutex_);
    return due_;
}

void Streams::flush_due() {
    const std::lock_guard lock(mutex_);
    if (due_ && Clock::now() >= *due_) flush_locked(false);
}

}  // namespace lunaria::jupyter
