#include "core/parallel/arena.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr size_t kPage = 4096;
// Room for the seats of many groups: a mesh of k axes has 2^k groups for each rank.
constexpr size_t kSeatsForRank = 64;

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

struct Arena::Head {
    struct Entry {
        std::atomic<uint64_t> key;    // 0: free
        std::atomic<uint32_t> first;  // 1 + the number of its first seat; 0: not known yet
        uint32_t members;
    };
    std::atomic<uint32_t> seats_used;
    Entry groups[kGroups];
};

struct Arena::Offsets {
    size_t bells, logs, channels, seats, end;
};

Arena::Offsets Arena::offsets() const {
    const auto n = static_cast<size_t>(ranks_);
    Offsets o{};
    o.bells = pages(sizeof(Head));
    o.logs = o.bells + pages(n * sizeof(Bell));
    o.channels = o.logs + n * pages(sizeof(RankLog));
    o.seats = o.channels + n * n * sizeof(Channel);
    o.end = o.seats + n * kSeatsForRank * sizeof(Seat);
    return o;
}

Arena::Arena(int ranks) : ranks_(ranks), size_(offsets().end) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw memory_error("communication", str("no room for ", size_ >> 20, " MB of addresses, which ", ranks,
                                                " ranks share: ", std::strerror(errno)));
    memory_ = static_cast<unsigned char*>(memory);
}

Arena::~Arena() { munmap(memory_, size_); }

Arena::Head& Arena::head() const { return *reinterpret_cast<Head*>(memory_); }

Bell& Arena::bell(int rank) const { return reinterpret_cast<Bell*>(memory_ + offsets().bells)[rank]; }

RankLog& Arena::log(int rank) const {
    return *reinterpret_cast<RankLog*>(memory_ + offsets().logs + static_cast<size_t>(rank) * pages(sizeof(RankLog)));
}

Channel& Arena::channel(int from, int to) const {
    return reinterpret_cast<Channel*>(memory_ + offsets().channels)[from * ranks_ + to];
}

Seat* Arena::seats(uint64_t key, int members) const {
    Head& head = this->head();
    for (size_t probe = 0; probe < kGroups; ++probe) {
        Head::Entry& entry = head.groups[(key + probe) % kGroups];
        uint64_t found = 0;
        if (entry.key.compare_exchange_strong(found, key)) {
            const auto n = static_cast<uint32_t>(members);
            const uint32_t first = head.seats_used.fetch_add(n);
            if (first + n > kSeatsForRank * static_cast<size_t>(ranks_)) {
                head.seats_used.fetch_sub(n);
                entry.first.store(UINT32_MAX);
            } else {
                entry.members = n;
                entry.first.store(first + 1);
            }
        } else if (found != key) {
            continue;
        }
        // The member that took the entry sets this next; should it die just now, the others give up.
        uint32_t first = entry.first.load();
        for (int i = 0; first == 0 && i < 2000; ++i) {
            usleep(1000);
            first = entry.first.load();
        }
        if (first == 0) throw state_error("communication", "a rank died while it made a group");
        if (first == UINT32_MAX) break;
        return reinterpret_cast<Seat*>(memory_ + offsets().seats) + (first - 1);
    }
    throw state_error("communication", str("too many groups of ranks: there is room for ", kGroups, " groups with ",
                                           kSeatsForRank, " members per rank in all"));
}

void sleep_on(const std::atomic<uint32_t>& word, uint32_t value, int milliseconds) {
    const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
    syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake(const std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

void ring(Bell& bell) {
    bell.news.fetch_add(1);
    if (bell.sleepers.load() > 0) wake(bell.news);
}

}  // namespace lunaria::parallel
