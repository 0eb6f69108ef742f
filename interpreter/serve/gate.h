// The checks that every request passes before anything looks at it. A page of another site can send requests to this
// server by way of the user's browser, also under a name of its own that leads here (DNS rebinding): so Host is checked
// always, and Origin wherever it is sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interpreter/serve/http.h"

namespace lunaria::serve {

class Gate {
  public:
    // `hosts`: names allowed in Host besides those of this machine; "*": any, for servers of programs whose contents a
    // page cannot send. `token`: empty where the server is bound to the
    // loopback device only, or what a request has to know.
    // `types`: those of contents that are taken. None may be one that a page of another site can send unasked.
    Gate(std::vector<std::string> hosts, std::string token, std::vector<std::string> types)
        : hosts_(std::move(hosts)), token_(std::move(token)), types_(std::move(types)) {}

    // The answer to a request that may not pass; nothing for one that may.
    std::optional<Answer> refusal(const HttpRequest& request) const;
    // Headers of every answer. `embeddable`: pages of this machine may show the answer in a frame.
    static void protect(Answer& answer, bool embeddable);

    // 128 random bits.
    static std::string random_token();

  private:
    bool is_allowed(std::string_view host) const;
    bool knows_token(const HttpRequest& request) const;
    std::vector<std::string> hosts_;
    std::string token_;
    std::vector<std::string> types_;
};

}  // namespace lunaria::serve
