// The histogram of a tensor as an event file has it: bins of equal width between the least and the most finite value.
#pragma once

#include <string>
#include <vector>

#include "core/data/files/events.h"

namespace lunaria {

// `x`: f32 or f64, dense, with at least one element. NaN and infinities are counted beside the bins, each by itself.
Shown::Histogram histogram_of(const Tensor& x, int64_t bins);

// The two values (Summary.Value) of a histogram under a tag: TensorBoard's form, then MindSpore's.
std::vector<std::string> histogram_values(std::string_view tag, const Shown::Histogram& histogram);

}  // namespace lunaria
