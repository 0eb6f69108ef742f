// Arguments for the standard tests, written in an operator's entry as text:
//
//     f32[2,3]            normal random floats          f32[2,3]:(0.1,2)   uniform in [0.1, 2)
//     i64[4]:(0,5)        integers in [0, 5)            bool[3]            either
//     {f32[2], f32[3]}    a list of tensors             2, "mean", {1, 2}, nil, float32: attributes
//
// separated by commas, by position or as name=value.
#pragma once

#include <string_view>
#include <vector>

#include "core/operator/op.h"

namespace lunaria {

// All arguments of a call in the order of the signature, with defaults filled in; the same for the same seed. Throws
// argument_error if the text does not fit the operator.
std::vector<Value> sample_args(const Op& op, std::string_view text, uint64_t seed);

}  // namespace lunaria
