#include "core/parallel/arena.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/interrupt.h"

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
    std::atomic<uint32_t> seats_used, left, failed;
    std::atomic<uint32_t> joined;  // ranks beside rank 0 that have mapped the memory
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

Arena::Arena(int ranks) : ranks_(ranks), size_(offsets().end) { map(-1); }

Arena::Arena(const std::string& job, int rank, int ranks)
    : ranks_(ranks), size_(offsets().end), job_(job), records_(static_cast<size_t>(ranks)) {
    records_[static_cast<size_t>(rank)] = make_record(job, rank, ranks);
    if (rank > 0) {
        find(job);
        records_[static_cast<size_t>(rank)]->log().job_key = key_;
        return;
    }
    file_ = memfd_create("lunaria", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0)
        throw memory_error("communication", str("no memory that ", ranks, " ranks share: ", std::strerror(errno)));
    map(file_);
    RankLog& own = records_[0]->log();
    key_ = nanoseconds_now() ^ static_cast<uint64_t>(getpid()) << 40;
    own.job_key = key_;
    own.arena = file_ + 1;
}

// Maps the memory that rank 0 has made; waits until it has.
void Arena::find(const std::string& job) {
    constexpr int kMilliseconds = 60'000;
    for (int i = 0; i < kMilliseconds; ++i) {
        const auto first = find_record(job, 0);
        if (first && first->log().arena.load() > 0 && is_alive(first->log())) return map_from(first->log());
        poll_interrupt();
        usleep(1000);
    }
    throw state_error("communication", str("rank 0 of job ", job, " has not come within a minute"))
        .hint("see the log of rank 0");
}

void Arena::map_from(const RankLog& first) {
    if (first.ranks != static_cast<uint32_t>(ranks_))
        throw state_error("communication", str("rank 0 counts ", first.ranks, " ranks, this one ", ranks_));
    const std::string path = str("/proc/", first.pid.load(), "/fd/", first.arena.load() - 1);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0)
        throw state_error("communication",
                          str("the memory of rank 0 (", path, ") cannot be shared: ", std::strerror(errno)))
            .hint("all ranks of a host run as one user, in one container");
    map(file);
    close(file);
    key_ = first.job_key;
    head().joined.fetch_add(1);
}

// The memory of a file; none: memory without one.
void Arena::map(int file) {
    const int kind = file < 0 ? MAP_ANONYMOUS : 0;
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | kind, file, 0);
    if (memory == MAP_FAILED)
        throw memory_error("communication", str("no room for ", size_ >> 20, " MB of addresses, which ", ranks_,
                                                " ranks share: ", std::strerror(errno)));
    memory_ = static_cast<unsigned char*>(memory);
}

Arena::~Arena() {
    if (memory_) munmap(memory_, size_);
    if (file_ >= 0) close(file_);
}

RankLog& Arena::log(int rank) const {
    if (job_.empty())
        return *reinterpret_cast<RankLog*>(memory_ + offsets().logs +
                                           static_cast<size_t>(rank) * pages(sizeof(RankLog)));
    static RankLog absent{};
    const std::lock_guard lock(mutex_);
    auto& record = records_[static_cast<size_t>(rank)];
    // A file that an earlier job of the same name has left is none.
    if (!record) {
        auto found = find_record(job_, rank);
        if (found && found->log().job_key.load() == key_) record = std::move(found);
    }
    return record ? record->log() : absent;
}

void Arena::leave(bool has_failed) const {
    if (job_.empty()) return;
    if (has_failed)
        head().failed = 1;
    else
        wait_for_others();
    if (head().left.fetch_add(1) + 1 < static_cast<uint32_t>(ranks_) || head().failed.load()) return;
    for (int rank = 0; rank < ranks_; ++rank) unlink(record_path(job_, rank).c_str());
}

// The memory is found by rank 0's process, which stays until a slower rank has come.
void Arena::wait_for_others() const {
    constexpr int kMilliseconds = 5'000;
    for (int i = 0; file_ >= 0 && i < kMilliseconds; ++i) {
        if (head().joined.load() + 1 >= static_cast<uint32_t>(ranks_)) return;
        usleep(1000);
    }
}

uint64_t Arena::address_of(const Seat& seat) const {
    return static_cast<uint64_t>(reinterpret_cast<const unsigned char*>(&seat) - memory_);
}

uint64_t Arena::waits_in_vain(int rank) const {
    const Bell& bell = this->bell(rank);
    const uint32_t waits = bell.waits.load();
    const int other = bell.waits_for.load() - 1;
    const uint64_t address = bell.seat.load();
    const uint32_t step = bell.step.load();
    const bool sends = bell.sends.load();
    if (other < 0 || other >= ranks_ || waits != bell.waits.load()) return 0;
    uint64_t sign = waits;
    if (address) {
        if (address > size_ - sizeof(Seat)) return 0;
        const uint32_t reached = reinterpret_cast<const Seat*>(memory_ + address)->step.load();
        if (static_cast<int32_t>(reached - step) >= 0) return 0;
        sign = sign * 31 + reached;
    } else {
        const Channel& way = sends ? channel(rank, other) : channel(other, rank);
        const uint32_t filled = way.filled.load(), emptied = way.emptied.load();
        if (sends ? filled - emptied < Channel::kSlots : filled != emptied) return 0;
        sign = (sign * 31 + filled) * 31 + emptied;
    }
    return sign * 2 + 1;
}

Arena::Head& Arena::head() const { return *reinterpret_cast<Head*>(memory_); }

Bell& Arena::bell(int rank) const { return reinterpret_cast<Bell*>(memory_ + offsets().bells)[rank]; }

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
