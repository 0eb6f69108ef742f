// A memory of the simulated chip, with what is known of each of its bytes: whether it was written, and which pipe wrote
// or read it last. Two accesses of which one writes need an order between their pipes (flags and barriers, kept as
// vector clocks); where there is none, real hardware does either first, and the answer depends on luck.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>

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
    // The blocks of a memory. When they are no longer needed they are zeros again and kept for the next one: programs
    // are short beside the time that the system takes to give pages.
    class Blocks {
      public:
        explicit Blocks(int64_t count);
        ~Blocks();
        Blocks(Blocks&& other) noexcept
            : first_(std::exchange(other.first_, nullptr)),
              count_(other.count_),
              all_(other.all_),
              recent_(other.recent_) {}
        Blocks& operator=(Blocks&& other) noexcept {
            std::swap(first_, other.first_);
            std::swap(count_, other.count_);
            std::swap(all_, other.all_);
            std::swap(recent_, other.recent_);
            return *this;
        }
        // The blocks from `first` to `last` may be changed.
        Block* touch(int64_t first, int64_t last) {
            recent_.add(first, last + 1);
            return first_ + first;
        }
        // Those that are not zeros.
        std::span<const Block> touched() const { return within(all_.with(recent_)); }
        // f(block) for those that were touched since the last time.
        template <class F>
        void settle(F f) {
            for (Block& block : within(recent_)) f(block);
            all_ = all_.with(recent_);
            recent_ = {};
        }
        void clear();

      private:
        struct Range {
            int64_t low = std::numeric_limits<int64_t>::max(), high = 0;
            void add(int64_t first, int64_t end) {
                low = std::min(low, first);
                high = std::max(high, end);
            }
            Range with(const Range& other) const { return {std::min(low, other.low), std::max(high, other.high)}; }
        };
        std::span<Block> within(const Range& r) const {
            return r.low < r.high ? std::span<Block>(first_ + r.low, static_cast<size_t>(r.high - r.low))
                                  : std::span<Block>();
        }

        Block* first_;
        int64_t count_;
        Range all_, recent_;
    };
    template <class F>
    void each_block(int64_t from, int64_t bytes, F f);

    int64_t bytes_;
    std::unique_ptr<uint8_t[], Free> own_;
    uint8_t* data_;
    bool was_written_;  // before anybody was there
    Blocks blocks_;
};

}  // namespace lunaria::ascend
