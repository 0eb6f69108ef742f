// Connections of clients, by libcurl. A request runs in a loop of ours, ten turns a second, which looks at interrupts,
// at bytes that do not come and at the request's time.
#include "core/federated/client/connection.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

namespace lunaria::federated::client {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurnMs = 100;

int64_t since_ms(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

// Codes of OpenSSL's checks of certificates (openssl/x509_vfy.h), which libcurl hands on as numbers.
Fault of_verification(long code) {
    constexpr std::array<std::pair<long, Fault>, 4> kKnown = {{{9, Fault::certificate_not_yet},
                                                               {10, Fault::certificate_expired},
                                                               {23, Fault::certificate_revoked},
                                                               {62, Fault::certificate_other_name}}};
    for (const auto& [known, fault] : kKnown)
        if (code == known) return fault;
    // 1 stands before the check has a result: libcurl compares names first.
    return code <= 1 ? Fault::certificate_other_name : Fault::certificate_unknown;
}

// What the server says about the client's certificate comes as an alert of TLS, with the handshake or with the reply.
bool is_about_own_certificate(std::string_view text) {
    for (const std::string_view alert :
         {"alert certificate", "alert bad certificate", "alert unknown ca", "alert unsupported certificate"})
        if (text.find(alert) != std::string_view::npos) return true;
    return false;
}

Fault of_code(CURLcode code, long verified, std::string_view text) {
    switch (code) {
        case CURLE_OK:
            return Fault::none;
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_CONNECT:
            return Fault::unreachable;
        case CURLE_OPERATION_TIMEDOUT:
            return Fault::late;
        case CURLE_PARTIAL_FILE:
        case CURLE_GOT_NOTHING:
        case CURLE_SEND_ERROR:
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_BAD_CONTENT_ENCODING:
            return Fault::dropped;
        case CURLE_RECV_ERROR:
            return is_about_own_certificate(text) ? Fault::own_certificate : Fault::dropped;
        case CURLE_FILESIZE_EXCEEDED:
            return Fault::too_large;
        case CURLE_PEER_FAILED_VERIFICATION:
            return of_verification(verified);
        case CURLE_SSL_CERTPROBLEM:
            return Fault::own_certificate;
        case CURLE_SSL_CONNECT_ERROR:
            if (verified > 1) return of_verification(verified);
            return is_about_own_certificate(text) ? Fault::own_certificate : Fault::tls;
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_SSL_CRL_BADFILE:
        case CURLE_SSL_ISSUER_ERROR:
        case CURLE_SSL_CIPHER:
        case CURLE_SSL_ENGINE_NOTFOUND:
            return Fault::tls;
        default:
            return Fault::other;
    }
}

struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

class CurlConnection final : public Connection {
  public:
    CurlConnection(const ConnectionOptions& options, ShouldEnd should_end)
        : options_(options), should_end_(std::move(should_end)), easy_(curl_easy_init()), multi_(curl_multi_init()) {
        if (!easy_ || !multi_) return;
        prepare();
    }

    Reply post(std::string_view path, std::string_view body, std::string_view type) override {
        reply_ = {};
        if (!easy_ || !multi_) return failed(Fault::other, "no memory");
        const std::string url = options_.url + std::string(path);
        const std::string head = "Content-Type: " + std::string(type);
        // "Expect" would cost a turn before each body.
        std::unique_ptr<curl_slist, FreeList> headers(curl_slist_append(nullptr, head.c_str()));
        if (headers) curl_slist_append(headers.get(), "Expect:");
        error_[0] = '\0';
        set(CURLOPT_URL, url.c_str());
        set(CURLOPT_HTTPHEADER, headers.get());
        set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
        sent_ = body;
        sent_bytes_ = 0;
        if (curl_multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) return failed(Fault::other, "no memory");
        const Fault fault = transfer(body.size());
        curl_multi_remove_handle(multi_.get(), easy_.get());
        if (fault != Fault::none) return failed(fault, explained(fault));
        long status = 0;
        curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
        reply_.status = static_cast<int>(status);
        curl_off_t retry = 0;
        if (curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &retry) == CURLE_OK && retry > 0)
            reply_.retry_after_ms = std::min<int64_t>(retry, int64_t{86'400}) * 1000;
        const char* content = nullptr;
        if (curl_easy_getinfo(easy_.get(), CURLINFO_CONTENT_TYPE, &content) == CURLE_OK && content)
            reply_.type = content;
        return std::move(reply_);
    }

  private:
    template <class Value>
    void set(CURLoption option, Value value) {
        curl_easy_setopt(easy_.get(), option, value);
    }
    void set_file(CURLoption option, const std::string& path) {
        if (!path.empty()) set(option, path.c_str());
    }

    void prepare() {
        set(CURLOPT_NOSIGNAL, 1L);
        set(CURLOPT_POST, 1L);
        set(CURLOPT_FOLLOWLOCATION, 0L);
        set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
        set(CURLOPT_PROTOCOLS_STR, "http,https");
        set(CURLOPT_PROXY, options_.proxy.c_str());
        set(CURLOPT_ERRORBUFFER, error_);
        set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.connect_ms));
        set(CURLOPT_READFUNCTION, &CurlConnection::give);
        set(CURLOPT_READDATA, this);
        set(CURLOPT_SEEKFUNCTION, &CurlConnection::seek);
        set(CURLOPT_SEEKDATA, this);
        set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(options_.most_body));
        set(CURLOPT_WRITEFUNCTION, &CurlConnection::take);
        set(CURLOPT_WRITEDATA, this);
        set(CURLOPT_XFERINFOFUNCTION, &CurlConnection::moved);
        set(CURLOPT_XFERINFODATA, this);
        set(CURLOPT_NOPROGRESS, 0L);
        set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
        set(CURLOPT_SSL_VERIFYPEER, 1L);
        set(CURLOPT_SSL_VERIFYHOST, 2L);
        set_file(CURLOPT_CAINFO, options_.authorities);
        set_file(CURLOPT_CRLFILE, options_.revoked);
        set_file(CURLOPT_SSL_CIPHER_LIST, options_.ciphers);
        set_file(CURLOPT_SSLCERT, options_.certificate);
        if (options_.certificate.ends_with(".p12")) set(CURLOPT_SSLCERTTYPE, "P12");
        set_file(CURLOPT_SSLKEY, options_.key);
        set_file(CURLOPT_KEYPASSWD, options_.password);
    }

    // Waits until so many bytes may have moved at this rate. libcurl's own limits let a megabyte pass at once.
    bool pace(size_t bytes, int64_t rate, Clock::time_point start) {
        while (rate > 0) {
            const int64_t left = static_cast<int64_t>(bytes) * 1000 / rate - since_ms(start);
            if (left <= 0) break;
            if (should_end_ && should_end_()) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(std::min<int64_t>(left, kTurnMs)));
            last_ = Clock::now();
        }
        return true;
    }

    static size_t give(char* to, size_t size, size_t count, void* self) {
        auto& connection = *static_cast<CurlConnection*>(self);
        const std::string_view rest = connection.sent_.substr(connection.sent_bytes_);
        const size_t bytes = std::min(size * count, rest.size());
        if (!connection.pace(connection.sent_bytes_ + bytes, connection.options_.upload_rate, connection.start_))
            return CURL_READFUNC_ABORT;
        std::memcpy(to, rest.data(), bytes);
        connection.sent_bytes_ += bytes;
        return bytes;
    }

    static int seek(void* self, curl_off_t offset, int origin) {
        auto& connection = *static_cast<CurlConnection*>(self);
        if (origin != SEEK_SET || offset < 0 || static_cast<size_t>(offset) > connection.sent_.size())
            return CURL_SEEKFUNC_FAIL;
        connection.sent_bytes_ = static_cast<size_t>(offset);
        return CURL_SEEKFUNC_OK;
    }

    static size_t take(char* from, size_t size, size_t count, void* self) {
        auto& connection = *static_cast<CurlConnection*>(self);
        const size_t bytes = size * count;
        if (bytes > connection.options_.most_body - connection.reply_.body.size()) {
            connection.is_too_large_ = true;
            return 0;
        }
        if (connection.reply_.body.empty()) connection.reply_start_ = Clock::now();
        connection.reply_.body.append(from, bytes);
        const bool goes_on =
            connection.pace(connection.reply_.body.size(), connection.options_.download_rate, connection.reply_start_);
        return goes_on ? bytes : 0;
    }

    static int moved(void* self, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) {
        auto& connection = *static_cast<CurlConnection*>(self);
        if (down + up != connection.moved_) {
            connection.moved_ = down + up;
            connection.last_ = Clock::now();
        }
        return 0;
    }

    // A request may take as long as the limits of bandwidth make it.
    int64_t allowed_ms(size_t up) const {
        int64_t all = options_.request_ms;
        if (options_.upload_rate > 0) all += static_cast<int64_t>(up) * 1000 / options_.upload_rate;
        if (options_.download_rate > 0) all += static_cast<int64_t>(reply_.body.size()) * 1000 / options_.download_rate;
        return all;
    }

    Fault transfer(size_t up) {
        start_ = last_ = Clock::now();
        moved_ = 0;
        is_too_large_ = false;
        for (int running = 1; running;) {
            if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) return Fault::other;
            if (!running) break;
            if (should_end_ && should_end_()) return Fault::interrupted;
            if (since_ms(last_) > std::max(options_.idle_ms, moved_ == 0 ? options_.connect_ms : 0)) return Fault::late;
            if (since_ms(start_) > allowed_ms(up)) return Fault::late;
            curl_multi_poll(multi_.get(), nullptr, 0, kTurnMs, nullptr);
        }
        if (is_too_large_) return Fault::too_large;
        if (should_end_ && should_end_()) return Fault::interrupted;
        int left = 0;
        while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
            if (message->msg != CURLMSG_DONE) continue;
            long verified = 0;
            curl_easy_getinfo(easy_.get(), CURLINFO_SSL_VERIFYRESULT, &verified);
            const Fault fault = of_code(message->data.result, verified, error_);
            if (fault != Fault::none && error_[0] == '\0')
                std::strncpy(error_, curl_easy_strerror(message->data.result), sizeof error_ - 1);
            return fault;
        }
        return Fault::other;
    }

    // TLS 1.3 tells a client that its certificate is refused after the client has begun to send, which the end of the
    // connection may overtake.
    std::string explained(Fault fault) const {
        std::string text = error_;
        if (fault == Fault::dropped && options_.url.starts_with("https:"))
            text += "; a server that refuses the client's certificate may end connections so";
        return text;
    }

    static Reply failed(Fault fault, std::string_view problem) {
        Reply reply;
        reply.fault = fault;
        reply.problem = problem;
        return reply;
    }

    const ConnectionOptions options_;
    const ShouldEnd should_end_;
    char error_[CURL_ERROR_SIZE] = {};
    Reply reply_;
    curl_off_t moved_ = 0;
    Clock::time_point start_{}, reply_start_{}, last_{};  // of the request and its reply; when bytes moved last
    std::string_view sent_;
    size_t sent_bytes_ = 0;
    bool is_too_large_ = false;
    // In this order: a handle ends before what it stands in.
    std::unique_ptr<CURL, FreeEasy> easy_;
    std::unique_ptr<CURLM, FreeMulti> multi_;
};

}  // namespace

}  // namespace lunaria::federated::client

extern "C" __attribute__((visibility("default"))) lunaria::federated::client::Connection* lunaria_http_client(
    const lunaria::federated::client::ConnectionOptions& options,
    const lunaria::federated::client::ShouldEnd& should_end) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    return new lunaria::federated::client::CurlConnection(options, should_end);
}
