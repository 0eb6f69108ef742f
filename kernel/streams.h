// Standard output and error of a cell: Lua's output, and that of C libraries and child processes on the descriptors 1
// and 2, in the order in which it was written. Text is gathered for a few milliseconds, so that a hundred thousand
// short prints are a few messages.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::jupyter {

class Streams {
  public:
    using Clock = std::chrono::steady_clock;
    // Called with "stdout" or "stderr", from whichever thread finds that it is time; in order, one at a time.
    using Publish = std::function<void(const char* name, std::string text)>;

    // `wake` makes the thread that calls flush_due() check due() again.
    Streams(Publish publish, std::function<void()> wake);
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    // Puts pipes in the place of the descriptors 1 and 2, until the end of the object. Throws std::runtime_error.
    void capture();
    // The ends to poll; -1 without capture.
    int file(bool is_error) const { return pipes_[is_error].read_end; }
    // Reads the content of the pipes. From any thread.
    void drain();

    // Text from Lua.
    void write(bool is_error, std::string_view text);
    // Publishes everything. At the end of a cell also an incomplete character, and the content of C's own buffers; that
    // must be called by the thread that runs Lua.
    void flush();
    void finish_cell();

    // The time of the next call of flush_due().
    std::optional<Clock::time_point> due();
    void flush_due();

  private:
    struct Pipe {
        int read_end = -1, write_end = -1, original = -1;
    };
    struct Segment {
        bool is_error;
        std::string text;
    };
    void add(bool is_error, std::string_view text);
    void drain_locked();
    void flush_locked(bool final);

    Publish publish_;
    std::function<void()> wake_;
    std::mutex mutex_;
    std::array<Pipe, 2> pipes_;
    std::vector<Segment> segments_;
    size_t size_ = 0;
    std::array<std::string, 2> halves_;  // the first bytes of a character whose rest is still to come
    std::optional<Clock::time_point> due_;
};

// The number of bytes at the end of the text that begin an incomplete UTF-8 character.
size_t incomplete_tail(std::string_view text);

}  // namespace lunaria::jupyter
