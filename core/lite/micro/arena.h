// The working memory of generated C: places of temporaries to the byte.
#pragma once

#include "core/lite/format/model.h"

namespace lunaria::lite::micro {

struct Arena {
    std::vector<uint64_t> offsets{};  // by value
    uint64_t bytes = 0, align = 4;
    uint64_t live = 0;  // the largest number of bytes that are in use at once: no arena is smaller
};
// Steps write into their operand's place only where the loops of this folder read each element before they write it.
Arena plan_arena(const Model& model);

}  // namespace lunaria::lite::micro
