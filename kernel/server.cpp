#include "kernel/server.h"
#include "core/base/signals.h"

#include <xeus/xguid.hpp>
#include <xeus/xmiddleware.hpp>

#include "interpreter/session/session.h"
#include "kernel/requests.h"

namespace lunaria::jupyter {

namespace {

constexpr const char* kProtocol = "5.4";

std::string type_of(const nl::json& header) { return header.value("msg_type", ""); }

// Fields of replies that xeus leaves out or that the protocol calls otherwise.
nl::json mended(const std::string& type, nl::json content, bool has_debugger) {
    if (!type.ends_with("_reply") || !content.is_object()) return content;
    if (!content.contains("status")) content["status"] = "ok";
    if (type == "kernel_info_reply") {
        content["protocol_version"] = kProtocol;
        content["debugger"] = has_debugger;
        content["supported_features"] = nl::json::array({"kernel subshells"});
        if (has_debugger) content["supported_features"].push_back("debugger");
    }
    return content;
}

// The number of published messages that a client may leave unread before it delays the others.
constexpr int kUnreadMessages = 256;
// The time for which a request runs without requests of other shells: cells, and all other requests, which mostly end
// at once.
constexpr auto kCellSettles = std::chrono::milliseconds(30);
constexpr auto kMessageSettles = std::chrono::milliseconds(1000);

void bind(zmq::socket_t& socket, const xeus::xconfiguration& c, const std::string& port, int most_unread = 0) {
    // No limit except for publications: a client that sends a thousand requests before it reads an answer gets all
    // answers.
    socket.set(zmq::sockopt::sndhwm, most_unread);
    socket.set(zmq::sockopt::rcvhwm, 0);
    socket.set(zmq::sockopt::maxmsgsize, static_cast<int64_t>(Wire::kLargestMessage));
    xeus::init_socket(socket, c.m_transport, c.m_ip, port);
}

}  // namespace

// Xeus needs one for requests of a debugger in another process.
class Server::Messenger final : public xeus::xcontrol_messenger {
    nl::json send_to_shell_impl(const nl::json&) override { return {{"status", "error"}}; }
};

// While it lives, published output belongs to this request.
class Server::Serving {
  public:
    Serving(Server& server, Current current) : server_(server) {
        const std::lock_guard lock(server_.current_mutex_);
        server_.last_parent_ = current.header;
        server_.current_.push_back(std::move(current));
    }
    ~Serving() {
        const std::lock_guard lock(server_.current_mutex_);
        server_.current_.pop_back();
        if (!server_.current_.empty()) server_.last_parent_ = server_.current_.back().header;
    }
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

  private:
    Server& server_;
};

Server::Server(Context& context, const xeus::xconfiguration& c)
    : context_(context),
      wire_(c.m_signature_scheme, context.key),
      messenger_(std::make_unique<Messenger>()),
      shell_(context.zmq, zmq::socket_type::router),
      control_socket_(context.zmq, zmq::socket_type::router),
      stdin_(context.zmq, zmq::socket_type::router),
      iopub_(context.zmq, zmq::socket_type::xpub),
      heartbeat_(context.zmq, zmq::socket_type::rep),
      streams_([this](const char* name, std::string text) { publish_text(name, std::move(text)); },
               [this] { outbox_.wake(); }) {
    if (context.key.empty())
        context.log->line("the connection file has no key: whoever reaches the ports can run code");
    // A client may come back under its old identity.
    for (zmq::socket_t* socket : {&shell_, &control_socket_, &stdin_}) socket->set(zmq::sockopt::router_handover, true);
    // Every subscription is reported, also one to a topic that another client has, and welcome() makes it take effect.
    iopub_.set(zmq::sockopt::xpub_manual, true);
    bind(shell_, c, c.m_shell_port);
    bind(control_socket_, c, c.m_control_port);
    bind(stdin_, c, c.m_stdin_port);
    bind(iopub_, c, c.m_iopub_port, kUnreadMessages);
    bind(heartbeat_, c, c.m_hb_port);
}

Server::~Server() {
    io_stopped_ = true;
    outbox_.wake();
    if (heart_.joinable()) heart_.join();
    control_.reset();
    debug_.reset();
    if (io_.joinable()) io_.join();
}

void Server::update_config_impl(xeus::xconfiguration& c) const {
    c.m_shell_port = xeus::get_socket_port(shell_);
    c.m_control_port = xeus::get_socket_port(control_socket_);
    c.m_stdin_port = xeus::get_socket_port(stdin_);
    c.m_iopub_port = xeus::get_socket_port(iopub_);
    c.m_hb_port = xeus::get_socket_port(heartbeat_);
}

nl::json Server::header(const std::string& type) {
    nl::json result = xeus::make_header(type, "kernel", "");
    result["version"] = kProtocol;
    return with_session(std::move(result));
}

nl::json Server::with_session(nl::json header) {
    static const std::string session(xeus::new_xguid().c_str());
    header["session"] = session;
    return header;
}

std::optional<Server::Current> Server::current() const {
    const std::lock_guard lock(current_mutex_);
    if (current_.empty()) return std::nullopt;
    return current_.back();
}

void Server::publish(const std::string& type, const nl::json& parent, nl::json content, xeus::buffer_sequence buffers) {
    xeus::xpub_message message("kernel." + type, header(type), parent, nl::json::object(), std::move(content),
                               std::move(buffers));
    outbox_.put(Channel::iopub, wire_.write(std::move(message)));
}

void Server::status(const nl::json& parent, const char* state) {
    publish("status", parent, {{"execution_state", state}});
}

void Server::publish_text(const char* name, std::string text) {
    nl::json parent;
    {
        const std::lock_guard lock(current_mutex_);
        // Output of a thread or a child process after its cell still belongs to that cell.
        parent = current_.empty() ? last_parent_ : current_.back().header;
    }
    publish("stream", parent, {{"name", name}, {"text", std::move(text)}});
}

void Server::publish_debug_event(nl::json event) {
    nl::json parent;
    {
        const std::lock_guard lock(current_mutex_);
        parent = last_parent_;
    }
    publish("debug_event", parent, std::move(event));
}

void Server::reply(Channel channel, const xeus::xmessage& request, const std::string& type, nl::json content) {
    xeus::xmessage message(request.identities(), header(type), request.header(), nl::json::object(),
                           mended(type, std::move(content), has_debugger()), {});
    outbox_.put(channel, wire_.write(std::move(message)));
}

void Server::refuse(Channel channel, const xeus::xmessage& request, const std::string& complaint) {
    context_.log->line("a bad request: " + complaint);
    status(request.header(), "busy");
    const std::string type = reply_type(type_of(request.header()));
    if (!type.empty())
        reply(channel, request, type,
              {{"status", "error"},
               {"ename", "BadRequest"},
               {"evalue", complaint},
               {"traceback", nl::json::array({"BadRequest: " + complaint})}});
    status(request.header(), "idle");
}

xeus::xcontrol_messenger& Server::get_control_messenger_impl() { return *messenger_; }

void Server::send_shell_impl(xeus::xmessage message) {
    const std::string type = type_of(message.header());
    nl::json content = mended(type, message.content(), has_debugger());
    const auto request = current();
    if (request && content.contains("execution_count")) content["execution_count"] = request->count;
    if (request && request->stop_on_error && content["status"] == "error") abort_waiting(request->shell);
    // Xeus answers the request that came last, even if it came within another.
    outbox_.put(Channel::shell, wire_.write(xeus::xmessage(
                                    request ? request->identities : message.identities(),
                                    with_session(message.header()), request ? request->header : message.parent_header(),
                                    message.metadata(), std::move(content), std::move(message).buffers())));
}

void Server::send_control_impl(xeus::xmessage message) {
    nl::json content = mended(type_of(message.header()), message.content(), has_debugger());
    outbox_.put(Channel::control,
                wire_.write(xeus::xmessage(message.identities(), with_session(message.header()),
                                           message.parent_header(), message.metadata(), std::move(content), {})));
}

void Server::send_stdin_impl(xeus::xmessage message) { outbox_.put(Channel::stdin, wire_.write(std::move(message))); }

// A cell that publishes faster than its clients read goes at their pace.
void Server::wait_for_room() {
    while (outbox_.unpublished() > kMostUnpublished && !stopped_ && !program_interrupt_requested())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void Server::write(bool is_error, std::string_view text) {
    wait_for_room();
    streams_.write(is_error, text);
}

void Server::publish_as(const xeus::xpub_message& message, const nl::json& parent, nl::json content) {
    outbox_.put(Channel::iopub, wire_.write(xeus::xpub_message(message.topic(), with_session(message.header()), parent,
                                                               message.metadata(), std::move(content),
                                                               xeus::buffer_sequence(message.buffers()))));
}

void Server::publish_impl(xeus::xpub_message message, xeus::channel channel) {
    const auto request = channel == xeus::channel::SHELL ? current() : std::nullopt;
    if (!request) return publish_as(message, message.parent_header(), message.content());
    wait_for_room();
    nl::json content = message.content();
    if (content.contains("execution_count")) content["execution_count"] = request->count;
    // Text that was written before stays before, and all of it before idle.
    if (content.value("execution_state", "") == "idle")
        streams_.finish_cell();
    else
        streams_.flush();
    publish_as(message, request->header, std::move(content));
}

void Server::send_comm(const CommMessage& message) {
    static constexpr const char* kTypes[] = {"comm_open", "comm_msg", "comm_close"};
    note_comm(message);
    nl::json content = {{"comm_id", message.id}, {"data", nl::json::parse(message.data, nullptr, false)}};
    if (message.kind == CommMessage::Kind::open) content["target_name"] = message.target;
    xeus::buffer_sequence buffers;
    for (const std::string& buffer : message.buffers) buffers.emplace_back(buffer.begin(), buffer.end());
    const std::string type = kTypes[static_cast<size_t>(message.kind)];
    wait_for_room();
    streams_.flush();
    const auto request = current();
    xeus::xpub_message sent("kernel." + type, header(type), request ? request->header : nl::json::object(),
                            nl::json::parse(message.metadata, nullptr, false), std::move(content), std::move(buffers));
    outbox_.put(Channel::iopub, wire_.write(std::move(sent)));
}

void Server::note_comm(const CommMessage& message) {
    const std::lock_guard lock(comms_mutex_);
    if (message.kind == CommMessage::Kind::open) comms_[message.id] = message.target;
    if (message.kind == CommMessage::Kind::close) comms_.erase(message.id);
}

nl::json Server::comms(const std::string& target) {
    const std::lock_guard lock(comms_mutex_);
    nl::json found = nl::json::object();
    for (const auto& [id, name] : comms_)
        if (target.empty() || name == target) found[id] = {{"target_name", name}};
    return {{"status", "ok"}, {"comms", std::move(found)}};
}

std::optional<std::string> Server::ask(const std::string& prompt, bool password) {
    const auto request = current();
    if (!request || !request->allow_stdin)
        throw state_error("input", "this front end takes no questions")
            .hint("run the cell from a notebook or a console, or take the value from a variable");
    streams_.flush();
    xeus::xmessage message(request->identities, header("input_request"), request->header, nl::json::object(),
                           {{"prompt", prompt}, {"password", password}}, {});
    // An answer to an earlier question that was interrupted is not an answer to this one.
    Question question{message.header()["msg_id"], std::nullopt};
    std::unique_lock lock(queue_mutex_);
    questions_.push_back(&question);
    outbox_.put(Channel::stdin, wire_.write(std::move(message)));
    // A signal does not end the wait, so that the flag is checked in the loop.
    while (!question.answer && !stopped_ && !program_interrupt_requested()) {
        queue_changed_.wait_for(lock, std::chrono::milliseconds(20));
        if (!program_visit_requested()) continue;
        lock.unlock();
        lunaria::visit();
        lock.lock();
    }
    questions_.pop_back();
    return std::move(question.answer);
}

void Server::start_threads() {
    control_ = std::make_unique<Worker>();
    debug_ = std::make_unique<Worker>();
    io_ = std::thread([this] { run_io(); });
    heart_ = std::thread([this] { run_heartbeat(); });
}

void Server::start_impl(xeus::xpub_message message) {
    publish_as(message, message.parent_header(), message.content());
    run_main();
}

void Server::stop_impl() {
    stopped_ = true;
    queue_changed_.notify_all();
}

void Server::wake() {
    {
        const std::lock_guard lock(queue_mutex_);
        wake_requested_ = true;
    }
    queue_changed_.notify_all();
    call_main();
}

void Server::run_main() {
    while (!stopped_) {
        {
            std::unique_lock lock(queue_mutex_);
            queue_changed_.wait_for(lock, std::chrono::seconds(1),
                                    [this] { return stopped_ || wake_requested_ || !requests_.empty(); });
        }
        if (stopped_) break;
        wake_host();
        if (auto request = next_request()) serve_next(std::move(*request));
    }
    streams_.finish_cell();
    main_ended_ = true;
}

void Server::serve(xeus::xmessage message) {
    const std::string type = type_of(message.header());
    nl::json content = message.content();
    if (const auto complaint = complete_content(type, content)) {
        refuse(Channel::shell, message, *complaint);
        return;
    }
    Current request{message.identities(), message.header(), shell_of(message.header())};
    request.settled = Clock::now() + (type == "execute_request" ? kCellSettles : kMessageSettles);
    if (type == "execute_request") {
        request.allow_stdin = content["allow_stdin"];
        request.stop_on_error = content["stop_on_error"] && !content["silent"];
        const bool store = content["store_history"] && !content["silent"];
        request.count = host_->next_count(content["code"], store);
    }
    xeus::xmessage complete(message.identities(), message.header(), message.parent_header(), message.metadata(),
                            std::move(content), std::move(message).buffers());
    {
        const Serving serving(*this, std::move(request));
        // A request that came a moment ago found nothing to interrupt; for requests the thread of the sockets checks.
        if (is_called()) host_->ask_for_visit();
        try {
            dispatch(std::move(complete), type);
        } catch (const std::exception& e) {
            context_.log->line(type + ": " + e.what());
        }
    }
}

void Server::dispatch(xeus::xmessage message, const std::string& type) {
    const nl::json header = message.header();
    if (type == "shutdown_request") {
        status(header, "busy");
        reply(Channel::shell, message, "shutdown_reply", {{"status", "ok"}, {"restart", message.content()["restart"]}});
        status(header, "idle");
        stop_impl();
        host_->interrupt();  // the cell of another shell, within which this request came
    } else if (type == "comm_info_request") {
        status(header, "busy");
        reply(Channel::shell, message, "comm_info_reply", comms(message.content()["target_name"]));
        status(header, "idle");
    } else if (type.starts_with("comm_")) {
        status(header, "busy");
        CommMessage comm;
        comm.kind = type == "comm_open"    ? CommMessage::Kind::open
                    : type == "comm_close" ? CommMessage::Kind::close
                                           : CommMessage::Kind::message;
        comm.id = message.content()["comm_id"];
        comm.target = message.content().value("target_name", "");
        comm.data = message.content()["data"].dump();
        comm.metadata = message.metadata().dump();
        for (const xeus::binary_buffer& buffer : message.buffers())
            comm.buffers.emplace_back(buffer.begin(), buffer.end());
        note_comm(comm);
        host_->receive_comm(comm);
        streams_.finish_cell();
        status(header, "idle");
    } else {
        notify_shell_listener(std::move(message));
    }
}

// Done by abort_waiting: xeus calls this when the front end has the answer and may have gone on.
void Server::abort_queue_impl(const listener&, long) {}

void Server::answer_aborted(const xeus::xmessage& request) {
    status(request.header(), "busy");
    reply(Channel::shell, request, "execute_reply",
          {{"status", "aborted"},
           {"ename", "Aborted"},
           {"evalue", "a cell before this one failed"},
           {"traceback", nl::json::array()},
           {"execution_count", host_->next_count("", false)}});
    status(request.header(), "idle");
}

std::unique_ptr<xeus::xserver> make_server(xeus::xcontext& context, const xeus::xconfiguration& configuration,
                                           nl::json::error_handler_t) {
    auto& ours = context.get_wrapped_context<Context>();
    auto server = std::make_unique<Server>(ours, configuration);
    ours.server = server.get();
    return server;
}

}  // namespace lunaria::jupyter
