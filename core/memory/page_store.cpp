#include "core/memory/page_store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "core/memory/watched_memory.h"

namespace lunaria {

namespace {

constexpr size_t kHugePage = 2u << 20;

// The range of addresses is several times the machine's memory, since free ranges may be in pieces.
size_t addresses() {
    const auto physical = static_cast<size_t>(std::max(sysconf(_SC_PHYS_PAGES), 1L)) * PageStore::kPage;
    return std::max<size_t>(size_t{64} << 30, 4 * physical);
}

}  // namespace

PageStore::PageStore() {
    if constexpr (kMemoryIsWatched) return;
    if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPage)) return;
    const size_t size = addresses();
    void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    base_ = static_cast<char*>(at);
    reserved_ = size;
    // Arrays are read and written from one end to the other, at which looking up small pages takes a tenth of the time.
    // Small pages also lie in memory at random, which costs up to half of the last cache.
    const size_t skipped = (kHugePage - reinterpret_cast<uintptr_t>(at) % kHugePage) % kHugePage;
    used_ = skipped;
    madvise(base_ + skipped, size - skipped, MADV_HUGEPAGE);
}

PageStore::~PageStore() {
    if (base_) munmap(base_, reserved_);
}

void PageStore::Ranges::add(char* at, size_t size) {
    auto next = by_address.lower_bound(at);
    if (next != by_address.end() && at + size == next->first) {
        size += next->second;
        by_size.erase({next->second, next->first});
        next = by_address.erase(next);
    }
    if (next != by_address.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == at) {
            by_size.erase({before->second, before->first});
            before->second += size;
            by_size.emplace(before->second, before->first);
            return;
        }
    }
    by_address.emplace_hint(next, at, size);
    by_size.emplace(size, at);
}

char* PageStore::Ranges::take(size_t size) {
    auto found = by_size.lower_bound({size, nullptr});
    if (found == by_size.end()) return nullptr;
    const auto [whole, at] = *found;
    by_size.erase(found);
    by_address.erase(at);
    if (whole > size) add(at + size, whole - size);
    return at;
}

void* PageStore::take(size_t size) {
    char* at = warm_.take(size);
    if (at) kept_ -= size;
    return at;
}

void* PageStore::take_fresh(size_t size) {
    if (char* at = cold_.take(size)) return at;
    if (size > reserved_ - used_) return nullptr;
    used_ += size;
    return base_ + used_ - size;
}

void PageStore::give_back(void* block, size_t size) {
    warm_.add(static_cast<char*>(block), size);
    kept_ += size;
}

void PageStore::drop(size_t bytes) {
    while (kept_ > bytes) {
        const auto [size, at] = *warm_.by_size.rbegin();
        // Drops the end of the largest range, and no more than needed: it would be wanted again soon.
        const size_t part = std::min(size, (kept_ - bytes + kPage - 1) / kPage * kPage);
        warm_.by_size.erase({size, at});
        warm_.by_address.erase(at);
        if (part < size) warm_.add(at, size - part);
        madvise(at + size - part, part, MADV_DONTNEED);
        cold_.add(at + size - part, part);
        kept_ -= part;
    }
}

}  // namespace lunaria
