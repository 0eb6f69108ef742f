// The machine that the server runs on, now.
#pragma once

#include "core/io/question.h"

namespace lunaria::insight {

// How busy the processors were since the last question, memory, the space left where `base` is, and the processes of
// this user that are Lunaria's.
Answer machine_answer(const std::string& base);

}  // namespace lunaria::insight
