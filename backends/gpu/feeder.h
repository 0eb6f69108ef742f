// Uploads beside the work: a stream of its own brings elements into memory that no work uses any more, while the work
// that was given before goes on. What is given after an upload waits for it.
#pragma once

#include <array>
#include <cstdint>

#include "backends/gpu/driver.h"
#include "backends/gpu/staging.h"

namespace lunaria::gpu {

class Feeder {
  public:
    explicit Feeder(const Driver& driver) : driver_(driver), staging_(driver, nullptr) {}
    Feeder(const Feeder&) = delete;
    Feeder& operator=(const Feeder&) = delete;

    // Fewer bytes are not worth a stream of their own.
    static constexpr size_t kFewest = size_t{64} << 10;

    // A new context, whose work is done in this stream.
    void lose(StreamHandle* work);
    // So many pieces of work have been given. Now and then a place between them is marked, that uploads may wait for.
    Result passed(uint64_t position);
    // To memory that work numbered `free_since` and later does not use; `position`: the work given so far.
    Result upload(Address to, const char* from, size_t bytes, uint64_t free_since, uint64_t position);

  private:
    static constexpr size_t kMarks = 16;
    // Between two marks, and after the last upload to go on with them.
    static constexpr uint64_t kEvery = 32, kLong = 8192;
    struct Mark {
        uint64_t position = 0;
        EventHandle* event = nullptr;
    };
    Result prepare();
    Result mark(uint64_t position);

    const Driver& driver_;
    StreamHandle *work_ = nullptr, *stream_ = nullptr;
    EventHandle* arrived_ = nullptr;
    Staging staging_;
    std::array<Mark, kMarks> marks_{};  // in a ring
    size_t next_ = 0;
    uint64_t marked_ = 0, fed_ = 0;  // up to where there is a mark; where the last upload was
};

}  // namespace lunaria::gpu
