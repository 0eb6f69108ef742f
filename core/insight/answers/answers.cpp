#include "core/insight/answers/answers.h"

#include <variant>

#include "core/base/error.h"
#include "core/insight/answers/pages.h"

namespace lunaria::insight {

namespace {

// For how long a question waits for the files to be gone through once.
constexpr auto kLoading = std::chrono::seconds(3);

}  // namespace

Answer answer(Store& store, const Question& question) try {
    if (question.part(0) == "v1") {
        store.wait_until_loaded(kLoading);
        if (question.part(1) == "lunaria") return own_answer(store, question.below(2));
        if (question.part(1) == "mindinsight") return reference_answer(store, question.below(2));
    }
    if (!question.is_reading()) throw Refusal{405, "pages are only read"};
    if (question.path.size() != 1) throw Refusal{404, "there is no such page"};
    return page(question.part(0).empty() ? "index.html" : question.part(0), question.reads_gzip);
} catch (const Error& e) {
    // A file that was damaged, or replaced since the store looked at it last.
    if (e.kind() != ErrorKind::file) throw;
    throw Refusal{409, e.what()};
} catch (const std::bad_variant_access&) {
    throw Refusal{422, "a record holds something else than its tag's first one"};
}

}  // namespace lunaria::insight
