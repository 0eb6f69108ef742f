#include "interpreter/serve/transport/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509_vfy.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/base/error.h"

namespace lunaria::serve {

namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

struct FreeCertificates {
    void operator()(STACK_OF(X509) * list) const { sk_X509_pop_free(list, X509_free); }
};
using Certificates = std::unique_ptr<STACK_OF(X509), FreeCertificates>;

// The last error of OpenSSL in its words, without the places in its sources.
std::string last_problem() {
    const unsigned long code = ERR_peek_last_error();
    ERR_clear_error();
    const char* reason = ERR_reason_error_string(code);
    return reason ? reason : "unknown problem";
}

[[noreturn]] void fail(const std::string& path, std::string_view what) {
    throw file_error(path, str(what, ": ", last_problem()));
}

int give_password(char* to, int size, int, void* password) {
    const auto& text = *static_cast<const std::string*>(password);
    const size_t count = std::min(text.size(), static_cast<size_t>(std::max(size, 0)));
    std::copy_n(text.data(), count, to);
    return static_cast<int>(count);
}

std::string common_name(const X509* certificate) {
    char name[256] = {};
    const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name,
                                               static_cast<int>(sizeof name));
    // A zero inside would end the name early for those that compare texts of C.
    if (size <= 0 || std::memchr(name, 0, static_cast<size_t>(size))) return {};
    return {name, static_cast<size_t>(size)};
}

bool is_pkcs12(const std::string& path) { return path.ends_with(".p12") || path.ends_with(".pfx"); }

Bio memory(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

Certificate next_certificate(BIO* from) { return Certificate(PEM_read_bio_X509(from, nullptr, nullptr, nullptr)); }

}  // namespace

int64_t steady_milliseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

bool awaits(int socket, short events, int64_t deadline) {
    pollfd one = {socket, events, 0};
    const int64_t left = std::clamp<int64_t>(deadline - steady_milliseconds(), 0, int64_t{kIdle} * 1000);
    return poll(&one, 1, static_cast<int>(left)) == 1 && (one.revents & events);
}

TlsSession::TlsSession(SSL_CTX* context, int socket) : session_(SSL_new(context)), socket_(socket) {
    if (session_) SSL_set_fd(session_.get(), socket);
}

// Repeats a step while it waits for the socket.
template <class F>
int TlsSession::done(F step, int64_t deadline) {
    while (true) {
        ERR_clear_error();
        const int result = step();
        if (result > 0) return result;
        const int problem = SSL_get_error(session_.get(), result);
        if (problem == SSL_ERROR_ZERO_RETURN) return 0;
        const short events = problem == SSL_ERROR_WANT_READ ? POLLIN : problem == SSL_ERROR_WANT_WRITE ? POLLOUT : 0;
        if (!events || !awaits(socket_, events, deadline)) return -1;
    }
}

bool TlsSession::accept(int64_t deadline) {
    return session_ && done([&] { return SSL_accept(session_.get()); }, deadline) == 1;
}

ssize_t TlsSession::read(char* to, size_t count, int64_t deadline) {
    const int most = static_cast<int>(std::min<size_t>(count, 1 << 30));
    return done([&] { return SSL_read(session_.get(), to, most); }, deadline);
}

ssize_t TlsSession::write(const char* from, size_t count, int64_t deadline) {
    if (count == 0) return 0;
    const int most = static_cast<int>(std::min<size_t>(count, 1 << 30));
    return done([&] { return SSL_write(session_.get(), from, most); }, deadline);
}

std::string TlsSession::peer_name() const {
    const Certificate shown(SSL_get1_peer_certificate(session_.get()));
    return shown && SSL_get_verify_result(session_.get()) == X509_V_OK ? common_name(shown.get()) : std::string();
}

TlsContext::TlsContext(const HttpTls& tls) : context_(SSL_CTX_new(TLS_server_method())) {
    if (!context_) throw state_error("server", str("TLS: ", last_problem()));
    SSL_CTX* context = context_.get();
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // A renegotiation or a ticket of an earlier server would be one more state to keep.
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    static const unsigned char kSessions[] = "lunaria";
    SSL_CTX_set_session_id_context(context, kSessions, sizeof kSessions - 1);
    if (!tls.ciphers.empty() && !SSL_CTX_set_cipher_list(context, tls.ciphers.c_str()))
        throw argument_error("cipher_list", str("'", tls.ciphers, "': ", last_problem()));
    load(tls);
    check_dates(tls);
    if (!tls.authorities.empty()) want_clients(tls);
}

void TlsContext::load(const HttpTls& tls) const {
    SSL_CTX* context = context_.get();
    if (is_pkcs12(tls.certificate)) {
        const Bio file(BIO_new_file(tls.certificate.c_str(), "rb"));
        if (!file) fail(tls.certificate, "cannot be read");
        const std::unique_ptr<PKCS12, Freed<PKCS12_free>> bag(d2i_PKCS12_bio(file.get(), nullptr));
        EVP_PKEY* key = nullptr;
        X509* certificate = nullptr;
        STACK_OF(X509)* chain = nullptr;
        if (!bag || !PKCS12_parse(bag.get(), tls.password.c_str(), &key, &certificate, &chain))
            fail(tls.certificate, "is no PKCS #12 file, or the password is wrong");
        const Key its_key(key);
        const Certificate its_certificate(certificate);
        const Certificates its_chain(chain);
        if (!key || !certificate) throw file_error(tls.certificate, "has no certificate with its key");
        if (!SSL_CTX_use_cert_and_key(context, certificate, key, chain, 1)) fail(tls.certificate, "cannot be used");
        return;
    }
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, const_cast<std::string*>(&tls.password));
    if (SSL_CTX_use_certificate_chain_file(context, tls.certificate.c_str()) != 1)
        fail(tls.certificate, "is no chain of certificates");
    const std::string& key = tls.key.empty() ? tls.certificate : tls.key;
    if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
        fail(key, "is no private key, or the password is wrong");
    SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    if (SSL_CTX_check_private_key(context) != 1) fail(key, "is not the key of the certificate");
}

void TlsContext::check_dates(const HttpTls& tls) const {
    const X509* certificate = SSL_CTX_get0_certificate(context_.get());
    int days = 0, seconds = 0;
    if (!certificate || !ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)))
        fail(tls.certificate, "has no date of its end");
    if (days < 0 || seconds < 0) throw file_error(tls.certificate, "the certificate has expired").hint("renew it");
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        throw file_error(tls.certificate, "the certificate is not valid yet").hint("check the clock of the machine");
    if (days < tls.warning_days && tls.warning)
        *tls.warning = str(tls.certificate, ": the certificate expires in ", days, " days");
}

void TlsContext::want_clients(const HttpTls& tls) const {
    SSL_CTX* context = context_.get();
    if (SSL_CTX_load_verify_locations(context, tls.authorities.c_str(), nullptr) != 1)
        fail(tls.authorities, "has no certificates");
    if (STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(tls.authorities.c_str()))
        SSL_CTX_set_client_CA_list(context, names);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    if (tls.revoked.empty()) return;
    X509_STORE* store = SSL_CTX_get_cert_store(context);
    X509_LOOKUP* lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, tls.revoked.c_str(), X509_FILETYPE_PEM) < 1)
        fail(tls.revoked, "is no list of revoked certificates");
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
}

namespace {

// Certificates of a text in a store; the number of them.
int add_all(X509_STORE* store, std::string_view text) {
    const Bio from = memory(text);
    int count = 0;
    while (const Certificate one = next_certificate(from.get())) count += X509_STORE_add_cert(store, one.get());
    ERR_clear_error();
    return count;
}

std::string problem_of(const ShownCertificate& shown, X509* certificate, BIO* rest) {
    const std::unique_ptr<X509_STORE, Freed<X509_STORE_free>> store(X509_STORE_new());
    if (!store || add_all(store.get(), shown.authorities) == 0) return "the authorities have no certificates";
    if (!shown.revoked.empty()) {
        const Bio from = memory(shown.revoked);
        int lists = 0;
        while (X509_CRL* list = PEM_read_bio_X509_CRL(from.get(), nullptr, nullptr, nullptr)) {
            lists += X509_STORE_add_crl(store.get(), list);
            X509_CRL_free(list);
        }
        ERR_clear_error();
        if (lists == 0) return "the list of revoked certificates has none";
        X509_STORE_set_flags(store.get(), X509_V_FLAG_CRL_CHECK);
    }
    const Certificates between(sk_X509_new_null());
    constexpr int kMostBetween = 8;
    for (int i = 0; i < kMostBetween; ++i) {
        Certificate one = next_certificate(rest);
        if (!one) break;
        if (sk_X509_push(between.get(), one.get()) > 0) (void)one.release();
    }
    ERR_clear_error();
    const std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>> check(X509_STORE_CTX_new());
    if (!check || !X509_STORE_CTX_init(check.get(), store.get(), certificate, between.get())) return last_problem();
    if (X509_verify_cert(check.get()) == 1) return {};
    return X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get()));
}

}  // namespace

}  // namespace lunaria::serve

extern "C" __attribute__((visibility("default"))) void lunaria_verify_certificate(
    const lunaria::serve::ShownCertificate& shown, lunaria::serve::VerifiedCertificate& verified) {
    using namespace lunaria::serve;
    verified = {};
    const Bio from = memory(shown.certificate);
    const Certificate certificate = next_certificate(from.get());
    if (!certificate) {
        ERR_clear_error();
        verified.problem = "it is no certificate in PEM";
        return;
    }
    verified.problem = problem_of(shown, certificate.get(), from.get());
    verified.name = common_name(certificate.get());
    unsigned char key[32];
    size_t size = sizeof key;
    const EVP_PKEY* its_key = X509_get0_pubkey(certificate.get());
    if (its_key && EVP_PKEY_get_base_id(its_key) == EVP_PKEY_ED25519 &&
        EVP_PKEY_get_raw_public_key(its_key, key, &size) == 1)
        verified.key.assign(reinterpret_cast<const char*>(key), size);
    ERR_clear_error();
}
