// Rows of float16 as floats and back, by the processor's own instructions where it has them.
#pragma once

#include <cstdint>

namespace lunaria::ascend {

void halves_to_floats(const uint16_t* from, float* to, int64_t count);
// Rounds to nearest even. saturate: numbers that are too large become the largest one and NaN becomes 0. Returns
// whether that happened, or a result is an infinity or NaN.
bool floats_to_halves(const float* from, uint16_t* to, int64_t count, bool saturate);

}  // namespace lunaria::ascend
