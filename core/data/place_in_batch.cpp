#include "core/data/place_in_batch.h"

#include <utility>

namespace lunaria::data {

namespace {
thread_local const Tensor* place = nullptr;
}

PlaceInBatch::PlaceInBatch(const Tensor& memory) : before_(std::exchange(place, &memory)) {}
PlaceInBatch::~PlaceInBatch() { place = before_; }

PlaceInBatch::Hidden::Hidden() : hidden_(std::exchange(place, nullptr)) {}
PlaceInBatch::Hidden::~Hidden() { place = hidden_; }

Tensor result_tensor(DType dtype, const Shape& shape) {
    if (place && place->dtype() == dtype && place->shape() == shape) return *std::exchange(place, nullptr);
    return Tensor::empty(dtype, shape);
}

}  // namespace lunaria::data
