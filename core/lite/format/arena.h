// The layout of temporaries: the same in the converter's report, in the runtime after a resize, and in generated C.
#pragma once

#include "core/lite/format/model.h"

namespace lunaria::lite {

struct Lifetime {
    uint32_t first = kNone, last = 0;  // steps: that which makes the value, and the last that uses it
};
std::vector<Lifetime> lifetimes_of(const Model& model);

struct Placement {
    std::vector<uint64_t> offsets{};  // by value; of those in the arena
    uint64_t bytes = 0;               // of the arena
};
// `sizes`: the bytes of each value. `align`: of each offset. Values whose `shares` applies and that have the same size
// get the same place.
Placement place_arena(const Model& model, std::span<const uint64_t> sizes, uint64_t align = 64);

}  // namespace lunaria::lite
