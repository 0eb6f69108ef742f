#include "core/parallel/messages.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/parallel/combine.h"
#include "core/parallel/cost.h"

namespace lunaria::parallel {

namespace {

constexpr const char* kHint = "all ranks of a group make the same requests in the same order";

// What a rank knows of the marks of a group: one of its own, and one that differs.
struct Knowledge {
    Witness own;
    Witness other;  // none: all that are known ask for the same
};

bool differ(const Mark& a, const Mark& b) { return a.fingerprint() != b.fingerprint(); }

}  // namespace

// Messages of one request, all under way together.
class MessageCommunicator::Exchange {
  public:
    Exchange(MessageCommunicator& owner, const Witness& own) : owner_(owner), own_(own) {}

    void send(int to, const void* bytes, size_t count) { add(to, bytes, nullptr, count); }
    void receive(int from, void* bytes, size_t count) { add(from, nullptr, bytes, count); }

    // Until all messages are done.
    void wait() {
        for (int round = 0; !pending_.empty(); ++round) {
            std::erase_if(pending_, [](const Message& m) { return m.ticket->is_done(); });
            if (pending_.empty()) return;
            poll_interrupt();
            look_after();
            owner_.transport_->wait(round);
        }
    }

  private:
    struct Message {
        int other;
        std::unique_ptr<Ticket> ticket;
        Waiting waiting;
    };

    void add(int other, const void* from, void* to, size_t count) {
        if (count == 0) return;
        Transport& transport = *owner_.transport_;
        pending_.push_back({other,
                            from ? transport.send(other, Lane::requests, 0, from, count)
                                 : transport.receive(other, Lane::requests, 0, to, count),
                            {}});
    }

    void look_after() {
        for (Message& m : pending_) owner_.watch_.look_after(m.other, own_, m.waiting);
    }

    MessageCommunicator& owner_;
    const Witness& own_;
    std::vector<Message> pending_;
};

// One collective request.
class MessageCommunicator::Collectives {
  public:
    Collectives(MessageCommunicator& owner, const Request& request, const Mark& mark)
        : owner_(owner),
          request_(request),
          own_(Witness::of(owner.log(), mark, owner.rank())),
          n_(request.group->size()),
          me_(request.group->rank()),
          width_(size_of(request.dtype)),
          in_(static_cast<const unsigned char*>(request.in)),
          out_(static_cast<unsigned char*>(request.out)) {}

    void run() {
        agree();
        if (request_.is_elsewhere) return;
        switch (request_.operation) {
            case Collective::all_reduce:
                return all_reduce();
            case Collective::reduce:
                return reduce();
            case Collective::reduce_scatter:
                return reduce_scatter();
            case Collective::all_gather:
            case Collective::gather:
                return gather();
            case Collective::scatter:
                return scatter();
            case Collective::broadcast:
                return broadcast();
            case Collective::all_to_all:
                return all_to_all();
            case Collective::all_to_all_v:
                return all_to_all_v();
            case Collective::barrier:
            case Collective::send:
            case Collective::recv:
                break;
        }
    }

  private:
    int world(int place) const { return request_.group->world_rank(place); }
    Exchange exchange() { return Exchange(owner_, own_); }
    size_t bytes(int64_t count) const { return static_cast<size_t>(count) * width_; }
    size_t piece(int place) const {
        return bytes(request_.counts.empty() ? request_.count : request_.counts[static_cast<size_t>(place)]);
    }
    size_t offset(int place) const {
        size_t sum = 0;
        for (int i = 0; i < place; ++i) sum += piece(i);
        return sum;
    }
    static void copy(void* to, const void* from, size_t count) {
        if (count > 0 && to != from) std::memmove(to, from, count);
    }

    // Every rank learns whether all ask for the same.
    void agree() {
        Knowledge known{own_, {}};
        for (int step = 1; step < n_; step *= 2) {
            Knowledge told{};
            Exchange messages = exchange();
            messages.send(world((me_ + step) % n_), &known, sizeof known);
            messages.receive(world((me_ - step + n_) % n_), &told, sizeof told);
            messages.wait();
            owner_.watch_.heard(told.own);
            for (const Witness* witness : {&told.own, &told.other})
                if (witness->rank >= 0 && known.other.rank < 0 && differ(own_.mark, witness->mark))
                    known.other = *witness;
        }
        if (known.other.rank >= 0)
            throw state_error(name_of(request_.operation),
                              str("rank ", own_.rank, " asks for ", own_.text(), "; but rank ", known.other.rank,
                                  " asks for ", known.other.text()))
                .hint(kHint);
    }

    // The pieces [begin(i), begin(i + 1)) of a whole of `count` elements that each rank combines.
    int64_t begin_of(int place) const { return request_.count * place / n_; }

    // parts[i]: where the piece of rank i is; combined into `out`.
    void combine_parts(const std::vector<std::vector<unsigned char>>& received, const unsigned char* own, void* out,
                       int64_t count) const {
        std::vector<const void*> parts;
        for (int i = 0; i < n_; ++i) parts.push_back(i == me_ ? own : received[static_cast<size_t>(i)].data());
        combine(request_.combine, request_.dtype, parts, out, count);
    }

    // How many ranks that follow one another share a host, where the group consists of such runs of one length and sums
    // come out the same bits run by run; else 1. Sums are taken in pairs of neighbours, then of pairs, and so on.
    int ranks_of_a_host() const {
        const bool is_rounded_once = request_.dtype == DType::f16 || request_.dtype == DType::bf16;
        int m = 1;
        while (m < n_ && owner_.watch_.share_host(world(0), world(m))) ++m;
        if (is_rounded_once || m == n_ || n_ % m != 0 || (m & (m - 1)) != 0) return 1;
        for (int place = 0; place < n_; ++place)
            if (!owner_.watch_.share_host(world(place), world(place / m * m)) ||
                (place % m == 0 && place > 0 && owner_.watch_.share_host(world(place), world(place - 1))))
                return 1;
        return m;
    }

    // Whether it takes less time to go through the hosts first, on an ordinary network.
    bool pays_by_hosts(int m) const {
        constexpr LinkLevel kHost{1, 5e-6, 5e9}, kNetwork{1, 3e-5, 1.2e9};
        Cluster levels, flat;
        levels.levels = {{m, kHost.latency, kHost.bytes_per_second}, {n_, kNetwork.latency, kNetwork.bytes_per_second}};
        flat.levels = {levels.levels.back()};
        const auto size = static_cast<double>(bytes(request_.count));
        return all_reduce_seconds(levels, {1, n_}, size) < all_reduce_seconds(flat, {1, n_}, size);
    }

    // Sums of pieces inside each host, then of these across the hosts, then back: a network moves 1/m of what it would.
    void all_reduce_by_hosts(int m) {
        const int hosts = n_ / m, host = me_ / m, own = me_ % m;
        const auto inner = [&](int i) { return request_.count * i / m; };
        const int64_t count = inner(own + 1) - inner(own);
        const auto outer = [&](int i) { return count * i / hosts; };
        std::vector<int> neighbours, peers;
        for (int i = 0; i < m; ++i) neighbours.push_back(host * m + i);
        for (int i = 0; i < hosts; ++i) peers.push_back(i * m + own);
        std::vector<unsigned char> sum(bytes(count));
        combine_among(neighbours, own, inner, in_, sum.data());
        std::vector<unsigned char> part(bytes(outer(host + 1) - outer(host)));
        combine_among(peers, host, outer, sum.data(), part.data());
        unsigned char* const piece = out_ + bytes(inner(own));
        copy(piece + bytes(outer(host)), part.data(), part.size());
        gather_among(peers, host, outer, piece);
        gather_among(neighbours, own, inner, out_);
    }

    // Member `own` of these places combines the pieces [begin(own), begin(own + 1)) of all.
    template <class Begin>
    void combine_among(const std::vector<int>& places, int own, Begin begin, const unsigned char* in, void* out) {
        const auto n = static_cast<int>(places.size());
        const int64_t count = begin(own + 1) - begin(own);
        std::vector<std::vector<unsigned char>> received(places.size());
        Exchange messages = exchange();
        for (int k = 1; k < n; ++k) {
            const int to = (own + k) % n, from = (own - k + n) % n;
            auto& room = received[static_cast<size_t>(from)];
            room.resize(bytes(count));
            messages.receive(world(places[static_cast<size_t>(from)]), room.data(), room.size());
            messages.send(world(places[static_cast<size_t>(to)]), in + bytes(begin(to)),
                          bytes(begin(to + 1) - begin(to)));
        }
        messages.wait();
        std::vector<const void*> parts;
        for (int i = 0; i < n; ++i)
            parts.push_back(i == own ? in + bytes(begin(own)) : received[static_cast<size_t>(i)].data());
        combine(request_.combine, request_.dtype, parts, out, count);
    }

    // Each of these places gets the pieces of the others; its own is there.
    template <class Begin>
    void gather_among(const std::vector<int>& places, int own, Begin begin, unsigned char* out) {
        const auto n = static_cast<int>(places.size());
        Exchange messages = exchange();
        for (int k = 1; k < n; ++k) {
            const int to = (own + k) % n, from = (own - k + n) % n;
            messages.receive(world(places[static_cast<size_t>(from)]), out + bytes(begin(from)),
                             bytes(begin(from + 1) - begin(from)));
            messages.send(world(places[static_cast<size_t>(to)]), out + bytes(begin(own)),
                          bytes(begin(own + 1) - begin(own)));
        }
        messages.wait();
    }

    std::vector<int> all_places() const {
        std::vector<int> places(static_cast<size_t>(n_));
        std::iota(places.begin(), places.end(), 0);
        return places;
    }

    // Each rank gets its piece of all others and combines them. `begin` tells in elements where pieces begin.
    template <class Begin>
    void combine_pieces(Begin begin, void* out) {
        combine_among(all_places(), me_, begin, in_, out);
    }

    void all_reduce() {
        if (n_ == 1) return copy(out_, in_, bytes(request_.count));
        // Small ones in one step: every rank combines all of it.
        constexpr size_t kFlat = size_t{1} << 14;
        if (bytes(request_.count) * static_cast<size_t>(n_) <= kFlat) {
            std::vector<std::vector<unsigned char>> received(static_cast<size_t>(n_),
                                                             std::vector<unsigned char>(bytes(request_.count)));
            Exchange messages = exchange();
            for (int k = 1; k < n_; ++k) {
                messages.receive(world((me_ - k + n_) % n_), received[static_cast<size_t>((me_ - k + n_) % n_)].data(),
                                 bytes(request_.count));
                messages.send(world((me_ + k) % n_), in_, bytes(request_.count));
            }
            messages.wait();
            return combine_parts(received, in_, out_, request_.count);
        }
        if (const int m = ranks_of_a_host(); m > 1 && pays_by_hosts(m)) return all_reduce_by_hosts(m);
        const auto begin = [this](int place) { return begin_of(place); };
        combine_pieces(begin, out_ + bytes(begin_of(me_)));
        gather_among(all_places(), me_, begin, out_);
    }

    void reduce() {
        // As pieces, of which the root gets what the others have combined.
        std::vector<unsigned char> own(bytes(begin_of(me_ + 1) - begin_of(me_)));
        combine_pieces([this](int place) { return begin_of(place); }, own.data());
        Exchange messages = exchange();
        if (me_ != request_.root) {
            messages.send(world(request_.root), own.data(), own.size());
        } else {
            copy(out_ + bytes(begin_of(me_)), own.data(), own.size());
            for (int i = 0; i < n_; ++i)
                if (i != me_)
                    messages.receive(world(i), out_ + bytes(begin_of(i)), bytes(begin_of(i + 1) - begin_of(i)));
        }
        messages.wait();
    }

    void reduce_scatter() {
        combine_pieces([this](int place) { return static_cast<int64_t>(offset(place) / width_); }, out_);
    }

    void gather() {
        const bool reads = request_.operation == Collective::all_gather || me_ == request_.root;
        if (reads) copy(out_ + offset(me_), in_, piece(me_));
        Exchange messages = exchange();
        for (int k = 1; k < n_; ++k) {
            const int to = (me_ + k) % n_, from = (me_ - k + n_) % n_;
            if (reads) messages.receive(world(from), out_ + offset(from), piece(from));
            if (request_.operation == Collective::all_gather || to == request_.root)
                messages.send(world(to), in_, piece(me_));
        }
        messages.wait();
    }

    void scatter() {
        Exchange messages = exchange();
        if (me_ == request_.root) {
            copy(out_, in_ + offset(me_), piece(me_));
            for (int i = 0; i < n_; ++i)
                if (i != me_) messages.send(world(i), in_ + offset(i), piece(i));
        } else {
            messages.receive(world(request_.root), out_, piece(me_));
        }
        messages.wait();
    }

    // A tree: a rank that has the data passes them on, twice as many in each round.
    void broadcast() {
        const int place = (me_ - request_.root + n_) % n_;
        const size_t count = bytes(request_.count);
        if (place == 0) copy(out_, in_, count);
        for (int step = 1; step < n_; step *= 2) {
            Exchange messages = exchange();
            if (place < step && place + step < n_)
                messages.send(world((place + step + request_.root) % n_), out_, count);
            if (place >= step && place < 2 * step)
                messages.receive(world((place - step + request_.root) % n_), out_, count);
            messages.wait();
        }
    }

    void all_to_all() {
        const size_t count = bytes(request_.count);
        copy(out_ + static_cast<size_t>(me_) * count, in_ + static_cast<size_t>(me_) * count, count);
        Exchange messages = exchange();
        for (int k = 1; k < n_; ++k) {
            const auto to = static_cast<size_t>((me_ + k) % n_), from = static_cast<size_t>((me_ - k + n_) % n_);
            messages.receive(world(static_cast<int>(from)), out_ + from * count, count);
            messages.send(world(static_cast<int>(to)), in_ + to * count, count);
        }
        messages.wait();
    }

    void all_to_all_v() {
        const auto n = static_cast<size_t>(n_);
        // Ranks tell each other how much they send.
        std::vector<int64_t> sent(n);
        Exchange sizes = exchange();
        for (size_t i = 0; i < n; ++i) {
            if (static_cast<int>(i) == me_) continue;
            sizes.send(world(static_cast<int>(i)), &request_.counts[i], sizeof(int64_t));
            sizes.receive(world(static_cast<int>(i)), &sent[i], sizeof(int64_t));
        }
        sizes.wait();
        sent[static_cast<size_t>(me_)] = request_.counts[static_cast<size_t>(me_)];
        for (size_t i = 0; i < n; ++i)
            if (sent[i] != request_.receive_counts[i])
                throw state_error("all_to_all_v", str("rank ", own_.rank, " expects ", request_.receive_counts[i],
                                                      " elements from rank ", world(static_cast<int>(i)), " in ",
                                                      own_.text(), "; but it sends ", sent[i]));
        size_t from = 0, to = 0;
        Exchange messages = exchange();
        for (size_t i = 0; i < n; ++i) {
            const size_t leaves = bytes(request_.counts[i]), comes = bytes(sent[i]);
            if (static_cast<int>(i) == me_) {
                copy(out_ + to, in_ + from, leaves);
            } else {
                messages.receive(world(static_cast<int>(i)), out_ + to, comes);
                messages.send(world(static_cast<int>(i)), in_ + from, leaves);
            }
            from += leaves;
            to += comes;
        }
        messages.wait();
    }

    MessageCommunicator& owner_;
    const Request& request_;
    const Witness own_;
    const int n_, me_;
    const size_t width_;
    const unsigned char* in_;
    unsigned char* out_;
};

namespace {

// A send or recv: the mark on one lane, the data on another.
class MessageTransfer : public Transfer {
  public:
    MessageTransfer(Transport& transport, MessageWatch& watch, const Request& request, const Witness& own)
        : watch_(watch),
          own_(own),
          other_(request.group->world_rank(request.root)),
          sends_(request.operation == Collective::send) {
        const size_t count = static_cast<size_t>(request.count) * size_of(request.dtype);
        // Tags of MPI have 15 bits; the marks are compared in full.
        const int tag = static_cast<int>((static_cast<uint32_t>(request.tag) * 2654435761u ^ own.mark.group) >> 17);
        if (sends_) {
            mark_ = transport.send(other_, Lane::marks, tag, &own_, sizeof own_);
            if (count > 0) data_ = transport.send(other_, Lane::data, tag, request.in, count);
        } else {
            mark_ = transport.receive(other_, Lane::marks, tag, &told_, sizeof told_);
            if (count > 0) data_ = transport.receive(other_, Lane::data, tag, request.out, count);
        }
    }

    bool advance() override {
        if (mark_ && mark_->is_done()) {
            mark_.reset();
            if (!sends_) compare();
        }
        if (!mark_ && data_ && data_->is_done()) data_.reset();
        if (!mark_ && !data_) return true;
        watch_.look_after(other_, own_, waiting_);
        return false;
    }

  private:
    void compare() const {
        watch_.heard(told_);
        const Mark &a = own_.mark, &b = told_.mark;
        if (a.count == b.count && a.dtype == b.dtype && a.tag == b.tag && a.group == b.group &&
            a.is_elsewhere == b.is_elsewhere)
            return;
        throw state_error(name_of(own_.mark.operation), str("rank ", own_.rank, " asks for ", own_.text(),
                                                            "; but rank ", other_, " asks for ", told_.text()))
            .hint(kHint);
    }

    MessageWatch& watch_;
    const Witness own_;
    Witness told_;
    const int other_;
    const bool sends_;
    std::unique_ptr<Ticket> mark_, data_;
    Waiting waiting_;
};

}  // namespace

MessageCommunicator::MessageCommunicator(std::unique_ptr<Transport> transport, const std::string& job,
                                         bool is_ended_with_others)
    : Communicator(transport->rank(), transport->ranks()),
      job_(job),
      transport_(std::move(transport)),
      watch_(*transport_, job) {
    if (!job_.empty()) {
        try {
            record_ = make_record(job_, rank(), ranks());
            use_log(&record_->log());
        } catch (const Error&) {
            // Without shared memory there is no record, and the work goes on.
        }
    }
    log().state = RankState::running;
    watch_.meet();
    if (is_ended_with_others)
        end_signal_ = std::make_unique<EndSignal>([this] { return watch_.casualty(); },
                                                  [this](const std::string& reason) { end_by_signal(reason); });
}

// The program has no say any more. Without a reason this rank is the first, and leaves no record.
void MessageCommunicator::end_by_signal(const std::string& reason) {
    tell_failure(MessageWatch::kEndedBySignal);
    if (record_ && reason.empty()) unlink(record_path(job_, rank()).c_str());
}

MessageCommunicator::~MessageCommunicator() {
    end_signal_.reset();
    stop();
    const bool has_failed = log().state.load() == RankState::failed;
    transport_->leave(has_failed ? failure_in(log()) : "");
    if (has_failed) return;
    log().state = RankState::left;
    if (record_) unlink(record_path(job_, rank()).c_str());
}

void MessageCommunicator::execute(const Request& request, const Mark& mark) { Collectives(*this, request, mark).run(); }

std::unique_ptr<Transfer> MessageCommunicator::post(const Request& request, const Mark& mark) {
    return std::make_unique<MessageTransfer>(*transport_, watch_, request, Witness::of(log(), mark, rank()));
}

void MessageCommunicator::wait_for_news(uint32_t) {
    constexpr int kPatient = 1000;  // as after as many rounds of waiting
    transport_->wait(kPatient);
}

}  // namespace lunaria::parallel
