#include "backends/ascend/memory.h"

#include <algorithm>
#include <cstring>

namespace lunaria::ascend {

Memory::Memory(int64_t bytes, uint8_t* outside, bool written)
    : bytes_(bytes),
      own_(outside ? 0 : static_cast<size_t>(bytes)),
      data_(outside ? outside : own_.data()),
      written_(static_cast<size_t>(bytes), written),
      blocks_(static_cast<size_t>((bytes + kBlock - 1) / kBlock)) {}

void Memory::forget() {
    std::ranges::fill(written_, uint8_t{0});
    forget_accesses();
}

void Memory::forget_accesses() { std::ranges::fill(blocks_, Block{}); }

bool Memory::is_written(int64_t from, int64_t bytes) const {
    return !std::memchr(written_.data() + from, 0, static_cast<size_t>(bytes));
}

void Memory::mark_written(int64_t from, int64_t bytes) {
    std::memset(written_.data() + from, 1, static_cast<size_t>(bytes));
}

int64_t Memory::count_unwritten() const { return std::ranges::count(written_, 0); }

std::optional<Memory::Conflict> Memory::read(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock) {
    std::optional<Conflict> found;
    const auto me = static_cast<size_t>(pipe);
    for (int64_t i = from / kBlock; i <= (from + bytes - 1) / kBlock; ++i) {
        Block& block = blocks_[static_cast<size_t>(i)];
        if (block.written > clock[static_cast<size_t>(block.writer)] && block.writer != pipe)
            found = Conflict{block.writer, true};
        block.read[me] = clock[me];
    }
    return found;
}

std::optional<Memory::Conflict> Memory::write(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock) {
    std::optional<Conflict> found;
    for (int64_t i = from / kBlock; i <= (from + bytes - 1) / kBlock; ++i) {
        Block& block = blocks_[static_cast<size_t>(i)];
        if (block.written > clock[static_cast<size_t>(block.writer)] && block.writer != pipe)
            found = Conflict{block.writer, true};
        for (size_t p = 0; p < kPipes; ++p)
            if (block.read[p] > clock[p] && p != static_cast<size_t>(pipe))
                found = Conflict{static_cast<Pipe>(p), false};
        block.written = clock[static_cast<size_t>(pipe)];
        block.writer = pipe;
    }
    return found;
}

}  // namespace lunaria::ascend
