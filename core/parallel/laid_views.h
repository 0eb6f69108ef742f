// Views of laid-out tensors. The device keeps none: an operator that reads one gets its elements as a tensor of their
// own.
#pragma once

#include "core/parallel/laid.h"

namespace lunaria::parallel {

// The elements of `view`, which shares the storage of `base`, a whole tensor of the mesh device.
Laid content_of_view(const Tensor& view, const Tensor& base);

// The content with another dtype, and in another shape of the same size.
Laid converted(Laid content, DType dtype, const Shape& shape);

}  // namespace lunaria::parallel
