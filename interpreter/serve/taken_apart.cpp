#include <algorithm>

#include "interpreter/serve/http.h"

namespace lunaria::serve {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Percent signs, and plus signs where they stand for spaces. Signs that are no escapes stay.
std::string decoded(std::string_view text, bool plus_is_space) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
            out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
            i += 2;
        } else {
            out += plus_is_space && text[i] == '+' ? ' ' : text[i];
        }
    }
    return out;
}

template <class F>
void split(std::string_view text, char at, F f) {
    while (true) {
        const size_t end = text.find(at);
        f(text.substr(0, end));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower, lower); }

std::vector<std::string_view> headers_of(const HttpRequest& request, std::string_view name) {
    std::vector<std::string_view> values;
    for (const auto& [header, value] : request.headers)
        if (same_name(header, name)) values.push_back(value);
    return values;
}

std::string_view header_of(const HttpRequest& request, std::string_view name) {
    const auto values = headers_of(request, name);
    return values.empty() ? std::string_view() : values.front();
}

Question taken_apart(HttpRequest request) {
    Question question;
    question.method = request.method;
    question.body = std::move(request.body);
    for (const auto& [name, value] : request.headers) question.reads_gzip |= name == kAcceptsGzip;
    question.peer = header_of(request, kPeerName);
    question.content_type = header_of(request, "Content-Type");
    std::string_view target = request.target;
    target = target.substr(0, target.find('#'));
    const size_t query = target.find('?');
    if (query != std::string_view::npos)
        split(target.substr(query + 1), '&', [&](std::string_view pair) {
            const size_t equals = pair.find('=');
            std::string name = decoded(pair.substr(0, equals), true);
            if (name.empty()) return;
            question.parameters.emplace(std::move(name), equals == std::string_view::npos
                                                             ? std::string()
                                                             : decoded(pair.substr(equals + 1), true));
        });
    std::string_view path = target.substr(0, query);
    if (path.starts_with('/')) path.remove_prefix(1);
    split(path, '/', [&](std::string_view part) { question.path.push_back(decoded(part, false)); });
    // A slash at the end changes nothing.
    if (question.path.size() > 1 && question.path.back().empty()) question.path.pop_back();
    return question;
}

}  // namespace lunaria::serve
