// A memory of the simulated chip, with what is known of each of its bytes: whether it was written, and which pipe wrote
// or read it last. Two accesses of which one writes need an order between their pipes (flags and barriers, kept as
// vector clocks); where there is none, real hardware does either first, and the answer depends on luck.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

    bool is_written(int64_t from, int64_t bytes) const;
    void mark_written(int64_t from, int64_t bytes);
    int64_t count_unwritten() const;

    // Notes an access by an instruction of `pipe` that knows `clock`; the pipe that it conflicts with, if there is one.
    struct Conflict {
        Pipe other;
        bool other_wrote;
    };
    std::optional<Conflict> read(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock);
    std::optional<Conflict> write(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock);

  private:
    struct Block {
        uint32_t written = 0;  // the time at the writer's pipe; 0: never
        Pipe writer = Pipe::s;
        std::array<uint32_t, kPipes> read{};
    };
    int64_t bytes_;
    std::vector<uint8_t> own_;
    uint8_t* data_;
    std::vector<uint8_t> written_;
    std::vector<Block> blocks_;
};

}  // namespace lunaria::ascend
