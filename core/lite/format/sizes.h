// Numbers of a light model for given sizes of its inputs.
#pragma once

#include <optional>

#include "core/lite/format/model.h"
#include "core/tensor/dtype.h"

namespace lunaria::lite {

inline constexpr int64_t kMostElements = int64_t{1} << 40;

// Nothing where the elements do not fill whole blocks.
std::optional<uint64_t> bytes_of(DType dtype, Form form, std::span<const int64_t> shape);

// The sizes of the dimensions for which the model was converted.
std::vector<int64_t> sizes_of(const Model& model);

// Nothing where it overflows, divides by zero, or the formula is malformed.
std::optional<int64_t> evaluate(const Model& model, const Number& number, std::span<const int64_t> dimensions);
bool evaluate(const Model& model, std::span<const Number> numbers, std::span<const int64_t> dimensions,
              std::vector<int64_t>& results);

// The sizes of the dimensions that follow from the shapes of all inputs; the fault where the shapes do not fit the
// model, otherwise an empty text.
std::string find_sizes(const Model& model, std::span<const std::vector<int64_t>> shapes,
                       std::vector<int64_t>& dimensions);

}  // namespace lunaria::lite
