#include "backends/ascend/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <vector>

#include "core/memory/memory.h"

namespace lunaria::ascend {

namespace {

void* zeros(int64_t bytes) {
    void* first = std::calloc(static_cast<size_t>(std::max<int64_t>(bytes, 1)), 1);
    if (!first) throw std::bad_alloc();
    use_huge_pages(first, static_cast<size_t>(bytes), true);
    return first;
}

// Zeroed blocks that earlier memories have left.
class Spare {
  public:
    ~Spare() {
        for (const auto& [first, bytes] : kept_) std::free(first);
    }
    // Null: there is none of this size.
    void* take(int64_t bytes) {
        const std::lock_guard lock(mutex_);
        const auto at = std::ranges::find(kept_, bytes, &std::pair<void*, int64_t>::second);
        if (at == kept_.end()) return nullptr;
        void* first = at->first;
        total_ -= bytes;
        kept_.erase(at);
        return first;
    }
    // Those that were kept longest are freed first.
    void keep(void* first, int64_t bytes) {
        constexpr int64_t kMost = 32 << 20;
        const std::lock_guard lock(mutex_);
        kept_.emplace_back(first, bytes);
        for (total_ += bytes; total_ > kMost; kept_.erase(kept_.begin())) {
            std::free(kept_.front().first);
            total_ -= kept_.front().second;
        }
    }

  private:
    std::mutex mutex_;
    std::vector<std::pair<void*, int64_t>> kept_;
    int64_t total_ = 0;
};
Spare& spare() {
    static Spare instance;
    return instance;
}

}  // namespace

Memory::Blocks::Blocks(int64_t count) : count_(count) {
    const auto bytes = count * static_cast<int64_t>(sizeof(Block));
    void* first = spare().take(bytes);
    first_ = static_cast<Block*>(first ? first : zeros(bytes));
}
Memory::Blocks::~Blocks() {
    if (!first_) return;
    clear();
    spare().keep(first_, count_ * static_cast<int64_t>(sizeof(Block)));
}
void Memory::Blocks::clear() {
    std::ranges::fill(within(all_.with(recent_)), Block{});
    all_ = recent_ = {};
}

Memory::Memory(int64_t bytes, uint8_t* outside, bool written)
    : bytes_(bytes),
      own_(outside ? nullptr : static_cast<uint8_t*>(zeros(bytes))),
      data_(outside ? outside : own_.get()),
      was_written_(written),
      blocks_((bytes + kBlock - 1) / kBlock) {}

void Memory::forget() { blocks_.clear(); }

void Memory::forget_accesses() {
    blocks_.settle([](Block& block) {
        const uint32_t bytes = block.bytes;
        block = {};
        block.bytes = bytes;
    });
}

int64_t Memory::count_unwritten() const {
    if (was_written_) return 0;
    int64_t written = 0;
    for (const Block& block : blocks_.touched()) written += std::popcount(block.bytes);
    return bytes_ - written;
}

// Calls f(block, a bit for each of its bytes in the range).
template <class F>
void Memory::each_block(int64_t from, int64_t bytes, F f) {
    const int64_t first = from / kBlock, last = (from + bytes - 1) / kBlock;
    constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();
    const uint32_t head = kAll << (from % kBlock), tail = kAll >> (kBlock - 1 - (from + bytes - 1) % kBlock);
    Block* block = blocks_.touch(first, last);
    if (first == last) return f(*block, head & tail);
    f(*block++, head);
    // Most blocks of an access have the same state before it, and so the same state after it.
    Block before{}, after{};
    bool known = false;
    for (const Block* end = block + (last - first - 1); block != end; ++block) {
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
    // Accesses by the pipe itself are in order.
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
