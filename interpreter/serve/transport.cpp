// The transport of servers, by cpp-httplib. Its own server reads lines of any length and looks for the next
// request a hundred times a second; here, a connection's bytes come by way of a stream that counts them and waits in
// poll().
#include <fcntl.h>
#include <httplib.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "interpreter/serve/http.h"

namespace lunaria::serve {

namespace {

// One connection. read() gives at most kMostHead bytes until body() is called, the largest body thereafter.
class Connection final : public httplib::Stream {
  public:
    Connection(int socket, size_t most_body) : socket_(socket), most_body_(most_body) {}

    void next_request() { left_ = kMostHead; }
    // Whether the other side has sent something, or will within the time for which a connection may be idle.
    bool wait() const { return at_ < there_ || is_ready(POLLIN); }
    void body() { left_ = most_body_ + kMostHead; }

    bool is_readable() const override { return true; }
    bool is_writable() const override { return is_ready(POLLOUT); }
    ssize_t read(char* to, size_t count) override {
        if (at_ == there_) {
            if (!is_ready(POLLIN)) return -1;
            const ssize_t got = recv(socket_, kept_, sizeof kept_, 0);
            if (got <= 0) return got;
            at_ = 0;
            there_ = static_cast<size_t>(got);
        }
        const size_t given = std::min({count, there_ - at_, left_});
        if (given == 0) return -1;
        memcpy(to, kept_ + at_, given);
        at_ += given;
        left_ -= given;
        return static_cast<ssize_t>(given);
    }
    ssize_t write(const char* from, size_t count) override {
        return is_ready(POLLOUT) ? send(socket_, from, count, MSG_NOSIGNAL) : -1;
    }
    using Stream::write;
    void get_remote_ip_and_port(std::string&, int&) const override {}
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return socket_; }

  private:
    bool is_ready(short events) const {
        pollfd one = {socket_, events, 0};
        return poll(&one, 1, kIdle * 1000) == 1 && (one.revents & events);
    }
    int socket_;
    size_t most_body_;
    char kept_[4096];
    size_t at_ = 0, there_ = 0, left_ = 0;
};

// The threads run one connection each.
class Transport final : public HttpTransport, private httplib::Server {
  public:
    Transport(int socket, HttpHandler handler, const HttpLimits& limits)
        : listening_(socket), handler_(std::move(handler)), limits_(limits) {
        set_payload_max_length(limits.most_body);
        set_keep_alive_timeout(kIdle);
        fcntl(socket, F_SETFL, O_NONBLOCK);
        // The library writes parts of answers only while it has a socket to listen at.
        svr_sock_ = socket;
        const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
            give(handler_(asked(request)), response);
        };
        set_pre_routing_handler([=](const httplib::Request& request, httplib::Response& response) {
            // A request with a body is routed when that is read.
            if (takes_body(request.method)) return HandlerResponse::Unhandled;
            answer(request, response);
            return HandlerResponse::Handled;
        });
        Post(R"([\s\S]*)", answer);
        Put(R"([\s\S]*)", answer);
        thread_ = std::thread([this] { listen(); });
    }
    ~Transport() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            svr_sock_ = INVALID_SOCKET;
            for (const auto& [socket, busy] : open_) shutdown(socket, SHUT_RDWR);
        }
        stop_listening();
        close(listening_);
        close(wake_);
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [&] { return open_.empty(); });
    }
    void drain() override {
        {
            const std::lock_guard lock(mutex_);
            draining_ = true;
            // What an idle connection has sent is still read; one that is busy ends after its answer.
            for (const auto& [socket, busy] : open_)
                if (!busy) shutdown(socket, SHUT_RD);
        }
        stop_listening();
        std::unique_lock lock(mutex_);
        ended_.wait(lock, [&] { return open_.empty(); });
    }

  private:
    static bool takes_body(const std::string& method) { return method == "POST" || method == "PUT"; }

    static HttpRequest asked(const httplib::Request& request) {
        HttpRequest asked{request.method, request.target, {}, request.body};
        for (const auto& [name, value] : request.headers) asked.headers.emplace_back(name, value);
        return asked;
    }

    void give(Answer answer, httplib::Response& response) {
        response.status = answer.status;
        for (const auto& [name, value] : answer.headers) response.set_header(name.c_str(), value);
        if (!answer.more) {
            response.body = std::move(answer.body);
            response.set_header("Content-Type", answer.type);
            return;
        }
        response.set_chunked_content_provider(answer.type,
                                              [this, more = std::move(answer.more)](size_t, httplib::DataSink& sink) {
                                                  std::string part;
                                                  const bool goes_on = more(part);
                                                  if (!part.empty() && !sink.write(part.data(), part.size()))
                                                      return false;
                                                  if (!goes_on) sink.done();
                                                  return !stopping_;
                                              });
    }

    void stop_listening() {
        const uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof one);
        if (thread_.joinable()) thread_.join();
    }
    // Waits for a connection; false when there will be no more. Those that clients have made before the end are
    // accepted.
    bool awaits_connection() const {
        pollfd both[] = {{listening_, POLLIN, 0}, {wake_, POLLIN, 0}};
        return poll(both, 2, -1) > 0 ? both[0].revents != 0 && !stopping_ : errno == EINTR && !stopping_;
    }

    void listen() {
        while (awaits_connection()) {
            const int socket = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
            if (socket < 0) {
                // The limit of open files, or a connection that ended meanwhile.
                if (errno != EAGAIN) std::this_thread::sleep_for(std::chrono::milliseconds(10));
                continue;
            }
            // The library sends head and body one after the other: the body must not wait for the head's receipt.
            const int on = 1;
            setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            const std::lock_guard lock(mutex_);
            if (stopping_ || open_.size() >= limits_.most_connections) {
                refuse(socket);
                continue;
            }
            try {
                open_[socket] = false;
                std::thread([this, socket] { serve(socket); }).detach();
            } catch (const std::exception&) {
                // No memory, or no thread.
                open_.erase(socket);
                refuse(socket);
                continue;
            }
            // What the client has sent is read, and no more waited for.
            if (draining_) shutdown(socket, SHUT_RD);
        }
    }

    static void refuse(int socket) {
        constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        (void)!::send(socket, kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
        close(socket);
    }

    void answer_requests(int socket) {
        Connection connection(socket, limits_.most_body);
        bool is_closed = false, goes_on = true;
        while (goes_on && !is_closed && !stopping_ && connection.wait()) {
            connection.next_request();
            const bool is_last = is_busy(socket, true);
            goes_on = process_request(connection, is_last, is_closed, [&](httplib::Request& request) {
                connection.body();
                // Answers are sent as they are: whole, and compressed only where they are kept so.
                request.ranges.clear();
                request.headers.erase("Range");
                say_gzip(request);
            });
            if (is_busy(socket, false)) break;
        }
    }

    void serve(int socket) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        try {
            answer_requests(socket);
        } catch (const std::exception&) {
            // There is no memory: the connection ends.
        }
        shutdown(socket, SHUT_RDWR);
        const std::lock_guard lock(mutex_);
        close(socket);
        open_.erase(socket);
        ended_.notify_all();
    }

    // Marks a connection; says whether the server accepts no more.
    bool is_busy(int socket, bool busy) {
        const std::lock_guard lock(mutex_);
        open_[socket] = busy;
        return draining_;
    }

    static void say_gzip(httplib::Request& request) {
        request.headers.erase(kAcceptsGzip);
        if (request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos)
            request.headers.emplace(kAcceptsGzip, "1");
        request.headers.erase("Accept-Encoding");
    }

    const int listening_;
    const int wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // the end of listening
    const HttpHandler handler_;
    const HttpLimits limits_;
    std::mutex mutex_;  // of open_
    std::condition_variable ended_;
    std::map<int, bool> open_;  // connections, and whether they have a request
    std::atomic<bool> stopping_ = false, draining_ = false;
    std::thread thread_;
};

}  // namespace

}  // namespace lunaria::serve

extern "C" __attribute__((visibility("default"))) lunaria::serve::HttpTransport* lunaria_http(
    int socket, lunaria::serve::HttpHandler handler, const lunaria::serve::HttpLimits& limits) {
    return new lunaria::serve::Transport(socket, std::move(handler), limits);
}
