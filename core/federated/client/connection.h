// HTTP as clients of a federated job see it: one request, one reply, and a name for whatever went wrong. The transport
// (curl_connection.cpp) is a library of its own, which is opened when a client first connects: libcurl brings thirty
// others, which no other use of the program should load.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace lunaria::federated::client {

struct ConnectionOptions {
    std::string url;                         // http://host:port or https://host:port, with a prefix of all addresses
    std::string authorities;                 // a PEM file of the authorities that are believed; empty: the system's
    std::string certificate, key, password;  // the client's own: PEM, or .p12, which has the key too
    std::string revoked;                     // a PEM file of revoked certificates
    std::string ciphers;                     // of TLS 1.2, as OpenSSL lists them
    std::string proxy;                       // empty: none, whatever the environment says
    int64_t connect_ms = 10'000;             // until there is a connection
    int64_t idle_ms = 30'000;                // without a byte in either direction
    int64_t request_ms = 300'000;            // for a request and its reply, beside what the limits of bandwidth add
    int64_t upload_rate = 0;                 // bytes per second; 0: no limit
    int64_t download_rate = 0;
    size_t most_body = size_t{100} << 20;  // of a reply
};

enum class Fault {
    none,
    unreachable,  // no connection: no such host, refused
    late,         // no reply in time
    dropped,      // the connection ended early: a truncated reply
    too_large,
    certificate_expired,     // the server's
    certificate_not_yet,     // valid from later on: one of the clocks is wrong
    certificate_unknown,     // of no authority that is believed
    certificate_revoked,     // by the list
    certificate_other_name,  // for another host
    own_certificate,         // the client's cannot be read, or the server refuses it
    tls,                     // anything else about TLS
    interrupted,             // Ctrl-C
    other
};

// Whether a request that failed so may be repeated as it is.
bool may_pass(Fault fault);
// The fault in words, as the beginning of a message.
std::string_view words_of(Fault fault);

struct Reply {
    Fault fault = Fault::none;
    std::string problem;  // details, without anything secret
    int status = 0;       // of HTTP, where there is a reply
    std::string body;
    std::string type;             // Content-Type
    int64_t retry_after_ms = -1;  // as the server asked; -1: it did not
};

// A server. Requests of one object follow one another and keep the connection where the server does.
class Connection {
  public:
    virtual ~Connection() = default;
    // POST to the path below the url's prefix. Never throws.
    virtual Reply post(std::string_view path, std::string_view body, std::string_view type) = 0;
};

// Tells a request that it should end (an interrupt); asked ten times a second.
using ShouldEnd = std::function<bool()>;

// Opens the library; null where it is not there, with the reason. A connection is made with the first request.
std::unique_ptr<Connection> connect(const ConnectionOptions& options, const ShouldEnd& should_end,
                                    std::string& problem);

// What the library defines.
inline constexpr const char* kOpenConnection = "lunaria_http_client";
using OpenConnection = Connection* (*)(const ConnectionOptions& options, const ShouldEnd& should_end);

}  // namespace lunaria::federated::client
