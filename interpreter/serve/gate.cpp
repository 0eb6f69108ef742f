#include "interpreter/serve/gate.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/secure_random.h"
#include "core/io/socket.h"

namespace lunaria::serve {

namespace {

// Cookies are shared by all ports of a machine: the name tells servers apart.
std::string cookie_of(std::string_view token) { return "lunaria-insight-" + str(std::hash<std::string_view>()(token)); }

// The name in "name", "name:port" or "[address]:port"; empty where it is none of these.
std::string_view name_of(std::string_view host) {
    const size_t end = host.starts_with('[') ? host.find(']') + 1 : std::min(host.find(':'), host.size());
    const std::string_view port = host.substr(std::min(end, host.size()));
    const bool fine =
        end > 0 && (port.empty() || (port.size() > 1 && port.size() <= 6 && port[0] == ':' &&
                                     std::ranges::all_of(port.substr(1), [](char c) { return c >= '0' && c <= '9'; })));
    return fine ? host.substr(0, end) : std::string_view();
}

Answer forbidden(std::string_view sentence) { return error_answer(403, sentence); }

}  // namespace

bool Gate::is_allowed(std::string_view host) const {
    const std::string_view name = name_of(host);
    if (name.empty()) return false;
    for (const std::string_view known : {"127.0.0.1", "localhost", "[::1]"})
        if (same_name(name, known)) return true;
    return std::ranges::any_of(hosts_, [&](const std::string& known) {
        return known == "*" || same_name(name, known) || same_name(host, known);
    });
}

bool Gate::knows_token(const HttpRequest& request) const {
    if (token_.empty()) return true;
    const std::string_view authorization = header_of(request, "Authorization");
    if (authorization.starts_with("Bearer ") && same_secret(authorization.substr(7), token_)) return true;
    const std::string expected = cookie_of(token_);
    for (std::string_view cookies : headers_of(request, "Cookie"))
        while (!cookies.empty()) {
            const size_t end = std::min(cookies.find(';'), cookies.size());
            std::string_view cookie = cookies.substr(0, end);
            cookies.remove_prefix(std::min(end + 1, cookies.size()));
            while (cookie.starts_with(' ')) cookie.remove_prefix(1);
            if (cookie.starts_with(expected) && cookie.substr(expected.size()).starts_with('=') &&
                same_secret(cookie.substr(expected.size() + 1), token_))
                return true;
        }
    return false;
}

std::optional<Answer> Gate::refusal(const HttpRequest& request) const {
    const auto hosts = headers_of(request, "Host");
    if (hosts.size() != 1 || !is_allowed(hosts[0]))
        return forbidden("this server answers to its own names only; start it with --allow-host NAME for another");
    // Another program of this machine may serve pages, too: only this server's own may ask.
    for (const std::string_view origin : headers_of(request, "Origin")) {
        const size_t scheme = origin.find("://");
        const std::string_view host = scheme == std::string_view::npos ? std::string_view() : origin.substr(scheme + 3);
        if (host.empty() || !same_name(host, hosts[0])) return forbidden("a page of another site asked");
    }
    const std::string_view site = header_of(request, "Sec-Fetch-Site");
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (!reads && (site == "cross-site" || site == "same-site")) return forbidden("a page of another site asked");
    if (!reads && request.method != "POST" && request.method != "PUT")
        return error_answer(405, "GET, HEAD, POST and PUT are understood");
    const std::string_view type = header_of(request, "Content-Type");
    if (!reads && std::ranges::none_of(types_, [&](const std::string& known) { return type.starts_with(known); })) {
        std::string all;
        for (const std::string& known : types_) all += (all.empty() ? "" : ", ") + known;
        return error_answer(415, "the content must be " + all);
    }
    if (knows_token(request)) return std::nullopt;
    // The address that the server printed has the token; from then on the browser sends it as a cookie.
    const Question question = taken_apart(request);
    if (const auto token = question.parameter("token"); reads && token && same_secret(*token, token_)) {
        Answer answer;
        answer.status = 303;
        std::string path = request.target.substr(0, request.target.find('?'));
        // "//name" would lead to another site.
        while (path.starts_with("//")) path.erase(0, 1);
        answer.headers = {{"Location", path.starts_with('/') ? path : "/"},
                          {"Set-Cookie", str(cookie_of(token_), "=", token_, "; Path=/; SameSite=Strict; HttpOnly")}};
        return answer;
    }
    return error_answer(401, "this server wants its token: open the address that it printed when it was started");
}

void Gate::protect(Answer& answer, bool embeddable) {
    const std::string frames = embeddable ? " http://localhost:* http://127.0.0.1:* https://localhost:*" : "";
    answer.headers.insert(answer.headers.end(),
                          {{"Content-Security-Policy",
                            "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:; object-src 'none'; "
                            "base-uri 'none'; form-action 'none'; frame-ancestors 'self'" +
                                frames},
                           {"X-Content-Type-Options", "nosniff"},
                           {"Referrer-Policy", "no-referrer"},
                           {"Cross-Origin-Resource-Policy", "same-origin"},
                           {"Cache-Control", "no-store"}});
}

std::string Gate::random_token() {
    unsigned char bytes[16];
    secure_random("insight", bytes, sizeof bytes);
    std::string token;
    for (const unsigned char byte : bytes) {
        token += "0123456789abcdef"[byte >> 4];
        token += "0123456789abcdef"[byte & 15];
    }
    return token;
}

}  // namespace lunaria::serve
