// Convolutions whose results are only averaged over the whole picture: the sums are made while the convolution goes
// through the pixels, so that its result, mostly the largest value of a network, needs no memory.
#pragma once

#include "core/lite/format/model.h"

namespace lunaria::lite::micro {

// The attribute of such a convolution: the shape that its own result has.
inline constexpr const char* kPooled = "pooled_from";

// The model with these pairs of steps joined. The sums have the order of the runtime, so that the bits stay the same.
Model join_pools(const Model& model);

}  // namespace lunaria::lite::micro
