#include "core/parallel/message_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/interrupt.h"

namespace lunaria::parallel {

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kBetweenLooks = 20 * kMillisecond;
// What a lost rank has sent before may still be on its way for so long.
constexpr uint64_t kOnTheWay = 100 * kMillisecond;

// Whether nothing more can be on its way from a rank that is lost.
bool is_final(const std::string& loss, Waiting& waiting) {
    if (loss.empty()) return false;
    const uint64_t now = nanoseconds_now();
    if (waiting.first_loss == 0) waiting.first_loss = now;
    return now - waiting.first_loss >= kOnTheWay;
}

std::string waits(const Witness& own, int other) {
    return str("rank ", own.rank, " waits for rank ", other, " in ", own.text());
}

}  // namespace

Witness Witness::of(const RankLog& log, const Mark& mark, int rank) {
    Witness w;
    w.mark = mark;
    w.rank = rank;
    if (mark.chunk < RankLog::kNames) std::memcpy(w.chunk, log.names[mark.chunk], sizeof chunk);
    if (mark.parameter < RankLog::kNames) std::memcpy(w.parameter, log.names[mark.parameter], sizeof parameter);
    return w;
}

std::string Witness::text() const {
    const auto log = std::make_unique<RankLog>();
    Mark named = mark;
    auto name = [&](uint16_t number, const char* from) {
        if (*from == 0) return uint16_t{0};
        std::memcpy(log->names[number], from, RankLog::kNameSize - 1);
        return number;
    };
    named.chunk = name(1, chunk);
    named.parameter = name(2, parameter);
    return describe(*log, named);
}

std::string Transport::host() const {
    char name[64] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

MessageWatch::MessageWatch(Transport& transport, std::string job)
    : transport_(transport), job_(std::move(job)), peers_(static_cast<size_t>(transport.ranks())) {
    Origin& own = peers_[static_cast<size_t>(transport_.rank())].origin;
    own.pid = getpid();
    transport_.host().copy(own.host, sizeof own.host - 1);
}

// In round k a rank gives the one 2^k places before it what it knows so far: its own and those of the ranks that
// follow.
void MessageWatch::meet() {
    const int n = transport_.ranks(), me = transport_.rank();
    std::vector<Origin> known(static_cast<size_t>(n));  // of the ranks me, me + 1, ...
    known[0] = peers_[static_cast<size_t>(me)].origin;
    for (int have = 1; have < n; have *= 2) {
        const auto more = static_cast<size_t>(std::min(have, n - have));
        const int to = (me - have + n) % n, from = (me + have) % n;
        const auto sent = transport_.send(to, Lane::requests, 0, known.data(), more * sizeof(Origin));
        const auto got = transport_.receive(from, Lane::requests, 0, known.data() + have, more * sizeof(Origin));
        Waiting waiting;
        for (int round = 0;; ++round) {
            const bool is_sent = sent->is_done(), is_there = got->is_done();
            if (is_sent && is_there) break;
            poll_interrupt();
            const int missing = is_there ? to : from;
            if (const std::string why = transport_.loss_of(missing); is_final(why, waiting))
                throw state_error("communication", str("rank ", me, " meets the others; but rank ", missing, " ", why));
            transport_.wait(round);
        }
    }
    for (int i = 0; i < n; ++i) peers_[static_cast<size_t>((me + i) % n)].origin = known[static_cast<size_t>(i)];
}

bool MessageWatch::share_host(int a, int b) const {
    return std::strcmp(peers_[static_cast<size_t>(a)].origin.host, peers_[static_cast<size_t>(b)].origin.host) == 0;
}

void MessageWatch::heard(const Witness& witness) {
    if (witness.rank < 0 || witness.rank >= transport_.ranks()) return;
    const std::lock_guard lock(mutex_);
    peers_[static_cast<size_t>(witness.rank)].last = witness;
}

// The record of a rank of this host; null: there is none.
const RankLog* MessageWatch::record_of(int rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const Origin& own = peers_[static_cast<size_t>(transport_.rank())].origin;
    if (job_.empty() || std::strcmp(peer.origin.host, own.host) != 0) return nullptr;
    if (!peer.record) {
        peer.record = find_record(job_, rank);
        // One of that name may be left from before, or belong to a container whose host has the same name.
        if (peer.record && peer.record->log().pid.load() != peer.origin.pid) peer.record.reset();
    }
    return peer.record ? &peer.record->log() : nullptr;
}

// "rank 2 (process 812) was killed by signal 9 (Killed) in ...", as much as can be known.
std::string MessageWatch::description_of(int rank, const std::string& loss) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const RankLog* record = record_of(rank);
    if (record && peer.partner.is_dead(*record)) return str("rank ", rank, " ", end_of(*record));
    return str("rank ", rank, " (process ", peer.origin.pid, " of ", peer.origin.host, ") ", loss,
               peer.last.rank < 0 ? "" : str("; the last that was heard of it is ", peer.last.text()));
}

void MessageWatch::look_after(int other, const Witness& own, Waiting& waiting) {
    const std::lock_guard lock(mutex_);
    const uint64_t now = nanoseconds_now();
    const std::string_view name = name_of(own.mark.operation);
    if (const std::string why = transport_.loss_of(other); !why.empty()) {
        if (!is_final(why, waiting)) return;
        // A rank that had the time to say why has said enough.
        if (why.starts_with("has left") || why.starts_with("failed"))
            throw state_error(name, str(waits(own, other), "; but rank ", other, " ", why));
        throw state_error(name, str(description_of(other, why), "; ", waits(own, other)))
            .hint("the log of that rank says more, if it could write anything");
    }
    if (now - waiting.last_look < kBetweenLooks) return;
    waiting.last_look = now;
    // A rank that has died may leave its connection open: a process that it has started can have it.
    const RankLog* record = record_of(other);
    if (record && record->state.load() == RankState::running &&
        peers_[static_cast<size_t>(other)].partner.is_dead(*record)) {
        if (!is_final("died", waiting)) return;
        throw state_error(name, str("rank ", other, " ", end_of(*record), "; ", waits(own, other)))
            .hint("the log of that rank says more, if it could write anything");
    }
    impatience_.look(name, now - waiting.since, waits(own, other),
                     record ? str("which goes on ", last_request(*record)) : "of which nothing has come");
}

std::string MessageWatch::casualty() {
    const std::lock_guard lock(mutex_);
    for (int other = 0; other < transport_.ranks(); ++other) {
        if (other == transport_.rank()) continue;
        const RankLog* record = record_of(other);
        if (!record) continue;
        const bool has_failed = record->state.load(std::memory_order_acquire) == RankState::failed;
        if (has_failed && failure_in(*record) != kEndedBySignal)
            return str("rank ", other, " failed: ", failure_in(*record));
        if (record->state.load() == RankState::running && peers_[static_cast<size_t>(other)].partner.is_dead(*record))
            return str("rank ", other, " ", end_of(*record));
    }
    return "";
}

}  // namespace lunaria::parallel
