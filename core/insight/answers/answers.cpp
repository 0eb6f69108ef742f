#include "core/insight/answers/answers.h"

#include "core/insight/answers/pages.h"

namespace lunaria::insight {

namespace {

// For how long a question waits for the files to be gone through once.
constexpr auto kLoading = std::chrono::seconds(3);

}  // namespace

Answer answer(Store& store, const Question& question) {
    if (question.part(0) == "v1") {
        store.wait_until_loaded(kLoading);
        if (question.part(1) == "lunaria") return own_answer(store, question.below(2));
    }
    if (!question.is_reading()) throw Refusal{405, "pages are only read"};
    if (question.path.size() != 1) throw Refusal{404, "there is no such page"};
    return page(question.part(0).empty() ? "index.html" : question.part(0), question.reads_gzip);
}

}  // namespace lunaria::insight
