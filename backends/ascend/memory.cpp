#include "backends/ascend/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>

#include "core/memory.h"

namespace lunaria::ascend {

template <class T>
Memory::Zeros<T> Memory::zeros(int64_t count) {
    auto* first = static_cast<T*>(std::calloc(static_cast<size_t>(std::max<int64_t>(count, 1)), sizeof(T)));
    if (!first) throw std::bad_alloc();
    use_huge_pages(first, static_cast<size_t>(count) * sizeof(T), true);
    return Zeros<T>(first);
}

Memory::Memory(int64_t bytes, uint8_t* outside, bool written)
    : bytes_(bytes),
      count_((bytes + kBlock - 1) / kBlock),
      own_(zeros<uint8_t>(outside ? 0 : bytes)),
      data_(outside ? outside : own_.get()),
      was_written_(written),
      blocks_(zeros<Block>(count_)),
      low_(count_) {}

void Memory::forget() {
    if (low_ < high_) std::fill(blocks_.get() + low_, blocks_.get() + high_, Block{});
    low_ = count_;
    high_ = 0;
}

void Memory::forget_accesses() {
    for (int64_t i = low_; i < high_; ++i) {
        const uint32_t bytes = blocks_[static_cast<size_t>(i)].bytes;
        blocks_[static_cast<size_t>(i)] = {};
        blocks_[static_cast<size_t>(i)].bytes = bytes;
    }
    low_ = count_;
    high_ = 0;
}

int64_t Memory::count_unwritten() const {
    if (was_written_) return 0;
    int64_t written = 0;
    for (int64_t i = 0; i < count_; ++i) written += std::popcount(blocks_[static_cast<size_t>(i)].bytes);
    return bytes_ - written;
}

// f(block, a bit for each of its bytes that are meant)
template <class F>
void Memory::each_block(int64_t from, int64_t bytes, F f) {
    const int64_t first = from / kBlock, last = (from + bytes - 1) / kBlock;
    low_ = std::min(low_, first);
    high_ = std::max(high_, last + 1);
    constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();
    const uint32_t head = kAll << (from % kBlock), tail = kAll >> (kBlock - 1 - (from + bytes - 1) % kBlock);
    Block* block = blocks_.get() + first;
    if (first == last) return f(*block, head & tail);
    f(*block++, head);
    // Most blocks of an access have the same past, and so the same future.
    Block before{}, after{};
    bool known = false;
    for (const Block* end = blocks_.get() + last; block != end; ++block) {
        if (known && std::memcmp(block, &before, sizeof(Block)) == 0) {
            *block = after;
            continue;
        }
        before = *block;
        f(*block, kAll);
        after = *block;
        known = true;
    }
    f(*block, tail);
}

Memory::Access Memory::read(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock) {
    Access access;
    const auto me = static_cast<size_t>(pipe);
    // What a pipe did itself is in order.
    Clock known = clock;
    known[me] = std::numeric_limits<uint32_t>::max();
    const uint32_t now = clock[me];
    each_block(from, bytes, [&](Block& block, uint32_t mask) {
        if (block.is_unknown(known)) access.conflict = Conflict{block.writer(), true};
        block.read[me] = now;
        if (was_written_ || (block.bytes & mask) == mask) return;
        access.unwritten = true;
        block.bytes |= mask;
    });
    return access;
}

Memory::Access Memory::write(int64_t from, int64_t bytes, Pipe pipe, const Clock& clock) {
    Access access;
    const auto me = static_cast<size_t>(pipe);
    Clock known = clock;
    known[me] = std::numeric_limits<uint32_t>::max();
    const uint32_t now = clock[me];
    each_block(from, bytes, [&](Block& block, uint32_t mask) {
        if (block.is_unknown(known)) access.conflict = Conflict{block.writer(), true};
        bool unordered = false;
        for (size_t p = 0; p < kPipes; ++p) unordered |= block.read[p] > known[p];
        for (size_t p = 0; unordered && p < kPipes; ++p)
            if (block.read[p] > known[p]) access.conflict = Conflict{static_cast<Pipe>(p), false};
        block.wrote = now * 8 + static_cast<uint32_t>(pipe);
        block.bytes |= mask;
    });
    return access;
}

}  // namespace lunaria::ascend
