// The kernel's sockets. Xeus's own servers die of a signal, of a short frame and of a cell's invalid UTF-8, and they
// ignore interrupts, so this one takes their place (xeus::xkernel's server_builder); dispatch stays with xeus.
//
// Threads: only the caller of start() runs Lua; `io` owns all sockets but the heartbeat's, which has a thread to
// itself; `control_` answers the control channel, so that an interrupt is heard while a cell runs; `debug_` answers the
// debugger. Requests reach the main thread through a queue, and messages leave through the outbox.
//
// Shells: beside the main shell front ends may open others (subshells), whose requests do not wait for a cell of
// another shell. There is one thread for Lua, so that such a request is served in the middle of the running cell, at
// its next safe point, and the cell goes on afterwards. Requests of one shell keep their order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include <xeus/xeus_context.hpp>
#include <xeus/xserver.hpp>
#include <zmq.hpp>

#include "kernel/host.h"
#include "kernel/log.h"
#include "kernel/outbox.h"
#include "kernel/streams.h"
#include "kernel/wire.h"
#include "kernel/worker.h"

namespace lunaria::jupyter {

class Server;

// The data that xeus passes on to the builder of the server.
struct Context {
    zmq::context_t zmq;
    Log* log = nullptr;
    std::string key;           // of the connection file; xeus makes one up when there is none
    Server* server = nullptr;  // the one that was built
};

class Server final : public xeus::xserver {
  public:
    // Binds the sockets. Throws zmq::error_t.
    Server(Context& context, const xeus::xconfiguration& configuration);
    ~Server() override;

    // Before start(): makes the threads, which get the signal mask of the caller.
    void start_threads();
    // Before start_threads(). The adapter may be null: then there is no debugger, and kernel_info says so.
    void set_host(Host& host) { host_ = &host; }
    void set_debug_adapter(DebugAdapter* adapter) { debug_adapter_ = adapter; }
    bool has_debugger() const { return debug_adapter_ != nullptr; }

    // On the main thread, while a cell runs: serves requests of other shells.
    void visit();
    // The execution count of the innermost request in progress.
    int count() const;

    // Takes the text of a cell.
    Streams& streams() { return streams_; }
    // On the main thread: text that Lua prints.
    void write(bool is_error, std::string_view text);

    // On the main thread, within a request: asks its front end for a line. Nothing when it is interrupted. Throws
    // Error where the front end takes no questions.
    std::optional<std::string> ask(const std::string& prompt, bool password);
    // On the main thread: a comm message to the front ends.
    void send_comm(const CommMessage& message);
    // From any thread.
    void publish_debug_event(nl::json event);
    // From any thread: lets the main thread call Host::on_wake as soon as no cell runs.
    void wake();

    static nl::json header(const std::string& type);
    // Replaces the session by a single one for all messages: messages made by xeus itself have another, and a page
    // drops messages whose session is not that of the latest one, as if they came from before a restart.
    static nl::json with_session(nl::json header);

  protected:
    xeus::xcontrol_messenger& get_control_messenger_impl() override;
    void send_shell_impl(xeus::xmessage message) override;
    void send_control_impl(xeus::xmessage message) override;
    void send_stdin_impl(xeus::xmessage message) override;
    void publish_impl(xeus::xpub_message message, xeus::channel channel) override;
    void start_impl(xeus::xpub_message message) override;
    void abort_queue_impl(const listener& l, long polling_interval) override;
    void stop_impl() override;
    void update_config_impl(xeus::xconfiguration& configuration) const override;

  private:
    static constexpr size_t kMostUnpublished = size_t{64} << 20;  // bytes
    // A request in progress. Xeus remembers one parent per channel, which is too few when a request comes within
    // another.
    using Clock = std::chrono::steady_clock;
    struct Current {
        xeus::xmessage::guid_list identities;
        nl::json header;
        std::string shell;
        int count = 0;
        bool allow_stdin = false;
        bool stop_on_error = false;
        Clock::time_point settled = {};  // from then on requests of other shells are served within it
    };
    struct Waiting {
        xeus::xmessage message;
        std::string shell;        // "" is the main one
        bool is_aborted = false;  // it follows a failed cell
    };
    // A question of a cell to its user.
    struct Question {
        std::string id;
        std::optional<std::string> answer;
    };
    class Messenger;
    class Serving;

    // The io thread.
    void run_io();
    void receive(zmq::socket_t& socket, Channel channel);
    void route(xeus::xmessage message, Channel channel);
    void take_answer(xeus::xmessage message);
    void send_letters();
    void publish_letters();
    bool send_publication(zmq::multipart_t& frames);
    void welcome();
    int poll_timeout();
    void run_heartbeat();
    void watch_interrupt();

    // The control thread.
    void serve_control(xeus::xmessage message);
    nl::json answer_control(const std::string& type, const nl::json& content);
    void serve_debug(xeus::xmessage message);
    void shut_down();

    // The main thread.
    void run_main();
    // The first request whose shell has none in progress.
    std::optional<Waiting> next_request();
    void wake_host();
    void serve_next(Waiting request);
    void serve(xeus::xmessage message);
    void dispatch(xeus::xmessage message, const std::string& type);
    void abort_waiting(const std::string& shell);
    void answer_aborted(const xeus::xmessage& request);

    void wait_for_room();
    void publish_as(const xeus::xpub_message& message, const nl::json& parent, nl::json content);

    // Any thread.
    void status(const nl::json& parent, const char* state);
    void publish(const std::string& type, const nl::json& parent, nl::json content, xeus::buffer_sequence buffers = {});
    void reply(Channel channel, const xeus::xmessage& request, const std::string& type, nl::json content);
    void publish_text(const char* name, std::string text);
    void refuse(Channel channel, const xeus::xmessage& request, const std::string& complaint);
    void note_comm(const CommMessage& message);
    nl::json comms(const std::string& target);
    std::optional<Current> current() const;
    // Lets the main thread leave its cell for requests that need not wait for it.
    void call_main();
    // The time at which the running program is to be asked for a visit; nothing if no request waits for one.
    std::optional<Clock::time_point> call_time();
    bool is_called();
    bool is_served(const std::string& shell) const;  // under current_mutex_
    nl::json create_shell();
    nl::json delete_shell(const std::string& id);
    nl::json list_shells();

    Context& context_;
    Wire wire_;
    Outbox outbox_;
    Host* host_ = nullptr;
    DebugAdapter* debug_adapter_ = nullptr;
    std::unique_ptr<Messenger> messenger_;
    zmq::socket_t shell_, control_socket_, stdin_, iopub_, heartbeat_;

    mutable std::mutex current_mutex_;
    std::vector<Current> current_;  // innermost last
    nl::json last_parent_ = nl::json::object();

    std::mutex queue_mutex_;
    std::condition_variable queue_changed_;
    std::deque<Waiting> requests_;
    std::set<std::string> shells_;      // beside the main one
    std::vector<Question*> questions_;  // innermost last
    bool wake_requested_ = false;
    std::atomic<bool> stopped_ = false;
    std::atomic<bool> io_stopped_ = false;
    std::atomic<bool> main_ended_ = false;  // no cell runs and none will

    // Publications that are not sent yet: some client's queue is full. For the io thread.
    std::deque<zmq::multipart_t> publications_;
    std::optional<Streams::Clock::time_point> full_since_;
    bool drops_ = false;  // a client has not read for long: it misses messages that others get

    std::mutex comms_mutex_;
    std::map<std::string, std::string> comms_;  // targets by id

    Streams streams_;
    int deaf_ticks_ = 0;  // of the heartbeat, since an interrupt without effect
    std::unique_ptr<Worker> control_, debug_;
    std::thread io_, heart_;
};

// The shell that a request is for, by its header; "" is the main one.
std::string shell_of(const nl::json& header);

std::unique_ptr<xeus::xserver> make_server(xeus::xcontext& context, const xeus::xconfiguration& configuration,
                                           nl::json::error_handler_t);

}  // namespace lunaria::jupyter
