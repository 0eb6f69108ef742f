// The files of core/insight/pages, which the build compresses and puts into the binary.
#pragma once

#include <string_view>

#include "core/io/question.h"

namespace lunaria::insight {

// The file of that name; an answer with status 404 where there is none.
Answer page(std::string_view name, bool reads_gzip);

}  // namespace lunaria::insight
