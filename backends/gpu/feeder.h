// Uploads beside the work: a second stream copies elements into memory that no work uses any more, while earlier work
// goes on. Work that is submitted after an upload waits for it.
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

    // Fewer bytes are not worth the second stream.
    static constexpr size_t kFewest = size_t{64} << 10;

    // Takes over a new context, whose work runs in this stream.
    void lose(StreamHandle* work);
    // So many pieces of work have been submitted. Now and then a place between them is marked, for which uploads can
    // wait.
    Result passed(uint64_t position);
    // Uploads to memory that work numbered `free_since` and later does not use; `position`: the number of pieces
    // submitted so far.
    Result upload(Address to, const char* from, size_t bytes, uint64_t free_since, uint64_t position);

  private:
    static constexpr size_t kMarks = 16;
    // The distance of two marks, and for how long after the last upload they are set.
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
    std::array<Mark, kMarks> marks_{};  // a ring
    size_t next_ = 0;
    uint64_t marked_ = 0, fed_ = 0;  // the position of the last mark; that of the last upload
};

}  // namespace lunaria::gpu
