#include "core/parallel/rendezvous.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/io/socket.h"

namespace lunaria::parallel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kGreeting = "lunaria ranks meet, 1";
constexpr std::string_view kWelcome = "welcome", kOtherJob = "another job meets here";
constexpr int kPorts = 16;
constexpr size_t kLongest = size_t{1} << 16;
constexpr double kPatience = 1;  // seconds for one message
constexpr int kLook = 50;        // milliseconds between looks at interrupts

std::string missing(const std::vector<std::string>& texts) {
    std::string list;
    int count = 0;
    constexpr int kTold = 10;
    for (size_t rank = 0; rank < texts.size(); ++rank)
        if (texts[rank].empty() && ++count <= kTold) list += str(list.empty() ? "" : ", ", rank);
    return str(count == 1 ? "rank " : "ranks ", list, count > kTold ? " and others" : "");
}

// Rank 0.
class Host {
  public:
    explicit Host(const Meeting& meeting)
        : meeting_(meeting), texts_(static_cast<size_t>(meeting.ranks)), guests_(texts_.size()) {
        const auto [host, port] = split_address(meeting.address);
        for (int i = 0; i < kPorts && !listener_; ++i) listener_.reset(listen_at(host, port + i).release());
        if (!listener_) throw state_error("communication", str("all ports from ", meeting.address, " on are taken"));
    }

    std::vector<std::string> run(const std::function<std::string(const std::string&)>& text) {
        texts_[0] = text(own_host(listener_));
        const auto end = Clock::now() + std::chrono::duration<double>(meeting_.seconds);
        for (int come = 1; come < meeting_.ranks;) {
            poll_interrupt();
            if (Clock::now() > end)
                throw state_error("communication", str(missing(texts_), " of ", meeting_.ranks, " did not come to ",
                                                       meeting_.address, " within ", meeting_.seconds, " s"));
            const Descriptor guest(accept_from(listener_, kLook).release());
            if (guest && receive(guest)) ++come;
        }
        for (int rank = 1; rank < meeting_.ranks; ++rank)
            for (const std::string& each : texts_) send_text(*guests_[static_cast<size_t>(rank)], each, kPatience);
        return texts_;
    }

  private:
    // Whether it was a rank of this job.
    bool receive(const Descriptor& guest) {
        try {
            if (receive_text(guest, kGreeting.size(), kPatience) != kGreeting) return false;
            const std::string job = receive_text(guest, kLongest, kPatience);
            const std::string secret = receive_text(guest, kLongest, kPatience);
            int32_t places[2] = {};
            receive_all(guest, places, sizeof places, kPatience);
            std::string text = receive_text(guest, kLongest, kPatience);
            const std::string refusal = refuse(job, secret, places[0], places[1], text);
            send_text(guest, refusal.empty() ? kWelcome : refusal, kPatience);
            if (!refusal.empty()) return false;
            const auto rank = static_cast<size_t>(places[0]);
            texts_[rank] = std::move(text);
            guests_[rank] = std::make_unique<Descriptor>(dup(guest.number()));
            return true;
        } catch (const Error& e) {
            if (e.kind() == ErrorKind::interrupt) throw;
            return false;  // no rank, or one that has ended
        }
    }

    std::string refuse(const std::string& job, const std::string& secret, int rank, int ranks,
                       const std::string& text) const {
        if (job != meeting_.job || !same_secret(secret, meeting_.secret)) return std::string(kOtherJob);
        if (ranks != meeting_.ranks)
            return str("rank 0 counts ", meeting_.ranks, " ranks and rank ", rank, " counts ", ranks);
        if (rank < 1 || rank >= ranks || text.empty()) return str("there is no rank ", rank);
        if (!texts_[static_cast<size_t>(rank)].empty()) return str("there are two processes of rank ", rank);
        return "";
    }

    const Meeting& meeting_;
    Descriptor listener_;
    std::vector<std::string> texts_;
    std::vector<std::unique_ptr<Descriptor>> guests_;
};

// Whether the connection leads to rank 0 of this job; another program may listen at the port.
bool greet(const Descriptor& socket, const Meeting& meeting, const std::string& text) {
    std::string answer;
    try {
        send_text(socket, kGreeting, kPatience);
        send_text(socket, meeting.job, kPatience);
        send_text(socket, meeting.secret, kPatience);
        const int32_t places[2] = {meeting.rank, meeting.ranks};
        send_all(socket, {reinterpret_cast<const char*>(places), sizeof places}, kPatience);
        send_text(socket, text, kPatience);
        answer = receive_text(socket, kLongest, kPatience);
    } catch (const Error& e) {
        if (e.kind() == ErrorKind::interrupt) throw;
        return false;
    }
    if (answer == kWelcome) return true;
    if (answer == kOtherJob) return false;
    throw state_error("communication", str("rank ", meeting.rank, " is refused at ", meeting.address, ": ", answer))
        .hint("the ranks of a job have different numbers, and all know how many they are");
}

std::vector<std::string> visit(const Meeting& meeting, const std::function<std::string(const std::string&)>& text) {
    const auto [host, port] = split_address(meeting.address);
    const auto end = Clock::now() + std::chrono::duration<double>(meeting.seconds);
    for (int round = 0; Clock::now() < end; ++round) {
        poll_interrupt();
        const Descriptor socket(connect_to(host, port + round % kPorts).release());
        if (socket && greet(socket, meeting, text(own_host(socket)))) {
            std::vector<std::string> texts;
            const double left = std::chrono::duration<double>(end - Clock::now()).count();
            for (int rank = 0; rank < meeting.ranks; ++rank) texts.push_back(receive_text(socket, kLongest, left));
            return texts;
        }
        if (round % kPorts == kPorts - 1) usleep(kLook * 1000);
    }
    throw state_error("communication", str("rank ", meeting.rank, " has not found rank 0 at ", meeting.address,
                                           " within ", meeting.seconds, " s"))
        .hint("all ranks of a job have the same address, LUNARIA_JOB and LUNARIA_SECRET");
}

}  // namespace

std::vector<std::string> meet(const Meeting& meeting, const std::function<std::string(const std::string& host)>& text) {
    if (meeting.address.empty())
        throw state_error("communication", "no address is known at which the ranks of several machines meet")
            .hint("set LUNARIA_ADDRESS to host:port of rank 0 in all ranks, or start them by lunaria launch --nodes");
    if (meeting.rank == 0) return Host(meeting).run(text);
    return visit(meeting, text);
}

}  // namespace lunaria::parallel
