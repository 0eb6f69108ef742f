// Where a row will lie in its batch: the last transform of a pipeline writes its result there, and nothing is copied.
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace lunaria::data {

// While it lives, the thread's next result of this dtype and shape may be written into `memory`.
class PlaceInBatch {
  public:
    explicit PlaceInBatch(const Tensor& memory);
    ~PlaceInBatch();
    PlaceInBatch(const PlaceInBatch&) = delete;
    PlaceInBatch& operator=(const PlaceInBatch&) = delete;

    // While one of these lives nothing is: what is made then is no result yet.
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

// A tensor for a transform's result: the place in the batch, once, if it fits. Contents undefined.
Tensor result_tensor(DType dtype, const Shape& shape);

}  // namespace lunaria::data
