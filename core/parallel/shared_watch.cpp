#include "core/parallel/shared_watch.h"

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kBetweenLooks = 20 * kMillisecond;
// A circle of waiting ranks in which nothing has moved for so long.
constexpr uint64_t kCircle = 600 * kMillisecond;

}  // namespace

SharedWatch::SharedWatch(Arena& arena, int rank)
    : arena_(arena), rank_(rank), peers_(static_cast<size_t>(arena.ranks())) {}

std::string SharedWatch::waiting(int other, const Mark& mark) const {
    return str("rank ", rank_, " waits for rank ", other, " in ", describe(arena_.log(rank_), mark));
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
        throw state_error(name_of(mark.operation),
                          str(waiting(other, mark), "; but rank ", other, " failed: ", failure_in(record)));
    if (state == RankState::left)
        throw state_error(name_of(mark.operation),
                          str(waiting(other, mark), "; but rank ", other, " has ended ", last_request(record)))
            .hint("all ranks make the same requests: do their data have the same number of batches?");
    if (peer.partner.is_dead(record))
        throw state_error(name_of(mark.operation), str("rank ", other, " ", end_of(record), "; ", waiting(other, mark)))
            .hint("the log of that rank says more, if it could write anything");
    look_for_circle(mark);
    const std::string_view there = state == RankState::absent ? "which has not come yet" : "which goes on";
    impatience_.look(name_of(mark.operation), now - begin, waiting(other, mark), str(there, " ", last_request(record)));
}

std::string SharedWatch::casualty() {
    const std::lock_guard lock(mutex_);
    for (int other = 0; other < arena_.ranks(); ++other) {
        if (other == rank_) continue;
        const RankLog& record = arena_.log(other);
        const RankState state = record.state.load(std::memory_order_acquire);
        if (state == RankState::failed) return str("rank ", other, " failed: ", failure_in(record));
        if (state == RankState::running && peers_[static_cast<size_t>(other)].partner.is_dead(record))
            return str("rank ", other, " ", end_of(record));
    }
    return "";
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
