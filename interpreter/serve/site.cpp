#include "interpreter/serve/site.h"

namespace lunaria::serve {

Site::Site(Answering answering, SiteOptions options)
    : answering_(std::move(answering)),
      options_(std::move(options)),
      gate_(options_.hosts, options_.token, options_.types) {}

Answer Site::answer(HttpRequest request) const {
    Answer answer;
    try {
        answer = routed(std::move(request));
    } catch (const Refusal& refusal) {
        answer = error_answer(refusal.status, refusal.sentence);
    } catch (const std::exception& e) {
        answer = error_answer(500, e.what());
    }
    Gate::protect(answer, options_.embeddable);
    return answer;
}

Answer Site::routed(HttpRequest request) const {
    if (auto refusal = gate_.refusal(request)) return std::move(*refusal);
    std::string_view target = request.target;
    if (!target.starts_with(options_.prefix)) return error_answer(404, "all addresses begin with " + options_.prefix);
    target.remove_prefix(options_.prefix.size());
    if (target.empty()) {
        // Names of pages are relative to the folder.
        Answer answer;
        answer.status = 308;
        answer.headers.emplace_back("Location", options_.prefix + "/");
        return answer;
    }
    if (target.front() != '/' && target.front() != '?') return error_answer(404, "there is no such page");
    request.target = std::string(target);
    return answering_(taken_apart(std::move(request)));
}

}  // namespace lunaria::serve
