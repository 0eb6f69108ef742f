// TLS of the transport's connections, by OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "interpreter/serve/http.h"

namespace lunaria::serve {

template <auto free>
struct Freed {
    template <class T>
    void operator()(T* object) const {
        free(object);
    }
};

// One connection's. Every call waits at most until `deadline` (ms of the steady clock).
class TlsSession {
  public:
    TlsSession(SSL_CTX* context, int socket);
    // The handshake; false where it fails.
    bool accept(int64_t deadline);
    // As recv() and send(), -1 for a timeout too.
    ssize_t read(char* to, size_t count, int64_t deadline);
    ssize_t write(const char* from, size_t count, int64_t deadline);
    // Whether bytes have been decrypted that read() has not given.
    bool has_pending() const { return SSL_has_pending(session_.get()) != 0; }
    // The common name of the other side's certificate, empty where it has shown none.
    std::string peer_name() const;
    // Says goodbye, without waiting for an answer.
    void close() const { SSL_shutdown(session_.get()); }

  private:
    template <class F>
    int done(F step, int64_t deadline);
    const std::unique_ptr<SSL, Freed<SSL_free>> session_;
    const int socket_;
};

class TlsContext {
  public:
    // Throws a file_error where a file is wrong.
    explicit TlsContext(const HttpTls& tls);
    std::unique_ptr<TlsSession> session(int socket) const {
        return std::make_unique<TlsSession>(context_.get(), socket);
    }

  private:
    void load(const HttpTls& tls) const;
    void check_dates(const HttpTls& tls) const;
    void want_clients(const HttpTls& tls) const;
    const std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
};

int64_t steady_milliseconds();
// Whether a socket is ready for events of poll() before the deadline.
bool awaits(int socket, short events, int64_t deadline);

}  // namespace lunaria::serve
