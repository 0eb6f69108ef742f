// The contents of files of events as files that other programs read.
#pragma once

#include <string>

namespace lunaria::insight {

struct Parsed {
    size_t runs = 0, scalars = 0, pictures = 0;
};

// Writes the scalars of each run below `base` to RUN/scalar.csv (tag, step, wall time, value) below `output`, its
// pictures to RUN/image/TAG_STEP.png.
Parsed parse(const std::string& base, const std::string& output);

}  // namespace lunaria::insight
