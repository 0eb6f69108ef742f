#include "backends/gpu/memory.h"

#include <algorithm>
#include <iterator>

namespace lunaria::gpu {

namespace {

constexpr size_t kRound = 512, kSmallBlock = size_t{1} << 20, kMegabyte = size_t{1} << 20;
constexpr size_t kSmallSegment = 2 * kMegabyte, kMiddleBlock = 10 * kMegabyte, kMiddleSegment = 20 * kMegabyte;

size_t rounded(size_t bytes) { return std::max(kRound, (bytes + kRound - 1) / kRound * kRound); }

size_t segment_for(size_t bytes) {
    if (bytes <= kSmallBlock) return kSmallSegment;
    if (bytes < kMiddleBlock) return kMiddleSegment;
    return (bytes + 2 * kMegabyte - 1) / (2 * kMegabyte) * (2 * kMegabyte);
}

}  // namespace

Memory::FreeList& Memory::list_of(const Block& block) {
    return segments_.at(block.segment) == kSmallSegment ? small_ : large_;
}

Memory::Blocks::iterator Memory::find_free(size_t bytes, bool any) {
    FreeList& list = bytes <= kSmallBlock ? small_ : large_;
    const auto found = list.lower_bound({bytes, 0});
    if (found == list.end()) return blocks_.end();
    // A large block is not cut for a much smaller one: the rest of it could then not be given back as a whole.
    if (!any && bytes > kSmallBlock && found->first >= kMiddleBlock + segment_for(bytes)) return blocks_.end();
    return blocks_.find(found->second);
}

bool Memory::overlaps_lost(Address start, size_t bytes) const {
    auto after = lost_.lower_bound(start + bytes);
    if (after == lost_.begin()) return false;
    --after;
    return after->first + after->second.bytes > start;
}

Memory::Blocks::iterator Memory::add_segment(size_t bytes) {
    const size_t size = segment_for(bytes);
    Address start = 0;
    std::vector<Address> unusable;
    Result result = driver_.memory_allocate(&start, size);
    while (result == kSuccess && overlaps_lost(start, size)) {
        unusable.push_back(start);
        result = driver_.memory_allocate(&start, size);
    }
    for (Address other : unusable) driver_.memory_free(other);
    if (result != kSuccess) return blocks_.end();
    segments_[start] = size;
    const auto at = blocks_.emplace(start, Block{size, start, true, {}}).first;
    list_of(at->second).emplace(size, start);
    stats_.cached += static_cast<int64_t>(size);
    return at;
}

// Takes a free block, whose rest becomes a block of its own.
void Memory::take(Blocks::iterator at, size_t bytes) {
    Block& block = at->second;
    FreeList& list = list_of(block);
    list.erase({block.bytes, at->first});
    if (const size_t rest = block.bytes - bytes; rest >= kRound) {
        const Address next = at->first + bytes;
        blocks_.emplace_hint(std::next(at), next, Block{rest, block.segment, true, block.age});
        list.emplace(rest, next);
        block.bytes = bytes;
    }
    block.is_free = false;
}

// Joins a free block with the free ones beside it.
void Memory::join(Blocks::iterator at) {
    FreeList& list = list_of(at->second);
    auto take_age = [](Block& block, const Block& other) {
        block.age.free_since = std::max(block.age.free_since, other.age.free_since);
    };
    auto next = std::next(at);
    if (next != blocks_.end() && next->second.is_free && next->second.segment == at->second.segment) {
        list.erase({next->second.bytes, next->first});
        at->second.bytes += next->second.bytes;
        take_age(at->second, next->second);
        blocks_.erase(next);
    }
    if (at != blocks_.begin()) {
        auto before = std::prev(at);
        if (before->second.is_free && before->second.segment == at->second.segment) {
            list.erase({before->second.bytes, before->first});
            before->second.bytes += at->second.bytes;
            take_age(before->second, at->second);
            blocks_.erase(at);
            at = before;
        }
    }
    list.emplace(at->second.bytes, at->first);
}

Address Memory::take_for(Blocks::iterator at, size_t bytes, uint64_t position) {
    take(at, bytes);
    at->second.age.allocated = position;
    const auto taken = static_cast<int64_t>(at->second.bytes);
    stats_.live += taken;
    stats_.cached -= taken;
    stats_.peak = std::max(stats_.peak, stats_.live);
    ++stats_.allocations;
    return at->first;
}

Address Memory::allocate(size_t bytes, uint64_t position) {
    const size_t size = rounded(bytes);
    auto at = find_free(size);
    if (at == blocks_.end()) at = add_segment(size);
    return at == blocks_.end() ? 0 : take_for(at, size, position);
}

Address Memory::allocate_by_all_means(size_t bytes, uint64_t position) {
    const size_t size = rounded(bytes);
    empty_cache();
    auto at = add_segment(size);
    if (at == blocks_.end()) at = find_free(size, true);
    return at == blocks_.end() ? 0 : take_for(at, size, position);
}

void Memory::release(Address block, uint64_t position) noexcept {
    if (lost_.erase(block)) return;
    const auto at = blocks_.find(block);
    if (at == blocks_.end()) return;
    at->second.is_free = true;
    at->second.age.free_since = position;
    stats_.live -= static_cast<int64_t>(at->second.bytes);
    stats_.cached += static_cast<int64_t>(at->second.bytes);
    join(at);
}

Memory::Age Memory::age_of(Address address) const {
    const auto after = blocks_.upper_bound(address);
    return after == blocks_.begin() ? Age{} : std::prev(after)->second.age;
}

void Memory::empty_cache() noexcept {
    for (auto segment = segments_.begin(); segment != segments_.end();) {
        const auto [start, size] = *segment;
        const auto block = blocks_.find(start);
        if (!block->second.is_free || block->second.bytes != size) {
            ++segment;
            continue;
        }
        list_of(block->second).erase({size, start});
        blocks_.erase(block);
        driver_.memory_free(start);
        stats_.cached -= static_cast<int64_t>(size);
        segment = segments_.erase(segment);
    }
}

void Memory::lose() {
    for (const auto& [start, block] : blocks_)
        if (!block.is_free) lost_.emplace(start, block);
    blocks_.clear();
    segments_.clear();
    small_.clear();
    large_.clear();
    stats_.live = stats_.cached = 0;
}

bool Memory::is_lost(Address address) const { return !lost_.empty() && overlaps_lost(address, 1); }

}  // namespace lunaria::gpu
