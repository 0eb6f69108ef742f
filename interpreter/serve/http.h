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

// The request is the handler's: bodies are large.
using HttpHandler = std::function<Answer(HttpRequest request)>;

// The transport compresses nothing itself. It tells by this header that the other side reads gzip.
inline constexpr const char* kAcceptsGzip = "X-Accepts-Gzip";
// And by this one the common name of the certificate that the other side has shown and that was verified.
inline constexpr const char* kPeerName = "X-Peer-Name";

// Limits that the transport keeps.
struct HttpLimits {
    size_t most_body = 1 << 20;
    size_t most_connections = 64;
    size_t most_threads = 256;  // requests at work at once; connections without a request need no thread
    int most_seconds = 600;     // from the first byte of a request to its last
    // Bytes of bodies in memory at once, unless it is less than one body: requests wait for others to end.
    size_t most_bytes = size_t{1} << 30;
};
inline constexpr size_t kMostHead = 8 << 10;  // bytes of a request before its body
inline constexpr int kIdle = 10;              // s without a byte from the other side

// TLS 1.2 and 1.3. Files are PEM; the server's may be PKCS #12, with its key in it.
struct HttpTls {
    std::string certificate;  // a chain; empty: no TLS
    std::string key;          // empty: in the file of the certificate
    std::string password;
    std::string authorities;  // those whose clients may connect; empty: clients need no certificate
    std::string revoked;      // a list of revoked certificates of these authorities
    std::string ciphers;      // of TLS 1.2, in OpenSSL's words; empty: its default
    int warning_days = 90;    // a certificate that ends sooner is in `warning`
    std::string* warning = nullptr;
};

// A listening socket and its threads. The destructor closes all connections and waits for the threads.
class HttpTransport {
  public:
    virtual ~HttpTransport() = default;
    // Accepts no more connections, and waits until the requests that have arrived are answered and sent.
    virtual void drain() = 0;
};

// What the library defines. `socket`: bound and listening, it becomes the transport's unless this throws. Throws a
// file_error that names the file where TLS has a wrong one, or the certificate has ended.
inline constexpr const char* kStartTransport = "lunaria_http";
using StartTransport = HttpTransport* (*)(int socket, HttpHandler handler, const HttpLimits& limits,
                                          const HttpTls& tls);

// A certificate that a client shows in a message, and the authorities that it must come from.
struct ShownCertificate {
    std::string_view certificate, authorities, revoked;  // PEM; `certificate` may be followed by intermediate ones
};
struct VerifiedCertificate {
    std::string problem;  // why it is refused; empty where it is not
    std::string name;     // the common name
    std::string key;      // 32 bytes, where the key is Ed25519's
};
inline constexpr const char* kVerifyCertificate = "lunaria_verify_certificate";
using VerifyCertificate = void (*)(const ShownCertificate& shown, VerifiedCertificate& verified);
// The library's function.
VerifyCertificate verify_certificate();

// Whether names of headers or hosts are the same, whatever their letter case.
bool same_name(std::string_view a, std::string_view b);
// All values of a header; the first one, empty where there is none.
std::vector<std::string_view> headers_of(const HttpRequest& request, std::string_view name);
std::string_view header_of(const HttpRequest& request, std::string_view name);

// The path and the parameters of a request's target, decoded.
Question taken_apart(HttpRequest request);

}  // namespace lunaria::serve
