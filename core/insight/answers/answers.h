// Answers to what the pages and other programs ask about runs.
#pragma once

#include "core/insight/store/store.h"
#include "core/io/question.h"

namespace lunaria::insight {

// Everything below the server's prefix: pages, and the programs' interfaces below v1. Throws a Refusal where the
// question makes no sense.
Answer answer(Store& store, const Question& question);

// Parts of it. v1/lunaria: what the pages ask; the path begins after these.
Answer own_answer(Store& store, const Question& question);
// v1/mindinsight: what programs for the reference product ask.
Answer reference_answer(Store& store, const Question& question);

}  // namespace lunaria::insight
