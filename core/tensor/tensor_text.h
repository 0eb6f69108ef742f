// The printed form of a tensor, in MindSpore's style:
//     Tensor(shape=[2, 2], dtype=Float32, value=
//     [[ 1.00000000e+00,  2.00000000e+00],
//      [ 3.00000000e+00,  4.00000000e+00]])
#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace lunaria {

struct PrintOptions {
    int64_t threshold = 1000;  // tensors with more elements are summarised
    int64_t edge_items = 3;    // shown at either end of a summarised axis
    int line_width = 100;      // rows are broken before they get longer
};

// The name of a dtype as MindSpore prints it: Float32, BFloat16, UInt8.
std::string dtype_text(DType dtype);

std::string tensor_text(const Tensor& tensor, const PrintOptions& options = {});

// The elements alone, in brackets; the text before the first line is `indent` characters wide.
std::string elements_text(const Tensor& tensor, const PrintOptions& options = {}, int indent = 0);

}  // namespace lunaria
