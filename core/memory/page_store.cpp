#include "core/memory/page_store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>

#include "core/memory/watched_memory.h"

namespace lunaria {

namespace {

constexpr size_t kWholePage = 2u << 20;

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
    const size_t skipped = (kWholePage - reinterpret_cast<uintptr_t>(at) % kWholePage) % kWholePage;
    used_ = skipped;
    madvise(base_ + skipped, size - skipped, MADV_HUGEPAGE);
}

PageStore::~PageStore() {
    if (base_) munmap(base_, reserved_);
}

bool PageStore::Ranges::add(char* at, size_t size) {
    auto next = by_address.lower_bound(at);
    const auto before = next == by_address.begin() ? by_address.end() : std::prev(next);
    const bool joins_next = next != by_address.end() && at + size == next->first;
    const bool joins_before = before != by_address.end() && before->first + before->second == at;
    if (joins_before) {
        size += before->second;
        if (joins_next) {
            size += next->second;
            remove(next);
        }
        change(before, before->first, size);
    } else if (joins_next) {
        change(next, at, size + next->second);
    } else {
        bool is_listed = false;
        try {
            next = by_address.emplace_hint(next, at, size);
            is_listed = true;
            by_size.emplace(size, at);
        } catch (const std::bad_alloc&) {
            if (is_listed) by_address.erase(next);
            return false;
        }
    }
    return true;
}

void PageStore::Ranges::remove(std::map<char*, size_t>::iterator range) {
    by_size.erase({range->second, range->first});
    by_address.erase(range);
}

// Moves the entries, which takes no memory.
void PageStore::Ranges::change(std::map<char*, size_t>::iterator range, char* at, size_t size) {
    auto entry = by_size.extract({range->second, range->first});
    entry.value() = {size, at};
    by_size.insert(std::move(entry));
    if (at == range->first) {
        range->second = size;
        return;
    }
    auto place = by_address.extract(range);
    place.key() = at;
    place.mapped() = size;
    by_address.insert(std::move(place));
}

char* PageStore::Ranges::take(size_t size) {
    const auto found = by_size.lower_bound({size, nullptr});
    if (found == by_size.end()) return nullptr;
    const auto [whole, at] = *found;
    const auto range = by_address.find(at);
    if (whole > size)
        change(range, at + size, whole - size);
    else
        remove(range);
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
    if (warm_.add(static_cast<char*>(block), size))
        kept_ += size;
    else
        madvise(block, size, MADV_DONTNEED);
}

void PageStore::drop(size_t bytes) {
    while (kept_ > bytes) {
        const auto [size, at] = *warm_.by_size.rbegin();
        // Drops the end of the largest range, and no more than needed: it would be wanted again soon.
        const size_t part = std::min(size, (kept_ - bytes + kPage - 1) / kPage * kPage);
        const auto range = warm_.by_address.find(at);
        if (part < size)
            warm_.change(range, at, size - part);
        else
            warm_.remove(range);
        madvise(at + size - part, part, MADV_DONTNEED);
        cold_.add(at + size - part, part);
        kept_ -= part;
    }
}

}  // namespace lunaria
