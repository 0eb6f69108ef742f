#include "backends/separate/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "core/base/error.h"
#include "core/memory/memory.h"

namespace lunaria::separate {

namespace {
constexpr size_t kPage = 4096;
}

Memory::Memory(std::string name, size_t size, size_t limit)
    : name_(std::move(name)), size_(size), limit_(std::min(size, limit)) {
    file_ = memfd_create("separate", MFD_CLOEXEC);
    const bool sized = file_ >= 0 && ftruncate(file_, static_cast<off_t>(size)) == 0;
    void* outside = sized ? mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file_, 0) : MAP_FAILED;
    void* inside = outside == MAP_FAILED
                       ? MAP_FAILED
                       : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (inside == MAP_FAILED) {
        if (outside != MAP_FAILED) munmap(outside, size);
        if (file_ >= 0) close(file_);
        throw memory_error(name_, str("the system gives no ", size, " bytes of addresses"));
    }
    outside_ = fresh_ = static_cast<char*>(outside);
    distance_ = static_cast<char*>(inside) - outside_;
}

// Sizes up to a page are multiples of a cache line, larger ones eighths of a power of two, in pages.
size_t Memory::rounded(size_t bytes) {
    const size_t step = bytes <= kPage ? kAlignment : std::max(kPage, std::bit_floor(bytes) / 8);
    return std::max(kAlignment, (bytes + step - 1) / step * step);
}

char* Memory::take(Blocks& blocks, size_t size) {
    const auto found = blocks.find(size);
    if (found == blocks.end() || found->second.empty()) return nullptr;
    char* block = found->second.back();
    found->second.pop_back();
    return block;
}

void* Memory::allocate(size_t bytes) {
    std::lock_guard lock(mutex_);
    const size_t size = rounded(bytes);
    char* block = take(free_, size);
    if (block) {
        stats_.cached -= static_cast<int64_t>(size);
    } else {
        const auto used = static_cast<size_t>(stats_.live + stats_.cached);
        if (used + size <= limit_) block = take(dry_, size);
        // A block of whole pages starts on one, so that its pages can be given back.
        const size_t at = (static_cast<size_t>(fresh_ - outside_) + (size > kPage ? kPage - 1 : 0)) / kAlignment;
        const size_t start = size > kPage ? at * kAlignment / kPage * kPage : at * kAlignment;
        if (!block && (used + size > limit_ || start + size > size_))
            throw memory_error(name_, str("out of device memory: ", bytes, " bytes are asked for, ", stats_.live,
                                          " of ", limit_, " are in use"));
        if (!block) {
            // Room for it in the list of free ones, for which there may be no memory when it is released.
            std::vector<char*>& list = free_[size];
            const size_t count = made_[size] + 1;
            if (list.capacity() < count) list.reserve(2 * count);
            made_[size] = count;
            block = outside_ + start;
            fresh_ = block + size;
        }
    }
    stats_.live += static_cast<int64_t>(size);
    stats_.peak = std::max(stats_.peak, stats_.live);
    ++stats_.allocations;
    return block;
}

void Memory::release(void* block, size_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    const size_t size = rounded(bytes);
    free_[size].push_back(static_cast<char*>(block));
    stats_.live -= static_cast<int64_t>(size);
    stats_.cached += static_cast<int64_t>(size);
}

void Memory::empty_cache() {
    std::lock_guard lock(mutex_);
    for (auto at = free_.upper_bound(kPage); at != free_.end(); ++at) {
        auto& [size, blocks] = *at;
        for (; !blocks.empty(); blocks.pop_back()) {
            char* const block = blocks.back();
            fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block - outside_, static_cast<off_t>(size));
            dry_[size].push_back(block);
            stats_.cached -= static_cast<int64_t>(size);
        }
    }
}

DeviceMemory Memory::stats() const {
    std::lock_guard lock(mutex_);
    return stats_;
}

void Memory::reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.live;
}

}  // namespace lunaria::separate
