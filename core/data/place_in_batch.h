// The place of a row in its batch: the last transform of a pipeline writes its result there, so that nothing is copied.
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lunaria::data {

// While this object lives, the thread's next result of this dtype and shape may be written into `memory`.
class PlaceInBatch {
  public:
    explicit PlaceInBatch(const Tensor& memory);
    ~PlaceInBatch();
    PlaceInBatch(const PlaceInBatch&) = delete;
    PlaceInBatch& operator=(const PlaceInBatch&) = delete;

    // While an object of this class lives, no result is written into the batch: tensors made then are intermediate
    // ones.
    class Hidden {
      public:
        Hidden();
        ~Hidden();
        Hidden(const Hidden&) = delete;
        Hidden& operator=(const Hidden&) = delete;

      private:
        const Tensor* hidden_;
    };

  private:
    const Tensor* before_;
};

// A tensor for a transform's result: the place in the batch, once, if dtype and shape fit; otherwise new memory.
// Contents undefined.
Tensor result_tensor(DType dtype, const Shape& shape);

}  // namespace lunaria::data
