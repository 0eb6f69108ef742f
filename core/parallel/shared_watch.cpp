#include "core/parallel/shared_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/base/warning.h"

namespace lunaria::parallel {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kBetweenLooks = 20 * kMillisecond;
// A circle of waiting ranks in which nothing has moved for so long.
constexpr uint64_t kCircle = 600 * kMillisecond;
constexpr uint64_t kBeforeWarning = 10'000 * kMillisecond;
// The time that the launcher gets to say how a process ended.
constexpr int kMillisecondsForLauncher = 300;

std::atomic<double>& patience_in_use() {
    static std::atomic<double> seconds = [] {
        const char* given = std::getenv("LUNARIA_COMMUNICATION_TIMEOUT");
        char* end = nullptr;
        const double number = given ? std::strtod(given, &end) : 0;
        return given && end != given && number >= 0 && std::isfinite(number) ? number : 600.0;
    }();
    return seconds;
}

std::string text_in(const char* begin, size_t size) { return {begin, strnlen(begin, size)}; }

}  // namespace

double patience() { return patience_in_use(); }
void set_patience(double seconds) { patience_in_use() = seconds; }

SharedWatch::SharedWatch(Arena& arena, int rank)
    : arena_(arena), rank_(rank), peers_(static_cast<size_t>(arena.ranks())) {}

SharedWatch::~SharedWatch() {
    for (const Peer& peer : peers_)
        if (peer.process >= 0) close(peer.process);
}

std::string SharedWatch::waiting(int other, const Mark& mark) const {
    return str("rank ", rank_, " waits for rank ", other, " in ", describe(arena_.log(rank_), mark));
}

std::string SharedWatch::last_request(const RankLog& record) const {
    const uint64_t written = record.written.load();
    if (written == 0) return "before its first request";
    const RankLog::Entry& last = record.ring[(written - 1) % RankLog::kEntries];
    return str(last.end.load() == 0 ? "in " : "after ", describe(record, last.mark));
}

bool SharedWatch::is_dead(int other, const RankLog& record) {
    if (record.pid.load() == 0) return false;  // a thread, or not there yet
    Peer& peer = peers_[static_cast<size_t>(other)];
    if (peer.process < 0) {
        peer.process = static_cast<int>(syscall(SYS_pidfd_open, record.pid.load(), 0));
        if (peer.process < 0 || !is_alive(record)) return !is_alive(record);
    }
    pollfd ended{peer.process, POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
}

void SharedWatch::tell_of_death(int other, const RankLog& record, const Mark& mark) const {
    for (int i = 0; i < kMillisecondsForLauncher && record.has_ended.load() == 0; ++i) usleep(1000);
    const std::string how = record.has_ended.load() != 0 ? describe_wait_status(record.wait_status.load()) : "died";
    throw state_error(name_of(mark.operation), str("rank ", other, " (process ", record.pid.load(), ") ", how, " ",
                                                   last_request(record), "; ", waiting(other, mark)))
        .hint("the log of that rank says more, if it could write anything");
}

void SharedWatch::look_after(int other, const Mark& mark, uint64_t begin) {
    const std::lock_guard lock(mutex_);
    const uint64_t now = nanoseconds_now();
    Peer& peer = peers_[static_cast<size_t>(other)];
    if (now - peer.last_look < kBetweenLooks) return;
    peer.last_look = now;
    const RankLog& record = arena_.log(other);
    const RankState state = record.state.load(std::memory_order_acquire);
    if (state == RankState::failed)
        throw state_error(name_of(mark.operation), str(waiting(other, mark), "; but rank ", other,
                                                       " failed: ", text_in(record.failure, sizeof record.failure)));
    if (state == RankState::left)
        throw state_error(name_of(mark.operation),
                          str(waiting(other, mark), "; but rank ", other, " has ended ", last_request(record)))
            .hint("all ranks make the same requests: do their data have the same number of batches?");
    if (is_dead(other, record)) tell_of_death(other, record, mark);
    look_for_circle(mark);
    const uint64_t waited = now - begin;
    const std::string_view there = state == RankState::absent ? "which has not come yet" : "which goes on";
    if (patience() > 0 && static_cast<double>(waited) > patience() * 1e9)
        throw state_error(name_of(mark.operation), str(waiting(other, mark), " for more than ", patience(), " s, ",
                                                       there, " ", last_request(record)))
            .hint("ms.communication.set_timeout allows more");
    if (waited > kBeforeWarning && !has_warned_) {
        has_warned_ = true;
        warn(str("rank ", rank_), str(waiting(other, mark), " for 10 s, ", there, " ", last_request(record)),
             "an error comes after the time that ms.communication.set_timeout sets");
    }
}

// Each rank waits for one other: where that leads back to this rank, and nothing has moved meanwhile, it never ends.
void SharedWatch::look_for_circle(const Mark& mark) {
    uint64_t sign = 0;
    std::string path;
    int at = rank_;
    for (int i = 0; i < arena_.ranks(); ++i) {
        const uint64_t own = arena_.waits_in_vain(at);
        if (own == 0) break;
        sign = sign * 0x9e3779b97f4a7c15u + own;
        const int next = arena_.bell(at).waits_for.load() - 1;
        if (next < 0) break;
        path += str(at == rank_ ? "" : ", ", "rank ", at, " waits for rank ", next, " ", last_request(arena_.log(at)));
        if (next == rank_) {
            if (sign != circle_) {
                circle_ = sign;
                circle_since_ = nanoseconds_now();
            } else if (nanoseconds_now() - circle_since_ > kCircle) {
                throw state_error(name_of(mark.operation), str("ranks wait for one another: ", path))
                    .hint(
                        "all ranks make their requests in the same order; sends and receives that cross go together "
                        "(batch_isend_irecv)");
            }
            return;
        }
        at = next;
    }
    circle_ = 0;
}

}  // namespace lunaria::parallel
