// A memory of the simulated chip, with what is known of each of its bytes: whether it was written, and which pipe wrote
// or read it last. Two accesses of which one writes need an order between their pipes (flags and barriers, kept as
// vector clocks); where there is none, real hardware does either first, and the answer depends on luck.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "backends/ascend/instruction.h"

namespace lunaria::ascend {

// For each pipe the number of its instructions that are known to be done.
using Clock = std::array<uint32_t, kPipes>;

class Memory {
  public:
    static constexpr int64_t kBlock = 32;

    // Own memory, or `outside` where it is given.
    explicit Memory(int64_t bytes, uint8_t* outside = nullptr, bool written = false);

    uint8_t* data() { return data_; }
    int64_t size() const { return bytes_; }
    // Nothing is written, nobody was there.
    void forget();
    // Only who was there.
    void forget_accesses();
    int64_t count_unwritten() const;

    // The pipe that an access conflicts with.
    struct Conflict {
        Pipe other;
        bool other_wrote;
    };
    struct Access {
        std::optional<Conflict> conflict;
        bool unwritten = false;  // something that is read was never written
    };
    // Notes an access by an instruction of `pipe` that knows `clock`. What is read counts as written from then on.
    Access read(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock);
    Access write(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock);

  private:
    // All zeros: nobody was there.
    struct Block {
        std::array<uint32_t, kPipes> read;  // the times at the readers' pipes; 0: never
        uint32_t wrote;                     // eight times the time at the writer's pipe, and the pipe; 0: never
        uint32_t bytes;                     // which of the 32 are written, a bit for each
        Pipe writer() const { return static_cast<Pipe>(wrote % 8); }
        bool is_unknown(const Clock& known) const { return wrote / 8 > known[wrote % 8]; }
    };
    // Zeros of the system, which it gives where they are touched: most programs need little of a buffer.
    struct Free {
        void operator()(void* p) const noexcept { std::free(p); }
    };
    template <class T>
    using Zeros = std::unique_ptr<T[], Free>;
    template <class T>
    static Zeros<T> zeros(int64_t count);
    template <class F>
    void each_block(int64_t from, int64_t bytes, F f);

    int64_t bytes_, count_;
    Zeros<uint8_t> own_;
    uint8_t* data_;
    bool was_written_;  // before anybody was there
    Zeros<Block> blocks_;
    // The blocks from low_ to high_ (not included) are not as they were.
    int64_t low_, high_ = 0;
};

}  // namespace lunaria::ascend
