#include "core/parallel/tcp.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/io/socket.h"
#include "core/parallel/messages.h"
#include "core/parallel/rendezvous.h"

namespace lunaria::parallel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLongestFarewell = 4096;

struct Head {
    uint64_t count;
    int32_t tag;
    uint32_t lane;  // kFarewell: the text is why the rank has ended
};
constexpr uint32_t kFarewell = 255;

// A message as a connection sees it. The ticket and the connection own it together: a ticket that is given up leaves it
// to the connection, which then neither reads nor writes its memory.
struct Parcel {
    Head head{};
    char* bytes = nullptr;  // null: given up
    bool is_done = false;
    std::string problem;
};
using ParcelHandle = std::shared_ptr<Parcel>;

// One connection, with what is on its way.
class Connection {
  public:
    void open(Descriptor&& socket) { socket_.reset(socket.release()); }
    int file() const { return is_open() ? socket_.number() : -1; }
    bool is_open() const { return static_cast<bool>(socket_); }
    bool has_to_send() const { return is_open() && !leaving_.empty(); }
    const std::string& loss() const { return loss_; }

    void send(const ParcelHandle& parcel) {
        leaving_.push_back(parcel);
        write();
    }

    void receive(const ParcelHandle& parcel) {
        const auto early = std::find_if(early_.begin(), early_.end(),
                                        [&](const Early& e) { return !e.taker && is_for(e.head, *parcel); });
        if (early == early_.end()) {
            awaited_.push_back(parcel);
            read();
            return;
        }
        if (early->is_whole) {
            deliver(*parcel, early->head, early->bytes);
            early_.erase(early);
        } else {
            early->taker = parcel;  // the rest of it is still coming
        }
    }

    // A ticket is gone.
    void give_up(const ParcelHandle& parcel) {
        parcel->bytes = nullptr;
        std::erase(awaited_, parcel);
        for (Early& early : early_)
            if (early.taker == parcel) early.taker.reset();
        // Half of a message cannot be called back: what follows would make no sense.
        const auto found = std::find(leaving_.begin(), leaving_.end(), parcel);
        if (found == leaving_.begin() && found != leaving_.end() && sent_ > 0)
            lose("is not reached any more");
        else if (found != leaving_.end())
            leaving_.erase(found);
        if (direct_ == parcel) lose("is not heard any more");
    }

    void write() {
        while (has_to_send()) {
            Parcel& parcel = *leaving_.front();
            iovec parts[2] = {{&parcel.head, sizeof(Head)}, {parcel.bytes, parcel.head.count}};
            const size_t head = std::min(sent_, sizeof(Head));
            parts[0].iov_base = reinterpret_cast<char*>(&parcel.head) + head;
            parts[0].iov_len -= head;
            parts[1].iov_base = parcel.bytes + (sent_ - head);
            parts[1].iov_len -= sent_ - head;
            msghdr message{};
            message.msg_iov = parts;
            message.msg_iovlen = 2;
            const ssize_t count = sendmsg(socket_.number(), &message, MSG_NOSIGNAL);
            if (count < 0) {
                if (errno == EAGAIN || errno == EINTR) return;
                return lose(str("is gone: ", std::strerror(errno)));
            }
            sent_ += static_cast<size_t>(count);
            if (sent_ < sizeof(Head) + parcel.head.count) continue;
            parcel.is_done = true;
            leaving_.pop_front();
            sent_ = 0;
        }
    }

    void read() {
        while (is_open()) {
            if (have_ < sizeof(Head)) {
                const ssize_t count =
                    recv(socket_.number(), reinterpret_cast<char*>(&head_) + have_, sizeof(Head) - have_, 0);
                if (!came(count)) return;
                have_ += static_cast<size_t>(count);
                if (have_ == sizeof(Head)) begin();
                if (have_ == sizeof(Head) && is_open() && head_.count == 0) end();
                continue;
            }
            const size_t done = have_ - sizeof(Head);
            char* to = direct_ ? direct_->bytes : early_.back().bytes.data();
            const ssize_t count = recv(socket_.number(), to + done, head_.count - done, 0);
            if (!came(count)) return;
            have_ += static_cast<size_t>(count);
            if (have_ == sizeof(Head) + head_.count) end();
        }
    }

    void close() { socket_.reset(-1); }

  private:
    struct Early {  // came before it was asked for
        Head head;
        std::string bytes;
        bool is_whole = false;
        ParcelHandle taker;
    };

    static bool is_for(const Head& head, const Parcel& parcel) {
        return head.lane == parcel.head.lane && head.tag == parcel.head.tag;
    }

    static void deliver(Parcel& parcel, const Head& head, std::string_view bytes) {
        if (head.count != parcel.head.count)
            parcel.problem = str("a message has ", head.count, " bytes where ", parcel.head.count, " were expected");
        else if (parcel.bytes)
            bytes.copy(parcel.bytes, bytes.size());
        parcel.is_done = true;
    }

    bool came(ssize_t count) {
        if (count > 0) return true;
        if (count == 0) {
            lose("has ended");
        } else if (errno != EAGAIN && errno != EINTR) {
            lose(str("is gone: ", std::strerror(errno)));
        }
        return false;
    }

    // A head is there: where do its bytes go?
    void begin() {
        if (head_.lane == kFarewell && head_.count > kLongestFarewell) return lose("has sent nonsense");
        const auto found =
            std::find_if(awaited_.begin(), awaited_.end(), [&](const ParcelHandle& p) { return is_for(head_, *p); });
        if (head_.lane != kFarewell && found != awaited_.end()) {
            direct_ = *found;
            awaited_.erase(found);
            if (direct_->head.count == head_.count) return;
            deliver(*direct_, head_, "");
            direct_.reset();
            return lose("has sent a message of a size that was not expected");
        }
        early_.push_back({head_, "", false, nullptr});
        try {
            early_.back().bytes.resize(head_.count);
        } catch (const std::exception&) {
            early_.pop_back();
            lose("has sent a message for which there is no memory");
        }
    }

    void end() {
        have_ = 0;
        if (direct_) {
            direct_->is_done = true;
            direct_.reset();
            return;
        }
        Early& early = early_.back();
        early.is_whole = true;
        if (early.head.lane == kFarewell) {
            farewell_ = early.bytes;
            early_.pop_back();
        } else if (early.taker) {
            deliver(*early.taker, early.head, early.bytes);
            early_.pop_back();
        }
    }

    void lose(const std::string& why) {
        loss_ = farewell_.empty() ? why : farewell_;
        socket_.reset(-1);
        direct_.reset();
    }

    Descriptor socket_;
    std::string loss_, farewell_;
    std::deque<ParcelHandle> leaving_;
    size_t sent_ = 0;  // bytes of the first of them
    std::list<ParcelHandle> awaited_;
    Head head_{};
    size_t have_ = 0;      // bytes of the message that is coming
    ParcelHandle direct_;  // where it goes, if it was asked for; else it is the last of early_
    std::list<Early> early_;
};

class TcpTransport : public Transport {
  public:
    TcpTransport(const Environment& environment, double seconds)
        : rank_(static_cast<int>(environment.rank)),
          ranks_(static_cast<int>(environment.ranks)),
          connections_(static_cast<size_t>(ranks_)) {
        if (ranks_ > 1) connect(environment, seconds);
    }

    int rank() const override { return rank_; }
    int ranks() const override { return ranks_; }
    std::string_view name() const override { return "TCP"; }

    std::unique_ptr<Ticket> send(int to, Lane lane, int tag, const void* bytes, size_t count) override {
        return std::make_unique<Message>(*this, to, Head{count, tag, static_cast<uint32_t>(lane)},
                                         const_cast<void*>(bytes), true);
    }
    std::unique_ptr<Ticket> receive(int from, Lane lane, int tag, void* bytes, size_t count) override {
        return std::make_unique<Message>(*this, from, Head{count, tag, static_cast<uint32_t>(lane)}, bytes, false);
    }

    std::string loss_of(int rank) override {
        std::lock_guard lock(mutex_);
        return at(rank).loss();
    }

    void leave(std::string_view failure) override {
        const std::string text =
            failure.empty() ? "has left" : str("failed: ", failure.substr(0, kLongestFarewell / 2));
        std::lock_guard lock(mutex_);
        std::vector<ParcelHandle> farewells;
        for (Connection& connection : connections_) {
            if (!connection.is_open()) continue;
            auto parcel = std::make_shared<Parcel>();
            parcel->head = {text.size(), 0, kFarewell};
            parcel->bytes = const_cast<char*>(text.data());
            connection.send(parcel);
            farewells.push_back(parcel);
        }
        // What is on its way to others must not be lost by closing; they may be busy for long.
        const auto end = Clock::now() + std::chrono::milliseconds(200);
        auto waits = [](const Connection& c) { return c.has_to_send(); };
        while (Clock::now() < end && std::any_of(connections_.begin(), connections_.end(), waits)) {
            std::vector<pollfd> files = this->files();
            poll(files.data(), files.size(), 1);
            for (Connection& connection : connections_) connection.write();
        }
        for (Connection& connection : connections_)
            if (connection.is_open()) shutdown(connection.file(), SHUT_WR);
        for (Connection& connection : connections_) connection.read();
        for (Connection& connection : connections_) connection.close();
    }

    void wait(int) override {
        // Another thread may take what comes for this one: not for long.
        constexpr int kMilliseconds = 1;
        std::vector<pollfd> files;
        {
            std::lock_guard lock(mutex_);
            files = this->files();
        }
        poll(files.data(), files.size(), kMilliseconds);
        pump();
    }

  private:
    class Message : public Ticket {
      public:
        Message(TcpTransport& owner, int other, const Head& head, void* bytes, bool sends)
            : owner_(owner), other_(other), parcel_(std::make_shared<Parcel>()) {
            parcel_->head = head;
            parcel_->bytes = static_cast<char*>(bytes);
            std::lock_guard lock(owner_.mutex_);
            if (sends)
                owner_.at(other).send(parcel_);
            else
                owner_.at(other).receive(parcel_);
        }
        ~Message() override {
            std::lock_guard lock(owner_.mutex_);
            if (!parcel_->is_done) owner_.at(other_).give_up(parcel_);
        }
        bool is_done() override {
            std::lock_guard lock(owner_.mutex_);
            if (!parcel_->problem.empty())
                throw state_error("communication", str("rank ", other_, ": ", parcel_->problem));
            return parcel_->is_done;
        }

      private:
        TcpTransport& owner_;
        const int other_;
        const ParcelHandle parcel_;
    };

    Connection& at(int rank) { return connections_[static_cast<size_t>(rank)]; }

    void connect(const Environment& environment, double seconds) {
        constexpr double kPatience = 30;
        constexpr size_t kLongest = 4096;
        Descriptor listener;
        const std::vector<std::string> addresses =
            meet({environment.address, environment.job, environment.secret, rank_, ranks_, seconds},
                 [&](const std::string& host) {
                     if (!listener) listener.reset(listen_at(host, 0).release());
                     const bool is_v6 = host.find(':') != std::string::npos;
                     return str(is_v6 ? "[" : "", host, is_v6 ? "]:" : ":", port_of(listener));
                 });
        for (int other = 0; other < rank_; ++other) {
            const auto [host, port] = split_address(addresses[static_cast<size_t>(other)]);
            Descriptor socket(connect_to(host, port).release());
            if (!socket)
                throw state_error("communication", str("rank ", rank_, " cannot connect to rank ", other, " at ",
                                                       addresses[static_cast<size_t>(other)]));
            send_text(socket, environment.job, kPatience);
            send_text(socket, environment.secret, kPatience);
            send_all(socket, {reinterpret_cast<const char*>(&rank_), sizeof rank_}, kPatience);
            at(other).open(std::move(socket));
        }
        const auto end = Clock::now() + std::chrono::duration<double>(kPatience);
        for (int come = rank_ + 1; come < ranks_;) {
            if (Clock::now() > end)
                throw state_error("communication", str("rank ", rank_, ": not all others have connected"));
            constexpr int kLook = 50;
            Descriptor socket(accept_from(listener, kLook).release());
            if (!socket) continue;
            int other = -1;
            try {
                const bool is_ours = receive_text(socket, kLongest, kPatience) == environment.job &&
                                     same_secret(receive_text(socket, kLongest, kPatience), environment.secret);
                if (!is_ours) continue;
                receive_all(socket, &other, sizeof other, kPatience);
            } catch (const Error& e) {
                if (e.kind() == ErrorKind::interrupt) throw;
                continue;
            }
            if (other <= rank_ || other >= ranks_ || at(other).is_open()) continue;
            at(other).open(std::move(socket));
            ++come;
        }
    }

    void pump() {
        std::lock_guard lock(mutex_);
        for (Connection& connection : connections_) {
            connection.write();
            connection.read();
        }
    }

    std::vector<pollfd> files() const {
        std::vector<pollfd> files;
        for (const Connection& connection : connections_)
            if (const int file = connection.file(); file >= 0)
                files.push_back({file, static_cast<short>(POLLIN | (connection.has_to_send() ? POLLOUT : 0)), 0});
        return files;
    }

    const int rank_, ranks_;
    std::mutex mutex_;
    std::vector<Connection> connections_;  // by rank; that of this rank is closed
};

}  // namespace

std::unique_ptr<Communicator> make_tcp(const Environment& environment, double seconds) {
    return std::make_unique<MessageCommunicator>(std::make_unique<TcpTransport>(environment, seconds), environment.job);
}

}  // namespace lunaria::parallel
