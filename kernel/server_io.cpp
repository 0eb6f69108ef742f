// The threads that own the sockets.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/base/signals.h"
#include "interpreter/session/session.h"
#include "kernel/requests.h"
#include "kernel/server.h"

namespace lunaria::jupyter {

namespace {

constexpr int kBatch = 100;         // messages of a socket before the next one has its turn
constexpr int kLongestWait = 1000;  // ms
constexpr int kHeartbeatWait = 250;
constexpr int kDeafTicks = 8;
constexpr auto kNextCall = std::chrono::milliseconds(10);  // of a program that could not be visited
constexpr int kRetryWait = 5;                              // ms, while a client's queue is full
constexpr auto kIoPatience = std::chrono::seconds(10);     // with a client that does not read

}  // namespace

int Server::poll_timeout() {
    if (!publications_.empty()) return kRetryWait;
    int64_t wait = kLongestWait;
    auto until = [&](Clock::time_point time) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(time - Clock::now()).count();
        wait = std::clamp<int64_t>(left + 1, 0, wait);
    };
    if (const auto due = streams_.due()) until(*due);
    if (const auto call = call_time(); call && !program_visit_requested())
        until(std::max(*call, Clock::now() + kNextCall));
    return static_cast<int>(wait);
}

void Server::run_io() {
    const pid_t parent = getppid();
    // Set by front ends that start kernels; a kernel that is started by hand may outlive its shell.
    const bool has_parent = std::getenv("JPY_PARENT_PID") != nullptr;
    bool orphaned = false;
    while (!io_stopped_) {
        std::array<zmq_pollitem_t, 7> items = {{{shell_.handle(), 0, ZMQ_POLLIN, 0},
                                                {control_socket_.handle(), 0, ZMQ_POLLIN, 0},
                                                {stdin_.handle(), 0, ZMQ_POLLIN, 0},
                                                {iopub_.handle(), 0, ZMQ_POLLIN, 0},
                                                {nullptr, outbox_.wake_file(), ZMQ_POLLIN, 0},
                                                {nullptr, streams_.file(false), ZMQ_POLLIN, 0},
                                                {nullptr, streams_.file(true), ZMQ_POLLIN, 0}}};
        // Without captured output there are no pipes to poll after the outbox. While clients are far behind, writers
        // into the pipes have to wait as well.
        const bool reads_pipes = streams_.file(false) >= 0 && outbox_.unpublished() <= kMostUnpublished;
        const int count = reads_pipes ? 7 : 5;
        if (zmq_poll(items.data(), count, poll_timeout()) < 0 && zmq_errno() != EINTR) {
            context_.log->line(std::string("the sockets cannot be read: ") + zmq_strerror(zmq_errno()));
            return;
        }
        if (items[1].revents) receive(control_socket_, Channel::control);
        if (items[0].revents) receive(shell_, Channel::shell);
        if (items[2].revents) receive(stdin_, Channel::stdin);
        if (items[3].revents) welcome();
        if (count > 5 && (items[5].revents || items[6].revents)) streams_.drain();
        streams_.flush_due();
        send_letters();
        if (!program_visit_requested() && is_called()) call_main();
        if (has_parent && !orphaned && getppid() != parent) {
            orphaned = true;
            context_.log->line("the process that started it is gone");
            control_->add([this] { shut_down(); });
        }
    }
    drops_ = true;
    send_letters();
}

void Server::send_letters() {
    for (Outbox::Letter& letter : outbox_.take()) {
        if (letter.channel == Channel::iopub) {
            publications_.push_back(std::move(letter.frames));
            continue;
        }
        zmq::socket_t& socket = letter.channel == Channel::shell     ? shell_
                                : letter.channel == Channel::control ? control_socket_
                                                                     : stdin_;
        try {
            letter.frames.send(socket);
        } catch (const zmq::error_t& e) {
            context_.log->line(std::string("a message could not be sent: ") + e.what());
        }
    }
    publish_letters();
}

void Server::publish_letters() {
    while (!publications_.empty()) {
        const size_t size = size_of(publications_.front());
        try {
            if (!send_publication(publications_.front())) return;
        } catch (const zmq::error_t& e) {
            context_.log->line(std::string("a message could not be published: ") + e.what());
        }
        outbox_.sent(size);
        publications_.pop_front();
    }
}

// False when a client's queue is full and may still be read. Queues are counted in messages by ZeroMQ, in bytes by the
// outbox; a client that reads nothing for a long time loses messages that do not fit, the others do not.
bool Server::send_publication(zmq::multipart_t& frames) {
    const auto send = [&](bool may_drop) {
        iopub_.set(zmq::sockopt::xpub_nodrop, !may_drop);
        for (size_t i = 0; i < frames.size(); ++i) {
            const auto more = i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none;
            // The queues are checked with the first part, all others follow it.
            if (!iopub_.send(frames[i], more | zmq::send_flags::dontwait)) return false;
        }
        return true;
    };
    const auto now = Streams::Clock::now();
    if (send(false)) {
        full_since_.reset();
        if (std::exchange(drops_, false)) context_.log->line("all clients read again");
        return true;
    }
    if (!full_since_) full_since_ = now;
    if (!drops_ && now - *full_since_ < kIoPatience) return false;
    if (!std::exchange(drops_, true))
        context_.log->line("a client does not read what is published; it loses what does not fit its queue");
    return send(true);
}

void Server::receive(zmq::socket_t& socket, Channel channel) {
    for (int i = 0; i < kBatch; ++i) {
        zmq::multipart_t frames;
        try {
            if (!frames.recv(socket, ZMQ_DONTWAIT)) return;
            route(wire_.read(frames), channel);
        } catch (const zmq::error_t& e) {
            if (e.num() != EINTR) context_.log->line(std::string("a message could not be read: ") + e.what());
            return;
        } catch (const std::exception& e) {
            context_.log->line(std::string("dropped a message: ") + e.what());
        }
    }
}

void Server::route(xeus::xmessage message, Channel channel) {
    const std::string type = message.header()["msg_type"];
    if (channel == Channel::control) {
        if (type == "debug_request") {
            debug_->add([this, request = std::make_shared<xeus::xmessage>(std::move(message))] {
                serve_debug(std::move(*request));
            });
        } else {
            control_->add([this, request = std::make_shared<xeus::xmessage>(std::move(message))] {
                serve_control(std::move(*request));
            });
        }
        return;
    }
    if (channel == Channel::stdin) {
        take_answer(std::move(message));
        return;
    }
    if (!is_request(type)) throw Refused("messages of type " + type + " are not known");
    const std::string shell = shell_of(message.header());
    bool known = true;
    {
        const std::lock_guard lock(queue_mutex_);
        known = shell.empty() || shells_.contains(shell);
        if (known) requests_.push_back({std::move(message), shell});
    }
    if (!known) return refuse(Channel::shell, message, "there is no subshell " + shell);
    queue_changed_.notify_all();
}

void Server::take_answer(xeus::xmessage message) {
    nl::json content = message.content();
    const std::string type = message.header()["msg_type"];
    if (type != "input_reply" || complete_content(type, content)) throw Refused("it is no answer to a question");
    const std::string id = message.parent_header().value("msg_id", nl::json()).dump();
    const std::lock_guard lock(queue_mutex_);
    if (questions_.empty()) throw Refused("nothing has been asked");
    // Not every front end names the question that it answers.
    const auto asked =
        std::ranges::find_if(questions_, [&](const Question* q) { return nl::json(q->id).dump() == id; });
    (asked != questions_.end() ? *asked : questions_.back())->answer = content["value"];
    queue_changed_.notify_all();
}

// A subscriber is told when its subscription has taken effect, so that it misses nothing after that. ZeroMQ would let
// it take effect in the middle of other messages; here it does so with its welcome, which goes out before everything
// that waits.
void Server::welcome() {
    for (int i = 0; i < kBatch; ++i) {
        zmq::message_t frame;
        if (!iopub_.recv(frame, zmq::recv_flags::dontwait)) return;
        const std::string_view text = frame.to_string_view();
        if (text.empty() || static_cast<uint8_t>(text[0]) > 1) continue;
        const std::string topic(text.substr(1));
        if (text[0] == 0) {
            iopub_.set(zmq::sockopt::unsubscribe, topic);
            continue;
        }
        iopub_.set(zmq::sockopt::subscribe, topic);
        xeus::xpub_message message(topic.empty() ? "kernel.iopub_welcome" : topic, header("iopub_welcome"),
                                   nl::json::object(), nl::json::object(), {{"subscription", topic}}, {});
        publications_.push_front(wire_.write(std::move(message)));
        outbox_.add_unpublished(size_of(publications_.front()));
        publish_letters();
    }
}

// Lua cannot be stopped in a finalizer nor while C code runs: a user who waits for that is told.
void Server::watch_interrupt() {
    if (!program_interrupt_requested() || !current()) {
        deaf_ticks_ = 0;
    } else if (++deaf_ticks_ == kDeafTicks) {
        publish_text(
            "stderr",
            "The cell has been interrupted but does not stop: it is in a finalizer (__gc) or in a long call of a C "
            "library. If it does not end, restart the kernel.\n");
    }
}

void Server::run_heartbeat() {
    while (!io_stopped_) {
        watch_interrupt();
        zmq_pollitem_t item = {heartbeat_.handle(), 0, ZMQ_POLLIN, 0};
        if (zmq_poll(&item, 1, kHeartbeatWait) <= 0) continue;
        try {
            zmq::multipart_t frames;
            if (frames.recv(heartbeat_, ZMQ_DONTWAIT)) frames.send(heartbeat_);
        } catch (const zmq::error_t& e) {
            context_.log->line(std::string("heartbeat: ") + e.what());
        }
    }
}

}  // namespace lunaria::jupyter
