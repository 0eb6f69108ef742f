#include "core/memory.h"

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
#include <utility>
#include <vector>

#include "core/error.h"

namespace lunaria {

namespace {

// Size classes: multiples of 64 up to 1 KiB, then four steps per power of two and, for large blocks, sixteen, so that
// at most a fifth (a seventeenth) is wasted.
constexpr size_t kSmallLimit = 32 * 1024;
constexpr size_t kCacheLimit = 48u << 20;   // free large blocks kept at most while few bytes are live
constexpr size_t kCheckedSize = 16u << 20;  // larger requests are held against what the system has left
constexpr size_t kReserve = 64u << 20;      // never taken: the system and the program itself need it

size_t class_size(size_t bytes) {
    if (bytes <= 1024) return std::max<size_t>((bytes + 63) & ~size_t{63}, 64);
    size_t step = std::bit_floor(bytes - 1) / (bytes <= kSmallLimit ? 4 : 16);
    return (bytes + step - 1) / step * step;
}

int small_class(size_t size) {  // of a class size up to kSmallLimit
    if (size <= 1024) return static_cast<int>(size / 64) - 1;
    size_t base = std::bit_floor(size - 1);
    return 16 + (std::countr_zero(base) - 10) * 4 + static_cast<int>((size - base) / (base / 4)) - 1;
}
constexpr int kSmallClasses = 16 + 5 * 4;

struct Counters {
    std::atomic<int64_t> live{0}, peak{0}, cached{0}, allocations{0};
};
Counters& counters() {
    static Counters c;
    return c;
}

// Free large blocks by size, shared by all threads.
struct LargeCache {
    std::mutex mutex;
    struct Block {
        void* address;
        uint64_t freed;  // when, counted in releases
    };
    std::map<size_t, std::vector<Block>> blocks;  // of each size the last one freed stands last
    size_t bytes = 0;
    uint64_t releases = 0;
};
LargeCache& large_cache() {
    static auto* cache = new LargeCache;  // never destroyed: tensors may be released after static destructors
    return *cache;
}

std::function<bool()>& pressure_handler() {
    static auto* handler = new std::function<bool()>;
    return *handler;
}

struct SmallCache {
    struct Link {
        Link* next;
    };
    std::array<Link*, kSmallClasses> head{};
    std::array<int, kSmallClasses> count{};
    bool closed = false;

    ~SmallCache() {
        clear();
        closed = true;
    }
    void clear() {
        for (Link*& list : head)
            while (list) std::free(std::exchange(list, list->next));
        count.fill(0);
    }
};
thread_local SmallCache small_cache;
thread_local uint64_t allocated_here = 0;

size_t read_number(const char* path) {
    std::FILE* file = std::fopen(path, "r");
    if (!file) return SIZE_MAX;
    unsigned long long value = 0;
    bool ok = std::fscanf(file, "%llu", &value) == 1;
    std::fclose(file);
    return ok ? static_cast<size_t>(value) : SIZE_MAX;
}

// Bytes that the system can still give without killing somebody: MemAvailable, and the limit of the control group if
// there is one.
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

void* system_allocate(size_t size) {
    if (size >= kCheckedSize) {
        size_t available = available_bytes();
        if (available != SIZE_MAX && size + kReserve > available) return nullptr;
    }
    return std::aligned_alloc(kAlignment, size);
}

// Gives the blocks back that have waited longest: those of a size that is in use now are needed again at once.
void drop_large(size_t down_to) {
    LargeCache& cache = large_cache();
    std::vector<void*> gone;
    {
        std::lock_guard lock(cache.mutex);
        while (cache.bytes > down_to && !cache.blocks.empty()) {
            auto oldest = cache.blocks.begin();
            for (auto it = cache.blocks.begin(); it != cache.blocks.end(); ++it)
                if (it->second.front().freed < oldest->second.front().freed) oldest = it;
            gone.push_back(oldest->second.front().address);
            oldest->second.erase(oldest->second.begin());
            cache.bytes -= oldest->first;
            counters().cached -= static_cast<int64_t>(oldest->first);
            if (oldest->second.empty()) cache.blocks.erase(oldest);
        }
    }
    for (void* block : gone) std::free(block);
}

void* take_large(size_t size) {
    LargeCache& cache = large_cache();
    std::lock_guard lock(cache.mutex);
    auto found = cache.blocks.find(size);
    if (found == cache.blocks.end()) return nullptr;
    void* block = found->second.back().address;
    found->second.pop_back();
    if (found->second.empty()) cache.blocks.erase(found);
    cache.bytes -= size;
    counters().cached -= static_cast<int64_t>(size);
    return block;
}

void* allocate_slowly(size_t size, size_t asked) {
    if (void* block = system_allocate(size)) return block;
    drop_large(0);
    small_cache.clear();
    if (void* block = system_allocate(size)) return block;
    if (pressure_handler() && pressure_handler()()) {
        drop_large(0);
        if (void* block = system_allocate(size)) return block;
    }
    throw memory_error("memory", str("not enough memory for a block of ", asked, " bytes: ", counters().live.load(),
                                     " bytes are in use by tensors"))
        .hint("use smaller batches or a narrower dtype, and drop tensors that are no longer needed");
}

}  // namespace

void* allocate(size_t bytes) {
    if (bytes > (size_t{1} << 62)) throw memory_error("memory", str("a block of ", bytes, " bytes is too large"));
    size_t size = class_size(bytes);
    void* block = nullptr;
    if (size <= kSmallLimit) {
        auto c = static_cast<size_t>(small_class(size));
        if (SmallCache::Link* link = small_cache.head[c]) {
            small_cache.head[c] = link->next;
            --small_cache.count[c];
            block = link;
        }
    } else {
        block = take_large(size);
    }
    if (!block) block = allocate_slowly(size, bytes);
    Counters& c = counters();
    c.allocations.store(c.allocations.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    int64_t live = c.live.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed) + static_cast<int64_t>(size);
    int64_t peak = c.peak.load(std::memory_order_relaxed);
    while (live > peak && !c.peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
    allocated_here += size;
    return block;
}

void release(void* block, size_t bytes) noexcept {
    size_t size = class_size(bytes);
    counters().live.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
    if (size <= kSmallLimit) {
        auto c = static_cast<size_t>(small_class(size));
        // About a megabyte per class and thread: what the Lua collector frees at one step is taken again before the
        // next.
        if (small_cache.closed || small_cache.count[c] >= static_cast<int>(std::max<size_t>(16, (1u << 20) / size)))
            return std::free(block);
        small_cache.head[c] = new (block) SmallCache::Link{small_cache.head[c]};
        ++small_cache.count[c];
        return;
    }
    // While much is live (training), proportionally more may wait for reuse.
    size_t limit = std::max(kCacheLimit,
                            static_cast<size_t>(std::max<int64_t>(counters().live.load(std::memory_order_relaxed), 0)));
    LargeCache& cache = large_cache();
    if (size > limit) return std::free(block);
    bool full;
    {
        std::lock_guard lock(cache.mutex);
        cache.blocks[size].push_back({block, ++cache.releases});
        cache.bytes += size;
        counters().cached += static_cast<int64_t>(size);
        full = cache.bytes > limit;
    }
    if (full) drop_large(limit);
}

MemoryStats memory_stats() {
    Counters& c = counters();
    return {c.live.load(), c.peak.load(), c.cached.load(), c.allocations.load()};
}

void reset_peak_memory() { counters().peak.store(counters().live.load()); }

void empty_memory_cache() {
    drop_large(0);
    small_cache.clear();
}

void set_memory_pressure_handler(std::function<bool()> handler) { pressure_handler() = std::move(handler); }

uint64_t thread_allocated_bytes() { return allocated_here; }

}  // namespace lunaria
