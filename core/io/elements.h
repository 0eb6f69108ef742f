// What the tensor formats have in common: bytes of a file into a new tensor and back.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/io/stream.h"
#include "core/tensor/tensor.h"

namespace lunaria {

using NamedTensor = std::pair<std::string, Tensor>;

// The next elements of `stream` as a dense tensor. Compares what they need with what is there before it allocates;
// swaps bytes when `big_endian`; makes any non-zero byte of a bool tensor true.
Tensor read_elements(Stream& stream, DType dtype, std::span<const int64_t> dims, bool big_endian = false);

// The tensor as it is now, dense: over the same storage where that is dense (whoever writes to `tensor` afterwards
// makes a copy first), for a thread that reads it while the program goes on.
Tensor snapshot(const Tensor& tensor);

// The elements in row-major order, as they lie in memory (little-endian machines only, which is all that we build for).
void write_elements(Sink& sink, const Tensor& tensor);

}  // namespace lunaria
