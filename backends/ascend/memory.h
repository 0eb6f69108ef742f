// A memory of the simulated chip, with the state of each of its bytes: whether it was written, and which pipe wrote or
// read it last. Two accesses of which one writes need an order between their pipes (flags and barriers, kept as vector
// clocks); without an order, real hardware does either first, and the answer depends on luck.
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
    // Forgets all writes and accesses.
    void forget();
    // Forgets the accesses only.
    void forget_accesses();
    int64_t count_unwritten() const;

    // The pipe with which an access conflicts.
    struct Conflict {
        Pipe other;
        bool other_wrote;
    };
    struct Access {
        std::optional<Conflict> conflict;
        bool unwritten = false;  // a byte that is read was never written
    };
    // Notes an access by an instruction of `pipe` that knows `clock`. Bytes that were read count as written from then
    // on.
    Access read(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock);
    Access write(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock);

  private:
    // All zeros: no access yet.
    struct Block {
        std::array<uint32_t, kPipes> read;  // the times at the readers' pipes; 0: never
        uint32_t wrote;                     // eight times the time at the writer's pipe, and the pipe; 0: never
        uint32_t bytes;                     // which of the 32 are written, a bit for each
        Pipe writer() const { return static_cast<Pipe>(wrote % 8); }
        bool is_unknown(const Clock& known) const { return wrote / 8 > known[wrote % 8]; }
    };
    // Zeroed memory of the system, which allocates pages when they are touched: most programs need little of a buffer.
    struct Free {
        void operator()(void* p) const noexcept { std::free(p); }
    };
    // The blocks of a memory. When they are no longer needed they are zeroed and kept for the next memory: programs are
    // short compared with the time that the system takes to allocate pages.
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
        // The blocks that may not be zeros.
        std::span<const Block> touched() const { return within(all_.with(recent_)); }
        // Calls f(block) for blocks that were touched since the last call.
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
    bool was_written_;  // before any access
    Blocks blocks_;
};

}  // namespace lunaria::ascend
