// The transport of servers, by cpp-httplib. Its own server reads lines of any length and looks for the next
// request a hundred times a second; here, a connection's bytes come by way of a stream that counts them and waits in
// poll(). Connections without a request wait in one epoll, so that ten thousand of them cost no thread; one that has
// bytes is served by a thread until it has none.
#include <fcntl.h>
#include <httplib.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include "interpreter/serve/http.h"
#include "interpreter/serve/transport/tls.h"

namespace lunaria::serve {

namespace {

constexpr size_t kBuffer = 32 << 10;

// One connection. read() gives at most kMostHead bytes until body() is called, the largest body thereafter.
class Connection final : public httplib::Stream {
  public:
    Connection(int socket, const HttpLimits& limits, const TlsContext* tls)
        : socket_(socket), limits_(limits), tls_(tls ? tls->session(socket) : nullptr) {}
    ~Connection() override {
        shutdown(socket_, SHUT_RDWR);
        close(socket_);
    }

    // The bytes that were received and not yet read; a thread's, lent while it serves the connection.
    void lend(std::span<char> buffer) { kept_ = buffer; }
    // The first bytes of a connection are the handshake, where there is one.
    bool open() {
        if (is_open_) return true;
        is_open_ = true;
        if (!tls_) return true;
        if (!tls_->accept(steady_milliseconds() + kIdle * 1000)) return false;
        peer_name_ = tls_->peer_name();
        return true;
    }
    const std::string& peer_name() const { return peer_name_; }
    void say_goodbye() const {
        if (tls_ && is_open_) tls_->close();
    }

    void next_request() {
        left_ = kMostHead;
        deadline_ = steady_milliseconds() + int64_t{limits_.most_seconds} * 1000;
    }
    // Whether the other side has sent more than was read.
    bool has_more() const {
        return at_ < there_ || (tls_ && tls_->has_pending()) || lunaria::serve::awaits(socket_, POLLIN, 0);
    }
    void body() { left_ = limits_.most_body + kMostHead; }

    bool is_readable() const override { return true; }
    bool is_writable() const override { return awaits(socket_, POLLOUT, deadline_); }
    ssize_t read(char* to, size_t count) override {
        if (at_ == there_) {
            const ssize_t got = received();
            if (got <= 0) return got;
            at_ = 0;
            there_ = static_cast<size_t>(got);
        }
        const size_t given = std::min({count, there_ - at_, left_});
        if (given == 0) return -1;
        memcpy(to, kept_.data() + at_, given);
        at_ += given;
        left_ -= given;
        return static_cast<ssize_t>(given);
    }
    ssize_t write(const char* from, size_t count) override {
        if (tls_) return tls_->write(from, count, deadline_);
        return is_writable() ? send(socket_, from, count, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
    }
    using Stream::write;
    void get_remote_ip_and_port(std::string&, int&) const override {}
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return socket_; }

  private:
    ssize_t received() {
        if (tls_) return tls_->read(kept_.data(), kept_.size(), deadline_);
        return awaits(socket_, POLLIN, deadline_) ? recv(socket_, kept_.data(), kept_.size(), 0) : -1;
    }
    const int socket_;
    const HttpLimits& limits_;
    const std::unique_ptr<TlsSession> tls_;
    bool is_open_ = false;
    std::string peer_name_;
    int64_t deadline_ = 0;
    std::span<char> kept_;
    size_t at_ = 0, there_ = 0, left_ = 0;
};

// Bytes of bodies that may yet be read.
class Budget {
  public:
    explicit Budget(size_t bytes) : left_(bytes), all_(bytes) {}
    // Takes so many, or all of them; waits for that. Gives back what it took.
    size_t take(size_t bytes) {
        bytes = std::min(bytes, all_);
        std::unique_lock lock(mutex_);
        more_.wait(lock, [&] { return left_ >= bytes; });
        left_ -= bytes;
        return bytes;
    }
    void give(size_t bytes) {
        if (bytes == 0) return;
        const std::lock_guard lock(mutex_);
        left_ += bytes;
        more_.notify_all();
    }

    // What one request takes, given back at its end.
    class Part {
      public:
        explicit Part(Budget& budget) : budget_(budget) {}
        ~Part() { budget_.give(taken_); }
        Part(const Part&) = delete;
        Part& operator=(const Part&) = delete;
        void take(size_t bytes) { taken_ = budget_.take(bytes); }

      private:
        Budget& budget_;
        size_t taken_ = 0;
    };

  private:
    std::mutex mutex_;
    std::condition_variable more_;
    size_t left_;
    const size_t all_;
};

// The threads run one connection each while it has requests.
class Transport final : public HttpTransport, private httplib::Server {
  public:
    Transport(int socket, HttpHandler handler, const HttpLimits& limits, const HttpTls& tls)
        : limits_(limits),
          tls_(tls.certificate.empty() ? nullptr : std::make_unique<TlsContext>(tls)),
          listening_(socket),
          handler_(std::move(handler)) {
        set_payload_max_length(limits.most_body);
        set_keep_alive_timeout(kIdle);
        fcntl(socket, F_SETFL, O_NONBLOCK);
        // The library writes parts of answers only while it has a socket to listen at.
        svr_sock_ = socket;
        const auto answer = [this](const httplib::Request& request, httplib::Response& response) {
            // The library reads the body for this call alone.
            give(handler_(asked(const_cast<httplib::Request&>(request))), response);
        };
        set_pre_routing_handler([=](const httplib::Request& request, httplib::Response& response) {
            // A request with a body is routed when that is read.
            if (takes_body(request.method)) return HandlerResponse::Unhandled;
            answer(request, response);
            return HandlerResponse::Handled;
        });
        Post(R"([\s\S]*)", answer);
        Put(R"([\s\S]*)", answer);
        watch(listening_, EPOLLIN);
        watch(wake_, EPOLLIN);
        thread_ = std::thread([this] { listen(); });
    }
    ~Transport() override {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
            svr_sock_ = INVALID_SOCKET;
            for (const auto& [socket, connection] : open_) shutdown(socket, SHUT_RDWR);
        }
        stop_listening();
        close(listening_);
        {
            std::unique_lock lock(mutex_);
            for (const auto& parked : parked_) open_.erase(parked.socket);
            parked_.clear();
            came_.notify_all();
            changed_.wait(lock, [&] { return threads_ == 0; });
            ready_.clear();
            open_.clear();
        }
        close(wake_);
        close(epoll_);
    }
    void drain() override {
        std::unique_lock lock(mutex_);
        draining_ = true;
        // What an idle connection has sent is still read; one that is busy ends after its answer. Then it has an end
        // to read, so that it leaves the idle ones.
        for (const auto& parked : parked_) shutdown(parked.socket, SHUT_RD);
        poke();
        changed_.wait(lock, [&] { return open_.empty() && has_ended_; });
        lock.unlock();
        stop_listening();
    }

  private:
    struct Parked {
        int socket;
        int64_t until;
    };

    static bool takes_body(const std::string& method) { return method == "POST" || method == "PUT"; }

    static HttpRequest asked(httplib::Request& request) {
        HttpRequest asked{request.method, request.target, {}, std::move(request.body)};
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

    void poke() const {
        const uint64_t one = 1;
        (void)!::write(wake_, &one, sizeof one);
    }
    void stop_listening() {
        poke();
        if (thread_.joinable()) thread_.join();
    }
    void watch(int socket, uint32_t events, bool is_known = false) const {
        epoll_event event{};
        event.events = events;
        event.data.fd = socket;
        epoll_ctl(epoll_, is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket, &event);
    }

    void listen() {
        leave_signals();
        epoll_event events[64];
        while (!stopping_) {
            const int count = epoll_wait(epoll_, events, static_cast<int>(std::size(events)), next_timeout());
            for (int i = 0; i < count; ++i) {
                const int socket = events[i].data.fd;
                if (socket == listening_)
                    accept_all();
                else if (socket == wake_)
                    read_wake();
                else
                    make_ready(socket);
            }
            close_idle();
            if (draining_ && end_listening()) return;
        }
    }
    // Connections that clients have made before the end are accepted, none later. Whether there is no connection left.
    bool end_listening() {
        if (!has_ended_) {
            accept_all();
            epoll_ctl(epoll_, EPOLL_CTL_DEL, listening_, nullptr);
        }
        const std::lock_guard lock(mutex_);
        has_ended_ = true;
        changed_.notify_all();
        return open_.empty();
    }
    void read_wake() const {
        uint64_t count = 0;
        (void)!::read(wake_, &count, sizeof count);
    }
    int next_timeout() {
        const std::lock_guard lock(mutex_);
        if (parked_.empty()) return -1;
        return static_cast<int>(std::max<int64_t>(parked_.front().until - steady_milliseconds(), 0)) + 1;
    }
    // All wait equally long: the first to have come is the first to go.
    void close_idle() {
        const std::lock_guard lock(mutex_);
        const int64_t now = steady_milliseconds();
        while (!parked_.empty() && parked_.front().until <= now) {
            const int socket = parked_.front().socket;
            places_.erase(socket);
            parked_.pop_front();
            open_.erase(socket);
            changed_.notify_all();
        }
    }

    void accept_all() {
        while (!stopping_) {
            const int socket = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | (tls_ ? SOCK_NONBLOCK : 0));
            if (socket < 0) {
                // The limit of open files, or a connection that ended meanwhile.
                if (errno != EAGAIN) std::this_thread::sleep_for(std::chrono::milliseconds(10));
                return;
            }
            // The library sends head and body one after the other: the body must not wait for the head's receipt.
            const int on = 1;
            setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            const std::lock_guard lock(mutex_);
            if (stopping_ || open_.size() >= limits_.most_connections) {
                refuse(socket);
                continue;
            }
            std::unique_ptr<Connection> connection;
            try {
                connection = std::make_unique<Connection>(socket, limits_, tls_.get());
            } catch (const std::exception&) {
                // No memory.
                close(socket);
                continue;
            }
            try {
                open_.emplace(socket, std::move(connection));
                park(socket, false);
            } catch (const std::exception&) {
                // A connection closes its socket.
                open_.erase(socket);
            }
        }
    }
    void refuse(int socket) const {
        constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        if (!tls_) (void)!::send(socket, kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
        close(socket);
    }

    // Under the mutex: a connection waits for bytes.
    void park(int socket, bool is_known) {
        // What the client has sent is read, and no more waited for.
        if (draining_) shutdown(socket, SHUT_RD);
        places_[socket] = parked_.insert(parked_.end(), {socket, steady_milliseconds() + kIdle * 1000});
        watch(socket, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, is_known);
    }
    void make_ready(int socket) {
        const std::lock_guard lock(mutex_);
        const auto place = places_.find(socket);
        if (place == places_.end()) return;
        parked_.erase(place->second);
        places_.erase(place);
        ready_.push_back(socket);
        if (ready_.size() > waiting_ && threads_ < limits_.most_threads) {
            try {
                std::thread([this] { work(); }).detach();
                ++threads_;
            } catch (const std::exception&) {
                // The threads that there are serve it; without any it ends.
                if (threads_ == 0) {
                    ready_.pop_back();
                    open_.erase(socket);
                    return;
                }
            }
        }
        came_.notify_one();
    }

    static void leave_signals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
    }

    void work() {
        leave_signals();
        std::vector<char> buffer(kBuffer);
        std::unique_lock lock(mutex_);
        while (true) {
            ++waiting_;
            const bool goes_on =
                came_.wait_for(lock, std::chrono::seconds(kIdle), [&] { return !ready_.empty() || stopping_; });
            --waiting_;
            if (stopping_ || (!goes_on && ready_.empty())) break;
            const int socket = ready_.front();
            ready_.pop_front();
            Connection& connection = *open_.at(socket);
            lock.unlock();
            connection.lend(buffer);
            bool stays = false;
            try {
                stays = serve(connection);
            } catch (const std::exception&) {
                // There is no memory: the connection ends.
            }
            lock.lock();
            if (stays && !draining_ && !stopping_)
                park(socket, true);
            else
                open_.erase(socket);
            changed_.notify_all();
            if (draining_) poke();
        }
        --threads_;
        changed_.notify_all();
    }

    // Answers the requests that have come; whether more may.
    bool serve(Connection& connection) {
        if (!connection.open()) return false;
        bool is_closed = false, goes_on = true;
        do {
            Budget::Part part(budget_);
            connection.next_request();
            goes_on = process_request(connection, draining_, is_closed, [&](httplib::Request& request) {
                connection.body();
                // Answers are sent as they are: whole, and compressed only where they are kept so.
                request.ranges.clear();
                request.headers.erase("Range");
                say_gzip(request);
                part.take(size_of_body(request));
                request.headers.erase(kPeerName);
                if (!connection.peer_name().empty()) request.headers.emplace(kPeerName, connection.peer_name());
            });
        } while (goes_on && !is_closed && !stopping_ && !draining_ && connection.has_more());
        if (goes_on && !is_closed && !draining_) return true;
        connection.say_goodbye();
        return false;
    }

    size_t size_of_body(const httplib::Request& request) const {
        if (!takes_body(request.method)) return 0;
        // Without a length it comes in parts. One that is too long is skipped, not kept.
        if (!request.has_header("Content-Length")) return limits_.most_body;
        const auto length = request.get_header_value<uint64_t>("Content-Length");
        return length <= limits_.most_body ? static_cast<size_t>(length) : 0;
    }
    static void say_gzip(httplib::Request& request) {
        request.headers.erase(kAcceptsGzip);
        if (request.get_header_value("Accept-Encoding").find("gzip") != std::string::npos)
            request.headers.emplace(kAcceptsGzip, "1");
        request.headers.erase("Accept-Encoding");
    }

    const HttpLimits limits_;
    const std::unique_ptr<TlsContext> tls_;
    const int listening_;
    const int epoll_ = epoll_create1(EPOLL_CLOEXEC);
    const int wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);  // the end of listening
    const HttpHandler handler_;
    Budget budget_{std::max(limits_.most_bytes, limits_.most_body)};
    std::mutex mutex_;  // of all that follows
    std::condition_variable came_, changed_;
    std::map<int, std::unique_ptr<Connection>> open_;
    std::list<Parked> parked_;  // without a request, the one that has been idle longest first
    std::map<int, std::list<Parked>::iterator> places_;
    std::deque<int> ready_;  // with bytes to read
    size_t threads_ = 0, waiting_ = 0;
    std::atomic<bool> stopping_ = false, draining_ = false, has_ended_ = false;  // the last: listening
    std::thread thread_;
};

}  // namespace

}  // namespace lunaria::serve

extern "C" __attribute__((visibility("default"))) lunaria::serve::HttpTransport* lunaria_http(
    int socket, lunaria::serve::HttpHandler handler, const lunaria::serve::HttpLimits& limits,
    const lunaria::serve::HttpTls& tls) {
    return new lunaria::serve::Transport(socket, std::move(handler), limits, tls);
}
