// A question to a part of the program by an address, and its answer: what a server asks of it, and tests without one.
#pragma once

#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria {

struct Answer {
    int status = 200;  // as HTTP has it
    std::string type = "text/plain; charset=utf-8";
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers;
    // Where it is set, the body is what it appends in one call after the other, until it returns false.
    std::function<bool(std::string& part)> more;
};

// An answer that is an error, to be thrown.
struct Refusal {
    int status;
    std::string sentence;
};

struct Question {
    std::string method;             // GET, HEAD, POST or PUT
    std::vector<std::string> path;  // the parts between slashes
    std::multimap<std::string, std::string, std::less<>> parameters;
    std::string body;
    bool reads_gzip = false;
    std::string content_type = {};
    std::string peer = {};  // the name in the certificate of the other side, where it was verified

    bool is_reading() const { return method == "GET" || method == "HEAD"; }
    // Part i of the path; empty where there are fewer.
    std::string_view part(size_t i) const { return i < path.size() ? std::string_view(path[i]) : std::string_view(); }
    // The question without the first parts of its path.
    Question below(size_t parts) const;
    // The first value of a parameter, and all of them.
    std::optional<std::string> parameter(std::string_view name) const;
    std::vector<std::string> all(std::string_view name) const;
    // Throws a Refusal where the parameter is no number.
    double number(std::string_view name, double missing) const;
    // A whole number between the limits; throws a Refusal otherwise.
    int64_t integer(std::string_view name, int64_t missing, int64_t least, int64_t most) const;
};

Answer json_answer(std::string text, int status = 200);
// {"error": sentence}
Answer error_answer(int status, std::string_view sentence);

}  // namespace lunaria
