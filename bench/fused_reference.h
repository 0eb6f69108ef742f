// The chain y = tanh(w x + b) sigmoid(x) + x by hand: what a generated kernel is measured against.
#pragma once

namespace fused {

// `around_cache`: stores that go past the caches. count is a multiple of 8, the arrays are aligned to 32 bytes.
void chain(const float* x, float* y, long count, float w, float b, bool around_cache);

}  // namespace fused
