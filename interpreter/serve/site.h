// A site: the gate before what answers, and the headers that every answer has. It knows no sockets.
#pragma once

#include "interpreter/serve/gate.h"

namespace lunaria::serve {

using Answering = std::function<Answer(const Question&)>;

struct SiteOptions {
    std::string prefix{};                                // of all addresses: "" or "/a/b"
    std::vector<std::string> hosts{};                    // names besides those of this machine
    std::string token{};                                 // empty: none is asked for
    std::vector<std::string> types{"application/json"};  // of contents that are taken
    bool embeddable = false;                             // pages of this machine may show these in frames
};

class Site {
  public:
    Site(Answering answering, SiteOptions options);
    // Never throws.
    Answer answer(HttpRequest request) const;

  private:
    Answer routed(HttpRequest request) const;
    Answering answering_;
    SiteOptions options_;
    Gate gate_;
};

}  // namespace lunaria::serve
