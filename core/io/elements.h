// Elements of tensors in files: bytes into a new tensor and back, for all formats.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/io/stream.h"
#include "core/tensor/tensor.h"

namespace lunaria {

using NamedTensor = std::pair<std::string, Tensor>;

// The next elements of `stream` as a dense tensor. Checks that the bytes are there before it allocates; swaps bytes
// when `big_endian`; makes any non-zero byte of a bool tensor true.
Tensor read_elements(Stream& stream, DType dtype, std::span<const int64_t> dims, bool big_endian = false);

// The tensor's present value, dense, for a thread that reads it while the program goes on. It shares the storage where
// that is dense: a later write to `tensor` copies first.
Tensor snapshot(const Tensor& tensor);

// The elements in row-major order, as they lie in memory (little-endian machines only, which is all that we build for).
void write_elements(Sink& sink, const Tensor& tensor);

}  // namespace lunaria
