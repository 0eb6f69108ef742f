#include "core/parallel/shared_transfers.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

#include "core/base/error.h"

namespace lunaria::parallel {

namespace {

int64_t bytes_of(const Request& request) { return request.count * static_cast<int64_t>(size_of(request.dtype)); }

}  // namespace

class SharedTransfers::Send : public Transfer {
  public:
    Send(SharedTransfers& owner, const Request& request, const Mark& mark)
        : owner_(owner), request_(request), mark_(mark), to_(request.group->world_rank(request.root)) {
        line().push_back(this);
    }
    ~Send() override { line().erase(std::find(line().begin(), line().end(), this)); }

    bool advance() override {
        if (line().front() != this) return false;
        Channel& channel = owner_.arena_.channel(owner_.rank_, to_);
        bool has_moved = false;
        while (!is_complete_) {
            const uint32_t filled = channel.filled.load(std::memory_order_relaxed);
            if (filled - channel.emptied.load(std::memory_order_acquire) == Channel::kSlots) break;
            fill(channel.slots[filled % Channel::kSlots]);
            channel.filled.store(filled + 1, std::memory_order_release);
            has_moved = true;
        }
        if (has_moved)
            ring(owner_.arena_.bell(to_));
        else
            owner_.watch_.look_after(to_, mark_, begin_);
        return is_complete_;
    }

  private:
    std::vector<const Send*>& line() { return owner_.sending_[static_cast<size_t>(to_)]; }

    void fill(Channel::Slot& slot) {
        const int64_t bytes = std::min(static_cast<int64_t>(Channel::kSlotSize), bytes_of(request_) - sent_);
        slot.mark = mark_;
        slot.bytes = static_cast<uint64_t>(bytes);
        slot.message_bytes = static_cast<uint64_t>(bytes_of(request_));
        if (bytes > 0)
            std::memcpy(slot.data, static_cast<const char*>(request_.in) + sent_, static_cast<size_t>(bytes));
        sent_ += bytes;
        is_complete_ = sent_ == bytes_of(request_);
    }

    SharedTransfers& owner_;
    const Request& request_;
    const Mark mark_;
    const int to_;
    const uint64_t begin_ = nanoseconds_now();
    int64_t sent_ = 0;
    bool is_complete_ = false;
};

// What has come from one rank, and the receives that wait for it.
struct SharedTransfers::Inbox {
    struct Message {
        Mark mark;
        std::vector<unsigned char> bytes;
        bool is_whole = false;
    };
    std::list<Receive*> waiting;
    std::list<Message> unclaimed;
    // The receive that has waited longest for such a message; null: none does.
    Receive* first_for(const Mark& mark) const;
    // The message that is on its way goes to a receive, to the unclaimed ones, or nowhere (its receive has failed).
    bool is_open = false;
    Receive* receiver = nullptr;
    Message* kept = nullptr;
    uint64_t received = 0;
};

class SharedTransfers::Receive : public Transfer {
  public:
    Receive(SharedTransfers& owner, const Request& request, const Mark& mark)
        : owner_(owner), request_(request), mark_(mark), from_(request.group->world_rank(request.root)) {
        inbox().waiting.push_back(this);
    }
    ~Receive() override {
        inbox().waiting.remove(this);
        if (inbox().receiver == this) inbox().receiver = nullptr;
    }

    bool advance() override {
        if (!has_begun_) claim();
        if (is_complete_ || owner_.pump(from_)) return is_complete_;
        try {
            owner_.watch_.look_after(from_, mark_, begin_);
        } catch (const Error&) {
            if (!owner_.pump(from_)) throw;  // else it sent its last before it ended
        }
        return is_complete_;
    }

    bool accepts(const Mark& sent) const { return !has_begun_ && sent.group == mark_.group && sent.tag == mark_.tag; }
    void begin(const Mark& sent) {
        has_begun_ = true;
        if (sent.dtype != mark_.dtype || sent.count != mark_.count || sent.is_elsewhere != mark_.is_elsewhere)
            owner_.disagree(mark_, from_, sent);
    }
    void take(uint64_t offset, const unsigned char* data, uint64_t bytes) {
        if (bytes > 0) std::memcpy(static_cast<unsigned char*>(request_.out) + offset, data, bytes);
    }
    void complete() { is_complete_ = true; }

  private:
    Inbox& inbox() { return *owner_.inboxes_[static_cast<size_t>(from_)]; }

    // Takes the oldest unclaimed message that fits, once all of it has come, unless a receive before this one does.
    void claim() {
        auto& unclaimed = inbox().unclaimed;
        const auto found = std::find_if(unclaimed.begin(), unclaimed.end(),
                                        [&](const Inbox::Message& message) { return accepts(message.mark); });
        if (found == unclaimed.end() || !found->is_whole || inbox().first_for(found->mark) != this) return;
        const Inbox::Message message = std::move(*found);
        unclaimed.erase(found);
        begin(message.mark);
        take(0, message.bytes.data(), message.bytes.size());
        complete();
    }

    SharedTransfers& owner_;
    const Request& request_;
    const Mark mark_;
    const int from_;
    const uint64_t begin_ = nanoseconds_now();
    bool has_begun_ = false, is_complete_ = false;
};

SharedTransfers::Receive* SharedTransfers::Inbox::first_for(const Mark& mark) const {
    const auto found = std::ranges::find_if(waiting, [&](const Receive* receive) { return receive->accepts(mark); });
    return found == waiting.end() ? nullptr : *found;
}

SharedTransfers::SharedTransfers(Arena& arena, int rank, SharedWatch& watch)
    : arena_(arena), rank_(rank), watch_(watch) {
    for (int i = 0; i < arena.ranks(); ++i) inboxes_.push_back(std::make_unique<Inbox>());
    sending_.resize(static_cast<size_t>(arena.ranks()));
}

SharedTransfers::~SharedTransfers() = default;

std::unique_ptr<Transfer> SharedTransfers::post(const Request& request, const Mark& mark) {
    if (request.operation == Collective::send) return std::make_unique<Send>(*this, request, mark);
    return std::make_unique<Receive>(*this, request, mark);
}

void SharedTransfers::disagree(const Mark& own, int from, const Mark& sent) const {
    throw state_error("recv", str("rank ", rank_, " asks for ", describe(arena_.log(rank_), own), "; but rank ", from,
                                  " sent ", describe(arena_.log(from), sent)))
        .hint("what is sent and received has one dtype and one count");
}

// Takes what has come from a rank. A message for which no receive waits is kept, so that one behind it can be reached.
// Whether anything had come.
bool SharedTransfers::pump(int from) {
    Channel& channel = arena_.channel(from, rank_);
    Inbox& inbox = *inboxes_[static_cast<size_t>(from)];
    bool has_moved = false;
    while (true) {
        const uint32_t emptied = channel.emptied.load(std::memory_order_relaxed);
        if (channel.filled.load(std::memory_order_acquire) == emptied) break;
        const Channel::Slot& slot = channel.slots[emptied % Channel::kSlots];
        if (!inbox.is_open) {
            inbox.is_open = true;
            inbox.received = 0;
            // Behind an unclaimed message of the same kind it has to wait as well.
            const bool is_next = std::ranges::none_of(inbox.unclaimed, [&](const Inbox::Message& message) {
                return message.mark.group == slot.mark.group && message.mark.tag == slot.mark.tag;
            });
            inbox.receiver = is_next ? inbox.first_for(slot.mark) : nullptr;
            inbox.kept = inbox.receiver ? nullptr : &inbox.unclaimed.emplace_back(Inbox::Message{slot.mark, {}, false});
            if (inbox.receiver) inbox.receiver->begin(slot.mark);
        }
        if (inbox.receiver) inbox.receiver->take(inbox.received, slot.data, slot.bytes);
        if (inbox.kept) inbox.kept->bytes.insert(inbox.kept->bytes.end(), slot.data, slot.data + slot.bytes);
        inbox.received += slot.bytes;
        if (inbox.received == slot.message_bytes) {
            if (inbox.receiver) inbox.receiver->complete();
            if (inbox.kept) inbox.kept->is_whole = true;
            inbox.is_open = false;
            inbox.receiver = nullptr;
            inbox.kept = nullptr;
        }
        channel.emptied.store(emptied + 1, std::memory_order_release);
        has_moved = true;
    }
    if (has_moved) ring(arena_.bell(from));
    return has_moved;
}

}  // namespace lunaria::parallel
