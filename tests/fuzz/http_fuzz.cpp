// Any request gets an answer of the pages of trainings. The first line is method and target, headers follow up to an
// empty line, then the content. The gate passes only what names this machine and is of no other site.
// Source: core/insight/answers/*.cpp
// Source: core/insight/anf_graph.cpp
// Source: core/insight/graph_def.cpp
// Source: core/insight/graph_files.cpp
// Source: core/insight/graph/*.cpp
// Source: interpreter/serve/gate.cpp
// Source: interpreter/serve/site.cpp
// Source: interpreter/serve/taken_apart.cpp
#include <cstdlib>

#include "core/insight/answers/answers.h"
#include "core/insight/answers/debug_desk.h"
#include "core/io/embedded.h"
#include "interpreter/serve/site.h"

// No pages: those are the build's.
extern "C" {
extern const lunaria::EmbeddedFile lunaria_pages_begin[1] __attribute__((visibility("hidden"))) = {};
extern const lunaria::EmbeddedFile lunaria_pages_end[1]
    __attribute__((visibility("hidden"), alias("lunaria_pages_begin")));
}

namespace {

using namespace lunaria;

std::string_view cut(std::string_view& text, std::string_view at) {
    const size_t end = std::min(text.find(at), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + at.size(), text.size()));
    return part;
}

struct Shown {
    insight::Store store{"tests/data/samples/insight", 0};
    insight::DebugDesk desk;
    serve::Site site{[this](const Question& q) {
                         return q.part(2) == "debug" ? desk.answer(q.below(3)) : insight::answer(store, q);
                     },
                     {}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static Shown* const shown = [] {
        auto* made = new Shown;
        made->store.wait_until_loaded(std::chrono::seconds(20));
        return made;
    }();
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    serve::HttpRequest request;
    request.method = cut(rest, " ");
    request.target = cut(rest, "\n");
    bool has_host = false;
    while (!rest.empty() && request.headers.size() < 20) {
        std::string_view line = cut(rest, "\n");
        if (line.empty()) break;
        const std::string_view name = cut(line, ": ");
        has_host |= serve::same_name(name, "Host");
        request.headers.emplace_back(name, line);
    }
    request.body = rest;
    // Notes are written into a file; the samples stay as they are. A stream of events would wait.
    if (request.method == "PUT" || request.target.find("events") != std::string::npos) return 0;
    // What another site asked is refused.
    const Answer answer = shown->site.answer(request);
    if (!has_host && answer.status < 400) abort();
    request.headers.emplace_back("Host", "localhost:8080");
    request.headers.emplace_back("Content-Type", "application/json");
    const Answer own = shown->site.answer(request);
    if (own.status >= 500 && own.status != 503) abort();
    return 0;
}
