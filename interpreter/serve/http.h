// HTTP as servers see it. The transport (transport.cpp) is a library of its own, which is opened when a server starts:
// cpp-httplib brings OpenSSL and others, which no other use of the program should load.
#pragma once

#include <memory>

#include "core/io/question.h"

namespace lunaria::serve {

struct HttpRequest {
    std::string method, target;  // target: as it was sent, with percent signs
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
};

using HttpHandler = std::function<Answer(const HttpRequest&)>;

// The transport compresses nothing itself. It tells by this header that the other side reads gzip.
inline constexpr const char* kAcceptsGzip = "X-Accepts-Gzip";

// Limits that the transport keeps.
struct HttpLimits {
    size_t most_body = 1 << 20;
    size_t most_connections = 64;
};
inline constexpr size_t kMostHead = 8 << 10;  // bytes of a request before its body
inline constexpr int kIdle = 10;              // s without a byte from the other side

// A listening socket and its threads. The destructor closes all connections and waits for the threads.
class HttpTransport {
  public:
    virtual ~HttpTransport() = default;
    // Accepts no more connections, and waits until the requests that have arrived are answered and sent.
    virtual void drain() = 0;
};

// What the library defines. `socket`: bound and listening, it becomes the transport's.
inline constexpr const char* kStartTransport = "lunaria_http";
using StartTransport = HttpTransport* (*)(int socket, HttpHandler handler, const HttpLimits& limits);

// Whether names of headers or hosts are the same, whatever their letter case.
bool same_name(std::string_view a, std::string_view b);
// All values of a header; the first one, empty where there is none.
std::vector<std::string_view> headers_of(const HttpRequest& request, std::string_view name);
std::string_view header_of(const HttpRequest& request, std::string_view name);

// The path and the parameters of a request's target, decoded.
Question taken_apart(const HttpRequest& request);

}  // namespace lunaria::serve
