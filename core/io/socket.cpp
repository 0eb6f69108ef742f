#include "core/io/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace lunaria {

namespace {

using Clock = std::chrono::steady_clock;

struct FreeAddresses {
    void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const std::string& host, int port, bool listens) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
    addrinfo* list = nullptr;
    const int problem = getaddrinfo(host.c_str(), str(port).c_str(), &hints, &list);
    if (problem != 0)
        throw state_error("communication", str("the host '", host, "' is not known: ", gai_strerror(problem)));
    return Addresses(list);
}

int64_t milliseconds_until(Clock::time_point end) {
    return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count());
}

// Whether one of the events comes before the end.
bool comes(const Descriptor& socket, short events, Clock::time_point end) {
    constexpr int64_t kLook = 50;  // between looks at interrupts
    while (true) {
        pollfd wait{socket.number(), events, 0};
        const int64_t left = milliseconds_until(end);
        if (poll(&wait, 1, static_cast<int>(std::min(left, kLook))) > 0) return true;
        poll_interrupt();
        if (left == 0) return false;
    }
}

void await(const Descriptor& socket, short events, Clock::time_point end) {
    if (!comes(socket, events, end)) throw state_error("communication", "the other side does not answer");
}

Clock::time_point in_seconds(double seconds) {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void set_nonblocking(int socket) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    // A machine that is switched off says nothing: it is asked after some seconds of silence.
    const int silence = 5, between = 2, questions = 3;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &silence, sizeof silence);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &questions, sizeof questions);
}

}  // namespace

std::pair<std::string, int> split_address(std::string_view address) {
    const size_t colon = address.rfind(':');
    int port = 0;
    constexpr int kMostPorts = 65535;
    if (colon != std::string_view::npos) {
        const char* end = address.data() + address.size();
        const auto [stop, problem] = std::from_chars(address.data() + colon + 1, end, port);
        if (problem != std::errc() || stop != end || port < 1 || port > kMostPorts) port = 0;
    }
    if (port == 0 || colon == 0)
        throw value_error("communication", str("'", address, "' is no address of the form host:port"));
    std::string host(address.substr(0, colon));
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    return {host, port};
}

Descriptor listen_at(const std::string& host, int port) {
    const Addresses list = addresses_of(host, port, true);
    constexpr int kWaiting = 1024;
    const int yes = 1;
    for (const addrinfo* a = list.get(); a; a = a->ai_next) {
        Descriptor socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
        if (!socket) continue;
        setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(socket.number(), a->ai_addr, a->ai_addrlen) == 0 && listen(socket.number(), kWaiting) == 0)
            return Descriptor(socket.release());
        if (errno != EADDRINUSE)
            throw state_error("communication", str("cannot listen at ", host, ":", port, ": ", std::strerror(errno)))
                .hint("the address must be one of this machine");
    }
    return Descriptor();
}

int port_of(const Descriptor& socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                               : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

std::string own_host(const Descriptor& socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char text[NI_MAXHOST] = "";
    getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size);
    getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    return text;
}

// Where nothing listens yet, a connection within one host may get the port that it looks for as its own, and so meet
// itself.
static bool is_its_own_peer(const Descriptor& socket) {
    sockaddr_storage own{}, peer{};
    socklen_t own_size = sizeof own, peer_size = sizeof peer;
    return getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
           getpeername(socket.number(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size &&
           std::memcmp(&own, &peer, own_size) == 0;
}

Descriptor connect_to(const std::string& host, int port) {
    const Addresses list = addresses_of(host, port, false);
    for (const addrinfo* a = list.get(); a; a = a->ai_next) {
        Descriptor socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol));
        if (!socket) continue;
        if (connect(socket.number(), a->ai_addr, a->ai_addrlen) != 0) {
            if (errno != EINPROGRESS) continue;
            constexpr int kPatience = 3000;  // milliseconds
            pollfd wait{socket.number(), POLLOUT, 0};
            if (poll(&wait, 1, kPatience) <= 0) continue;
            int problem = 0;
            socklen_t size = sizeof problem;
            getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &problem, &size);
            if (problem != 0) continue;
        }
        if (is_its_own_peer(socket)) continue;
        set_nonblocking(socket.number());
        return Descriptor(socket.release());
    }
    return Descriptor();
}

Descriptor accept_from(const Descriptor& listener, int milliseconds) {
    pollfd wait{listener.number(), POLLIN, 0};
    if (poll(&wait, 1, milliseconds) <= 0) return Descriptor();
    Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket) set_nonblocking(socket.number());
    return Descriptor(socket.release());
}

bool is_readable(const Descriptor& socket, double seconds) { return comes(socket, POLLIN, in_seconds(seconds)); }

void send_all(const Descriptor& socket, std::string_view bytes, double seconds) {
    const auto end = in_seconds(seconds);
    while (!bytes.empty()) {
        const ssize_t count = send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count >= 0) {
            bytes.remove_prefix(static_cast<size_t>(count));
        } else if (errno == EAGAIN || errno == EINTR) {
            await(socket, POLLOUT, end);
        } else {
            throw state_error("communication", str("a connection has ended: ", std::strerror(errno)));
        }
    }
}

void receive_all(const Descriptor& socket, void* to, size_t count, double seconds) {
    const auto end = in_seconds(seconds);
    for (size_t have = 0; have < count;) {
        const ssize_t got = recv(socket.number(), static_cast<char*>(to) + have, count - have, 0);
        if (got > 0) {
            have += static_cast<size_t>(got);
        } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            await(socket, POLLIN, end);
        } else {
            throw state_error("communication",
                              str("a connection has ended", got < 0 ? ": " : "", got < 0 ? std::strerror(errno) : ""));
        }
    }
}

void send_text(const Descriptor& socket, std::string_view text, double seconds) {
    const auto size = static_cast<uint32_t>(text.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += text;
    send_all(socket, bytes, seconds);
}

std::string receive_text(const Descriptor& socket, size_t longest, double seconds) {
    uint32_t size = 0;
    receive_all(socket, &size, sizeof size, seconds);
    if (size > longest) throw state_error("communication", "a connection sends what is not expected");
    std::string text(size, '\0');
    receive_all(socket, text.data(), size, seconds);
    return text;
}

bool same_secret(std::string_view a, std::string_view b) {
    unsigned differs = a.size() == b.size() ? 0 : 1;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i)
        differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
    return differs == 0;
}

}  // namespace lunaria
