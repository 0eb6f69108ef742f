#include "core/parallel/shared.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/parallel/combine.h"

namespace lunaria::parallel {

namespace {

constexpr int kSleepMilliseconds = 50;
// Looks at another rank's seat before a rank goes to sleep: some microseconds. Where ranks have to share processors, a
// rank that waits gives its own to the rank that it waits for.
constexpr int kSpins = 200, kSpinsWhereCrowded = 20;
constexpr int kYields = 20;

constexpr int64_t kChunk = kLarge / 2;  // of all_reduce: the other half of a box is for what has been combined
// Wholes up to this size are combined by every rank for itself: one step instead of two.
constexpr int64_t kFlat = int64_t{1} << 15;

bool has_reached(uint32_t step, uint32_t wanted) { return static_cast<int32_t>(step - wanted) >= 0; }

}  // namespace

// One request on its way through the steps of a group.
class SharedCommunicator::Steps {
  public:
    Steps(SharedCommunicator& owner, Area& area, const Request& request, const Mark& mark)
        : owner_(owner),
          area_(area),
          request_(request),
          mark_(mark),
          fingerprint_(mark.fingerprint()),
          n_(request.group->size()),
          me_(request.group->rank()),
          width_(static_cast<int64_t>(size_of(request.dtype))),
          in_(static_cast<const unsigned char*>(request.in)),
          out_(static_cast<unsigned char*>(request.out)) {}

    void run() {
        if (request_.is_elsewhere) {
            next(0);
            return meet();
        }
        switch (request_.operation) {
            case Collective::barrier:
                next(0);
                return meet();
            case Collective::all_reduce:
                return request_.count * width_ * n_ <= 2 * kFlat ? combine_flat() : combine_all();
            case Collective::reduce:
                return combine_at_root();
            case Collective::reduce_scatter:
                return combine_pieces();
            case Collective::all_gather:
            case Collective::gather:
                return gather();
            case Collective::scatter:
                return scatter();
            case Collective::broadcast:
                return broadcast();
            case Collective::all_to_all:
                return exchange();
            case Collective::all_to_all_v:
                return exchange_uneven();
            case Collective::send:
            case Collective::recv:
                break;
        }
    }

  private:
    // Begins a step, in which no rank's box gets more than `bytes`.
    void next(int64_t bytes) {
        ++area_.step;
        parity_ = area_.step & 1;
        size_ = bytes <= static_cast<int64_t>(kTiny) ? 0 : bytes <= static_cast<int64_t>(kSmall) ? 1 : 2;
        if (!is_first_) return;
        Seat& seat = area_.seats[me_];
        seat.fingerprint[parity_].store(fingerprint_, std::memory_order_relaxed);
        seat.marks[parity_] = mark_;
    }

    unsigned char* box(int place) {
        Seat& seat = area_.seats[place];
        return size_ == 0 ? seat.tiny[parity_] : size_ == 1 ? seat.small[parity_] : seat.large[parity_];
    }
    unsigned char* own_box() { return box(me_); }

    void meet() {
        Seat& own = area_.seats[me_];
        own.step.store(area_.step);
        if (own.waiters.load() > 0) wake(own.step);
        for (int i = 1; i < n_; ++i) {
            const int place = me_ + i < n_ ? me_ + i : me_ + i - n_;
            await(area_.seats[place], place);
            if (is_first_ && area_.seats[place].fingerprint[parity_].load(std::memory_order_relaxed) != fingerprint_)
                disagree(place);
        }
        is_first_ = false;
    }

    void await(Seat& seat, int place) {
        for (int i = 0; i < owner_.spins_; ++i) {
            if (has_reached(seat.step.load(std::memory_order_acquire), area_.step)) return;
            _mm_pause();
        }
        for (int i = 0; i < kYields; ++i) {
            sched_yield();
            if (has_reached(seat.step.load(std::memory_order_acquire), area_.step)) return;
        }
        sleep_until_reached(seat, request_.group->world_rank(place));
    }

    void sleep_until_reached(Seat& seat, int other) {
        struct Sleeper {
            Sleeper(SharedCommunicator& owner, Seat& seat, int other, uint32_t step) : owner(owner), seat(seat) {
                seat.waiters.fetch_add(1);
                owner.publish_wait(other, &seat, step, false);
            }
            ~Sleeper() {
                owner.publish_wait(-1, nullptr, 0, false);
                seat.waiters.fetch_sub(1);
            }
            SharedCommunicator& owner;
            Seat& seat;
        };
        const Sleeper sleeper(owner_, seat, other, area_.step);
        const uint64_t begin = nanoseconds_now();
        for (uint32_t step; !has_reached(step = seat.step.load(), area_.step);) {
            sleep_on(seat.step, step, kSleepMilliseconds);
            if (has_reached(seat.step.load(), area_.step)) return;
            poll_interrupt();
            try {
                owner_.watch_.look_after(other, mark_, begin);
            } catch (const Error&) {
                if (!has_reached(seat.step.load(), area_.step)) throw;  // else it did its part before it ended
            }
        }
    }

    [[noreturn]] void disagree(int place) {
        const int other = request_.group->world_rank(place);
        throw state_error(name_of(request_.operation),
                          str("rank ", owner_.rank(), " asks for ", describe(owner_.log(), mark_), "; but rank ", other,
                              " asks for ", describe(owner_.arena_->log(other), area_.seats[place].marks[parity_])))
            .hint("all ranks of a group make the same requests in the same order");
    }

    // Addresses of elements. A rank that gives or gets none may have no memory.
    const unsigned char* in_at(int64_t element) const { return in_ ? in_ + element * width_ : nullptr; }
    unsigned char* out_at(int64_t element) const { return out_ ? out_ + element * width_ : nullptr; }

    static void copy(void* to, const void* from, int64_t bytes) {
        if (bytes > 0 && to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
    }
    // Where the piece of a rank begins among all pieces, in elements.
    int64_t piece(int place) const { return request_.counts.empty() ? request_.count : request_.counts[place]; }
    int64_t largest_piece() const {
        return request_.counts.empty() ? request_.count
                                       : *std::max_element(request_.counts.begin(), request_.counts.end());
    }
    int64_t offset_of(int place) const {
        if (request_.counts.empty()) return place * request_.count;
        int64_t sum = 0;
        for (int i = 0; i < place; ++i) sum += request_.counts[i];
        return sum;
    }

    // Calls step(begin, end) for ranges of elements 0 .. count; at least once, since every request has a step.
    template <class Step>
    void in_steps(int64_t count, int64_t range, Step step) {
        int64_t begin = 0;
        do {
            const int64_t end = std::min(count, begin + range);
            step(begin, end);
            begin = end;
        } while (begin < count);
    }

    void combine_flat() {
        const int64_t bytes = request_.count * width_;
        next(bytes);
        copy(own_box(), in_, bytes);
        meet();
        combine_boxes(0, in_, out_, request_.count);
    }

    // Combines what all boxes have from `offset` bytes on, with the own part in place of the own box.
    void combine_boxes(int64_t offset, const void* own, void* out, int64_t count) {
        parts_.resize(static_cast<size_t>(n_));
        for (int i = 0; i < n_; ++i) parts_[i] = i == me_ ? own : box(i) + offset;
        combine(request_.combine, request_.dtype, parts_, out, count);
    }

    // Each rank combines a slice of every chunk, and the others take it. The steps of chunks overlap: while chunk k is
    // combined, the slices of chunk k - 1 are taken.
    void combine_all() {
        const int64_t range = kChunk / width_, chunks = (request_.count + range - 1) / range;
        const auto chunk = [&](int64_t k) { return std::min(request_.count, (k + 1) * range) - k * range; };
        const auto slice = [&](int64_t k, int place) { return chunk(k) * place / n_; };
        for (int64_t k = 0; k <= chunks; ++k) {
            next(kLarge);
            if (k < chunks) {
                const int64_t begin = slice(k, me_), end = slice(k, me_ + 1);
                const unsigned char* from = in_at(k * range);
                copy(own_box(), from, begin * width_);
                copy(own_box() + end * width_, from + end * width_, (chunk(k) - end) * width_);
            }
            meet();
            if (k < chunks) {
                const int64_t begin = slice(k, me_), count = slice(k, me_ + 1) - begin;
                unsigned char* to = out_at(k * range + begin);
                combine_boxes(begin * width_, in_at(k * range + begin), to, count);
                copy(area_.seats[me_].large[parity_ ^ 1] + kChunk, to, count * width_);
            }
            if (k == 0) continue;
            for (int i = 0; i < n_; ++i)
                if (i != me_)
                    copy(out_at((k - 1) * range + slice(k - 1, i)), box(i) + kChunk,
                         (slice(k - 1, i + 1) - slice(k - 1, i)) * width_);
        }
    }

    void combine_at_root() {
        in_steps(request_.count, range_for(request_.count, 1), [&](int64_t begin, int64_t end) {
            next((end - begin) * width_);
            copy(own_box(), in_at(begin), (end - begin) * width_);
            meet();
            if (me_ == request_.root) combine_boxes(0, in_at(begin), out_at(begin), end - begin);
        });
    }

    // The elements of a piece that are moved in one step, where a box holds that many pieces.
    int64_t range_for(int64_t count, int pieces) const {
        return std::max<int64_t>(1, std::min(count, static_cast<int64_t>(kLarge) / width_ / pieces));
    }
    static int64_t within(int64_t begin, int64_t end, int64_t size) {
        return std::max<int64_t>(0, std::min(end, size) - begin);
    }

    void combine_pieces() {
        const int64_t range = range_for(largest_piece(), n_);
        in_steps(largest_piece(), range, [&](int64_t begin, int64_t end) {
            next(range * n_ * width_);
            for (int i = 0; i < n_; ++i)
                if (i != me_)
                    copy(own_box() + i * range * width_, in_at(offset_of(i) + begin),
                         within(begin, end, piece(i)) * width_);
            meet();
            combine_boxes(me_ * range * width_, in_at(offset_of(me_) + begin), out_at(begin),
                          within(begin, end, piece(me_)));
        });
    }

    void gather() {
        const bool reads = request_.operation == Collective::all_gather || me_ == request_.root;
        if (reads) copy(out_at(offset_of(me_)), in_, piece(me_) * width_);
        const int64_t range = range_for(largest_piece(), 1);
        in_steps(largest_piece(), range, [&](int64_t begin, int64_t end) {
            next(range * width_);
            copy(own_box(), in_at(begin), within(begin, end, piece(me_)) * width_);
            meet();
            for (int i = 0; reads && i < n_; ++i)
                if (i != me_) copy(out_at(offset_of(i) + begin), box(i), within(begin, end, piece(i)) * width_);
        });
    }

    void scatter() {
        const bool is_root = me_ == request_.root;
        if (is_root) copy(out_, in_at(offset_of(me_)), piece(me_) * width_);
        const int64_t range = range_for(largest_piece(), n_);
        in_steps(largest_piece(), range, [&](int64_t begin, int64_t end) {
            next(range * n_ * width_);
            for (int i = 0; is_root && i < n_; ++i)
                copy(own_box() + i * range * width_, in_at(offset_of(i) + begin),
                     within(begin, end, piece(i)) * width_);
            meet();
            if (!is_root)
                copy(out_at(begin), box(request_.root) + me_ * range * width_, within(begin, end, piece(me_)) * width_);
        });
    }

    void broadcast() {
        const bool is_root = me_ == request_.root;
        if (is_root) copy(out_, in_, request_.count * width_);
        in_steps(request_.count, range_for(request_.count, 1), [&](int64_t begin, int64_t end) {
            next((end - begin) * width_);
            if (is_root) copy(own_box(), in_at(begin), (end - begin) * width_);
            meet();
            if (!is_root) copy(out_at(begin), box(request_.root), (end - begin) * width_);
        });
    }

    void exchange() {
        const int64_t count = request_.count, range = range_for(count, n_);
        copy(out_at(me_ * count), in_at(me_ * count), count * width_);
        in_steps(count, range, [&](int64_t begin, int64_t end) {
            next(range * n_ * width_);
            for (int i = 0; i < n_; ++i)
                if (i != me_) copy(own_box() + i * range * width_, in_at(i * count + begin), (end - begin) * width_);
            meet();
            for (int i = 0; i < n_; ++i)
                if (i != me_) copy(out_at(i * count + begin), box(i) + me_ * range * width_, (end - begin) * width_);
        });
    }

    // First the ranks tell each other what they send; then they know the largest piece.
    void exchange_uneven() {
        const auto row = static_cast<int64_t>(n_ * sizeof(int64_t));
        if (row > static_cast<int64_t>(kLarge))
            throw value_error("all_to_all_v", str("a group of ", n_, " ranks is too large"));
        next(row);
        copy(own_box(), request_.counts.data(), row);
        meet();
        int64_t largest = 0;
        for (int i = 0; i < n_; ++i) {
            std::vector<int64_t> sent(static_cast<size_t>(n_));
            copy(sent.data(), box(i), row);
            largest = std::max(largest, *std::max_element(sent.begin(), sent.end()));
            if (sent[me_] != request_.receive_counts[i]) disagree_about(i, sent[me_]);
        }
        std::vector<int64_t> from(static_cast<size_t>(n_)), to(static_cast<size_t>(n_));
        for (int i = 1; i < n_; ++i) {
            from[i] = from[i - 1] + request_.counts[i - 1];
            to[i] = to[i - 1] + request_.receive_counts[i - 1];
        }
        copy(out_at(to[me_]), in_at(from[me_]), request_.counts[me_] * width_);
        const int64_t range = range_for(largest, n_);
        in_steps(largest, range, [&](int64_t begin, int64_t end) {
            next(range * n_ * width_);
            for (int i = 0; i < n_; ++i)
                if (i != me_)
                    copy(own_box() + i * range * width_, in_at(from[i] + begin),
                         within(begin, end, request_.counts[i]) * width_);
            meet();
            for (int i = 0; i < n_; ++i)
                if (i != me_)
                    copy(out_at(to[i] + begin), box(i) + me_ * range * width_,
                         within(begin, end, request_.receive_counts[i]) * width_);
        });
    }

    [[noreturn]] void disagree_about(int place, int64_t sent) {
        const int other = request_.group->world_rank(place);
        throw state_error("all_to_all_v", str("rank ", owner_.rank(), " expects ", request_.receive_counts[place],
                                              " elements from rank ", other, " in ", describe(owner_.log(), mark_),
                                              "; but rank ", other, " sends ", sent, " in ",
                                              describe(owner_.arena_->log(other), area_.seats[place].marks[parity_])));
    }

    SharedCommunicator& owner_;
    Area& area_;
    const Request& request_;
    const Mark& mark_;
    const uint64_t fingerprint_;
    const int n_, me_;
    const int64_t width_;
    const unsigned char* in_;
    unsigned char* out_;
    uint32_t parity_ = 0;
    int size_ = 0;
    bool is_first_ = true;
    std::vector<const void*> parts_;
};

SharedCommunicator::SharedCommunicator(std::shared_ptr<Arena> arena, int rank)
    : Communicator(rank, arena->ranks()),
      arena_(std::move(arena)),
      watch_(*arena_, rank),
      transfers_(*arena_, rank, watch_) {
    use_log(&arena_->log(rank));
    log().state = RankState::running;
    spins_ = static_cast<unsigned>(ranks()) > std::thread::hardware_concurrency() ? kSpinsWhereCrowded : kSpins;
}

SharedCommunicator::~SharedCommunicator() {
    stop();
    RankState running = RankState::running;
    log().state.compare_exchange_strong(running, RankState::left);
    arena_->leave(has_failed());
}

SharedCommunicator::Area& SharedCommunicator::area(const Group& group) {
    Area& area = areas_[&group];
    if (!area.seats) {
        area.seats = arena_->seats(group.key(), group.size());
        area.step = area.seats[group.rank()].step.load();
    }
    return area;
}

void SharedCommunicator::execute(const Request& request, const Mark& mark) {
    Steps(*this, area(*request.group), request, mark).run();
}

std::unique_ptr<Transfer> SharedCommunicator::post(const Request& request, const Mark& mark) {
    return transfers_.post(request, mark);
}

uint32_t SharedCommunicator::news() const { return arena_->bell(rank()).news.load(std::memory_order_acquire); }

void SharedCommunicator::wait_for_news(uint32_t seen) {
    Bell& bell = arena_->bell(rank());
    for (int i = 0; i < spins_; ++i) {
        if (bell.news.load(std::memory_order_acquire) != seen) return;
        _mm_pause();
    }
    bell.sleepers.fetch_add(1);
    sleep_on(bell.news, seen, kSleepMilliseconds);
    bell.sleepers.fetch_sub(1);
}

void SharedCommunicator::waits_for(const Request* transfer) {
    if (!transfer) return publish_wait(-1, nullptr, 0, false);
    publish_wait(transfer->group->world_rank(transfer->root), nullptr, 0, transfer->operation == Collective::send);
}

// Lets others see what the program of this rank waits for. While requests are carried out meanwhile it waits for
// nothing by itself: they may do what another rank waits for.
void SharedCommunicator::publish_wait(int other, const Seat* seat, uint32_t step, bool sends) {
    Bell& bell = arena_->bell(rank());
    bell.waits_for.store(0);
    if (other < 0 || has_queue()) return;
    bell.waits.fetch_add(1);
    bell.seat.store(seat ? arena_->address_of(*seat) : 0);
    bell.step.store(step);
    bell.sends.store(sends);
    bell.waits_for.store(other + 1);
}

}  // namespace lunaria::parallel
