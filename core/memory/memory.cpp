#include "core/memory/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "core/base/address_space.h"
#include "core/base/error.h"
#include "core/memory/page_store.h"
#include "core/memory/unfilled_memory.h"
#include "core/memory/watched_memory.h"

namespace lunaria {

namespace {

// Size classes: multiples of 64 up to 1 KiB, then four steps per power of two and, for large blocks, sixteen, so that
// at most a fifth (a seventeenth) is wasted.
constexpr size_t kSmallLimit = 32 * 1024;
constexpr size_t kOwnLimit = 128 * 1024;    // each thread keeps free blocks up to this size for itself ...
constexpr size_t kOwnMiddle = 4u << 20;     // ... of those that are not small not more than this in all
constexpr size_t kCacheLimit = 48u << 20;   // free large blocks kept in any case
constexpr size_t kSwingLeast = 128u << 20;  // ... and of those that were in use just before as much as this,
constexpr size_t kSwingShare = 16;          // or this part of the machine's memory
constexpr size_t kCheckedSize = 16u << 20;  // larger requests are compared with the memory that the system has left
constexpr size_t kHugePage = 2u << 20;
// Class sizes above this are multiples of a page, and their blocks come from the store. Blocks that one thread takes
// from malloc and another returns, batches above all, would leave holes between small blocks in which nothing fits.
constexpr size_t kStoreAbove = 64u << 10;
constexpr size_t kReserve = 64u << 20;  // never taken: the system and the program itself need it

size_t class_size(size_t bytes) {
    if (bytes <= 1024) return std::max<size_t>((bytes + 63) & ~size_t{63}, 64);
    // A power of two needs no division, which would be a tenth of the time of an allocation.
    size_t step = std::bit_floor(bytes - 1) >> (bytes <= kSmallLimit ? 2 : 4);
    return (bytes + step - 1) & ~(step - 1);
}

// The index of a class size up to kOwnLimit.
size_t class_index(size_t size) {
    if (size <= 1024) return size / 64 - 1;
    const auto power = static_cast<size_t>(std::bit_width(size - 1)) - 1;
    const size_t above = size - (size_t{1} << power);
    if (size <= kSmallLimit) return 16 + (power - 10) * 4 + (above >> (power - 2)) - 1;
    return 16 + 5 * 4 + (power - 15) * 16 + (above >> (power - 4)) - 1;
}
constexpr size_t kOwnClasses = 16 + 5 * 4 + 2 * 16;
// The same for the smallest blocks, of which small tensors are made, in one step.
constexpr size_t kTiny = 1024;
size_t tiny_class(size_t bytes) { return (bytes - (bytes != 0)) / 64; }

// The bytes that one thread has allocated and released. Only the thread itself writes here, except `unseen`, so that
// counting takes no locked instructions: two of them would be a tenth of a small operator's time.
struct Account {
    std::atomic<int64_t> balance{0};  // bytes allocated less bytes released; negative where others allocated
    std::atomic<int64_t> allocations{0};
    // The balance up to which the sum over all threads surely stays below the peak, as long as the other threads do not
    // grow.
    std::atomic<int64_t> unseen{INT64_MIN};
    // In the ledger's list, which takes no memory: a thread may open its account when it releases a block.
    Account *previous = nullptr, *next = nullptr;
};

// The accounts of live threads, the balance of ended ones, and the peak of the sum.
struct Ledger {
    std::mutex mutex;
    Account* first = nullptr;
    std::atomic<int64_t> left_balance{0}, left_allocations{0}, cached{0};
    int64_t peak = 0;

    int64_t live() const {
        int64_t sum = left_balance.load(std::memory_order_relaxed);
        for (const Account* a = first; a; a = a->next) sum += a->balance.load(std::memory_order_relaxed);
        return sum;
    }
    void add(Account& account) {
        account.next = first;
        if (first) first->previous = &account;
        first = &account;
    }
    void remove(const Account& account) {
        (account.previous ? account.previous->next : first) = account.next;
        if (account.next) account.next->previous = account.previous;
    }
    // Called with the mutex held. `own`: the account of the calling thread; null when it no longer has one.
    int64_t look(Account* own) {
        const int64_t now = live();
        peak = std::max(peak, now);
        if (own)
            own->unseen.store(own->balance.load(std::memory_order_relaxed) + peak - now, std::memory_order_relaxed);
        return now;
    }
};
Ledger& ledger() {
    static auto* everybodys = new Ledger;  // never destroyed: tensors may be released after static destructors
    return *everybodys;
}

// Free blocks by size, outside of the threads' own caches.
struct LargeCache {
    std::mutex mutex;
    PageStore store;  // source of blocks of more than kStoreAbove bytes, if it is there
    struct Block {
        void* address;
        uint64_t freed;  // when, counted in releases
    };
    std::map<size_t, std::vector<Block>> blocks;  // of each size, the last freed one at the end
    size_t bytes = 0;
    uint64_t releases = 0;

    // Blocks above kSmallLimit that were taken from here and not given back, and the largest such number of late: since
    // eight times that many bytes were given back, and in the period before. Small ones often come and go beside large
    // ones.
    size_t in_use = 0, high = 0, high_before = 0, given_back = 0;

    void count_taken(size_t size) {
        in_use += size;
        high = std::max(high, in_use);
    }
    void count_given_back(size_t size) {
        in_use -= std::min(in_use, size);
        given_back += size;
        if (given_back / 8 <= high) return;
        high_before = std::exchange(high, in_use);
        given_back = 0;
    }
    void forget_high() {
        high = high_before = in_use;
        given_back = 0;
    }
    // Free bytes that were in use together a short while ago. The next iterations of a loop take again the blocks that
    // the collector has found in one go; pages that were returned to the system meanwhile would have to be cleared
    // anew.
    size_t swing() const {
        static const size_t physical = static_cast<size_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) *
                                       static_cast<size_t>(std::max(sysconf(_SC_PAGESIZE), 0L));
        static const size_t most = std::max(kSwingLeast, physical / kSwingShare);
        return std::min(std::max(high, high_before) - in_use, most);
    }

    // Keeps a free block; false where there is no memory to note it.
    bool keep(void* block, size_t size) {
        const auto list = blocks.lower_bound(size);
        const bool is_new = list == blocks.end() || list->first != size;
        try {
            if (is_new)
                blocks.emplace_hint(list, size, std::vector<Block>{{block, releases + 1}});
            else
                list->second.push_back({block, releases + 1});
        } catch (const std::bad_alloc&) {
            return false;
        }
        ++releases;
        bytes += size;
        return true;
    }
    // Takes out the block of `least` bytes or more that has waited longest; {nullptr, 0} without one.
    std::pair<void*, size_t> take_oldest(size_t least) {
        auto oldest = blocks.end();
        for (auto it = blocks.lower_bound(least); it != blocks.end(); ++it)
            if (oldest == blocks.end() || it->second.front().freed < oldest->second.front().freed) oldest = it;
        if (oldest == blocks.end()) return {nullptr, 0};
        const std::pair<void*, size_t> taken{oldest->second.front().address, oldest->first};
        oldest->second.erase(oldest->second.begin());
        bytes -= oldest->first;
        if (oldest->second.empty()) blocks.erase(oldest);
        return taken;
    }
    void count() { ledger().cached.store(static_cast<int64_t>(bytes + store.kept()), std::memory_order_relaxed); }
};
LargeCache& large_cache() {
    static auto* cache = new LargeCache;  // never destroyed: tensors may be released after static destructors
    return *cache;
}

// Frees a block that a thread had kept.
void give_away(void* block, size_t size) {
    if (size <= kSmallLimit) return std::free(block);
    LargeCache& cache = large_cache();
    std::lock_guard lock(cache.mutex);
    cache.in_use -= std::min(cache.in_use, size);
    if (!cache.store.owns(block)) return std::free(block);
    cache.store.give_back(block, size);
    cache.count();
}

std::function<bool()>& pressure_handler() {
    static auto* handler = new std::function<bool()>;
    return *handler;
}

// The memory of one thread: its account and its free blocks that are not large.
struct Own {
    struct Link {
        Link* next;
    };
    // Tensors may outlive the thread's variables.
    enum class State : uint8_t { fresh, open, closed };
    std::array<Link*, kOwnClasses> head{};
    std::array<uint32_t, kOwnClasses> count{};
    size_t middle_bytes = 0;  // bytes in free blocks that are not small
    Account account;
    State state = State::fresh;

    void open() {
        if (state == State::closed) return;
        struct Closer {
            Own* own;
            ~Closer() { own->close(); }
        };
        thread_local Closer closer{this};
        state = State::open;
        Ledger& all = ledger();
        std::lock_guard lock(all.mutex);
        all.add(account);
    }
    void close() {
        clear();
        state = State::closed;
        Ledger& all = ledger();
        std::lock_guard lock(all.mutex);
        all.remove(account);
        all.left_balance += account.balance.load();
        all.left_allocations += account.allocations.load();
    }
    void clear() {
        for (size_t size = 64; size <= kOwnLimit; size = class_size(size + 1)) {
            Link*& list = head[class_index(size)];
            while (list) give_away(std::exchange(list, list->next), size);
        }
        count.fill(0);
        middle_bytes = 0;
    }

    void* take(size_t size) { return take_class(class_index(size), size); }
    bool give(void* block, size_t size) { return give_class(class_index(size), block, size); }

    void* take_class(size_t c, size_t size) {
        if (!head[c]) return nullptr;
        --count[c];
        if (size > kSmallLimit) middle_bytes -= size;
        return std::exchange(head[c], head[c]->next);
    }
    // Keeps a free block of class c; false when there are enough.
    bool give_class(size_t c, void* block, size_t size) {
        // About a megabyte per class: blocks that the Lua collector frees in one step are taken again before the next.
        constexpr size_t kEnough = 1u << 20;
        if (state != State::open || (count[c] * size >= kEnough && count[c] >= 16)) return false;
        if (size > kSmallLimit) {
            if (middle_bytes + size > kOwnMiddle) return false;
            middle_bytes += size;
        }
        head[c] = new (block) Link{head[c]};
        ++count[c];
        return true;
    }
};
// No construction or destruction: an access does not check whether the thread has it yet.
constinit thread_local Own own_memory;

Own& own() {
    Own& mine = own_memory;
    if (mine.state != Own::State::open) [[unlikely]]
        mine.open();
    return mine;
}

void note_allocation(Own& own, int64_t size) {
    if (own.state == Own::State::closed) [[unlikely]] {
        ledger().left_balance += size;
        ++ledger().left_allocations;
        return;
    }
    Account& a = own.account;
    const int64_t balance = a.balance.load(std::memory_order_relaxed) + size;
    a.balance.store(balance, std::memory_order_relaxed);
    a.allocations.store(a.allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (balance > a.unseen.load(std::memory_order_relaxed)) [[unlikely]] {
        std::lock_guard lock(ledger().mutex);
        ledger().look(&a);
    }
}

void note_release(Own& own, int64_t size) {
    if (own.state == Own::State::closed) [[unlikely]] {
        ledger().left_balance -= size;
        return;
    }
    Account& a = own.account;
    a.balance.store(a.balance.load(std::memory_order_relaxed) - size, std::memory_order_relaxed);
}

thread_local uint64_t allocated_here = 0;

size_t read_number(const char* path) {
    std::FILE* file = std::fopen(path, "r");
    if (!file) return SIZE_MAX;
    unsigned long long value = 0;
    bool ok = std::fscanf(file, "%llu", &value) == 1;
    std::fclose(file);
    return ok ? static_cast<size_t>(value) : SIZE_MAX;
}

// Bytes that the system can give before it kills a process: MemAvailable, and the limit of the control group if there
// is one.
size_t available_bytes() {
    size_t available = SIZE_MAX;
    if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
        char line[128];
        unsigned long long kib = 0;
        while (std::fgets(line, sizeof line, file))
            if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1) available = static_cast<size_t>(kib) << 10;
        std::fclose(file);
    }
    size_t limit = read_number("/sys/fs/cgroup/memory.max"), used = read_number("/sys/fs/cgroup/memory.current");
    if (limit != SIZE_MAX && used != SIZE_MAX) available = std::min(available, limit > used ? limit - used : 0);
    return available;
}

// A block of the store, preferably with pages that are there already, also those of blocks of other sizes.
void* take_stored(size_t size) {
    LargeCache& cache = large_cache();
    std::lock_guard lock(cache.mutex);
    void* block = cache.store.take(size);
    while (!block) {
        const auto [waiting, bytes] = cache.take_oldest(kStoreAbove + 1);
        if (!waiting) break;
        cache.store.give_back(waiting, bytes);
        block = cache.store.take(size);
    }
    cache.count();
    return block;
}

void* system_allocate(size_t size) {
    const bool stored = size > kStoreAbove && large_cache().store.is_there();
    if (stored)
        if (void* block = take_stored(size)) return block;
    if (size >= kCheckedSize) {
        size_t available = available_bytes();
        if (available != SIZE_MAX && size + kReserve > available) return nullptr;
    }
    if (!stored) {
        if (!address_space_has(size + kAddressesLeft)) return nullptr;
        // Unlike aligned_alloc, of any size.
        void* block = nullptr;
        return posix_memalign(&block, kAlignment, size) == 0 ? block : nullptr;
    }
    LargeCache& cache = large_cache();
    std::lock_guard lock(cache.mutex);
    return cache.store.take_fresh(size);
}

// Returns to the system the blocks that have waited longest: blocks of a size in use now are needed again at once.
void drop_large(size_t down_to) {
    LargeCache& cache = large_cache();
    std::lock_guard lock(cache.mutex);
    cache.store.drop(down_to - std::min(down_to, cache.bytes));
    while (cache.bytes > down_to) {
        const auto [block, bytes] = cache.take_oldest(0);
        if (cache.store.owns(block))
            cache.store.give_back(block, bytes);
        else
            std::free(block);
    }
    cache.store.drop(down_to - std::min(down_to, cache.bytes));
    cache.count();
}

void* take_large(size_t size) {
    LargeCache& cache = large_cache();
    std::lock_guard lock(cache.mutex);
    cache.count_taken(size);
    auto found = cache.blocks.find(size);
    if (found == cache.blocks.end()) return nullptr;
    void* block = found->second.back().address;
    found->second.pop_back();
    if (found->second.empty()) cache.blocks.erase(found);
    cache.bytes -= size;
    cache.count();
    return block;
}

void* allocate_slowly(size_t size, size_t asked) {
    if (void* block = system_allocate(size)) return block;
    own().clear();
    drop_large(0);
    if (void* block = system_allocate(size)) return block;
    if (relieve_memory_pressure()) {
        drop_large(0);
        if (void* block = system_allocate(size)) return block;
    }
    if (!kMemoryIsWatched && size > kSmallLimit) {
        std::lock_guard lock(large_cache().mutex);
        large_cache().in_use -= size;
        large_cache().forget_high();
    }
    throw memory_error("memory", str("not enough memory for a block of ", asked, " bytes: ", memory_stats().live_bytes,
                                     " bytes are in use by tensors"))
        .hint("use smaller batches or a narrower dtype, and drop tensors that are no longer needed");
}

}  // namespace

void* allocate(size_t bytes) {
    if (!kMemoryIsWatched && bytes <= kTiny) [[likely]] {
        Own& mine = own();
        const size_t c = tiny_class(bytes), size = (c + 1) * 64;
        if (void* block = mine.take_class(c, size)) [[likely]] {
            note_allocation(mine, static_cast<int64_t>(size));
            allocated_here += size;
            return block;
        }
    }
    if (void* block = UnfilledMemory::piece_for(bytes)) return block;
    if (bytes > (size_t{1} << 62)) throw memory_error("memory", str("a block of ", bytes, " bytes is too large"));
    size_t size = class_size(bytes);
    void* block = nullptr;
    Own& mine = own();
    if constexpr (!kMemoryIsWatched) {
        if (size <= kOwnLimit) block = mine.take(size);
        if (!block && size > kSmallLimit) block = take_large(size);
    }
    if (!block) block = allocate_slowly(kMemoryIsWatched ? std::max<size_t>(bytes, 1) : size, bytes);
    note_allocation(mine, static_cast<int64_t>(size));
    allocated_here += size;
    return block;
}

void release(void* block, size_t bytes) noexcept {
    Own& mine = own();
    if (!kMemoryIsWatched && bytes <= kTiny) [[likely]] {
        const size_t c = tiny_class(bytes), size = (c + 1) * 64;
        note_release(mine, static_cast<int64_t>(size));
        if (!mine.give_class(c, block, size)) std::free(block);
        return;
    }
    if (UnfilledMemory::owns(block)) return;
    size_t size = class_size(bytes);
    note_release(mine, static_cast<int64_t>(size));
    if constexpr (kMemoryIsWatched) return std::free(block);
    if (size <= kOwnLimit && mine.give(block, size)) return;
    if (size <= kSmallLimit) return std::free(block);
    // While many bytes are live (training), proportionally more may wait for reuse.
    size_t limit = kCacheLimit;
    const bool many = ledger().cached.load(std::memory_order_relaxed) + static_cast<int64_t>(size) >
                      static_cast<int64_t>(kCacheLimit);
    if (many) limit = std::max(limit, static_cast<size_t>(std::max<int64_t>(memory_stats().live_bytes, 0)));
    LargeCache& cache = large_cache();
    bool full;
    {
        std::lock_guard lock(cache.mutex);
        cache.count_given_back(size);
        if (many) limit = std::max(limit, cache.swing());
        if (size > limit || !cache.keep(block, size)) {
            if (!cache.store.owns(block)) return std::free(block);
            cache.store.give_back(block, size);
        }
        cache.count();
        full = cache.bytes + cache.store.kept() > limit;
    }
    if (full) drop_large(limit);
}

void use_huge_pages(void* block, size_t bytes, bool keeps_content) noexcept {
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<uintptr_t>(block);
    const uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
    if (end < begin + kHugePage) return;
    auto* const first = reinterpret_cast<void*>(begin);
    if (madvise(first, end - begin, MADV_HUGEPAGE) != 0 || keeps_content) return;
    // Pages that are there already stay small: once they are dropped, the next access brings large ones.
    madvise(first, end - begin, MADV_DONTNEED);
}

MemoryStats memory_stats() {
    Ledger& all = ledger();
    Own& here = own();
    Account* mine = here.state == Own::State::closed ? nullptr : &here.account;
    std::lock_guard lock(all.mutex);
    const int64_t live = all.look(mine);
    int64_t allocations = all.left_allocations;
    for (const Account* a = all.first; a; a = a->next) allocations += a->allocations.load(std::memory_order_relaxed);
    return {live, all.peak, all.cached, allocations};
}

void reset_peak_memory() {
    Ledger& all = ledger();
    std::lock_guard lock(all.mutex);
    all.peak = all.live();
    for (Account* a = all.first; a; a = a->next) a->unseen.store(INT64_MIN, std::memory_order_relaxed);
}

void empty_memory_cache() {
    trim_memory_cache();
    own().clear();
    drop_large(0);
}

void trim_memory_cache() {
    {
        LargeCache& cache = large_cache();
        std::lock_guard lock(cache.mutex);
        cache.forget_high();
    }
    drop_large(std::max(kCacheLimit, static_cast<size_t>(std::max<int64_t>(memory_stats().live_bytes, 0))));
}

void set_memory_pressure_handler(std::function<bool()> handler) { pressure_handler() = std::move(handler); }

bool relieve_memory_pressure() { return pressure_handler() && pressure_handler()(); }

uint64_t thread_allocated_bytes() { return allocated_here; }

void count_allocation(size_t bytes) { allocated_here += bytes; }

}  // namespace lunaria
