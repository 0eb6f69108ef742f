// Profiles of a run: Chrome traces in JSON that a training left in the run's folder, or in "profiler" inside of it.
#pragma once

#include "core/insight/store/store.h"
#include "core/io/question.h"

namespace lunaria::insight {

// How many there are; the folders are read.
size_t count_of_profiles(const Run& run);

// runs/RUN/profile: their names; runs/RUN/profile/PROFILE: a file as it is. Throws a Refusal where there is none.
Answer profile_answer(const Store& store, const Question& question);

}  // namespace lunaria::insight
