// NumPy's .npy files, versions 1.0 to 3.0.
#pragma once

#include "core/io/elements.h"
#include "core/tensor/value.h"

namespace lunaria {

// Reads one array, in C or Fortran order and either byte order. Refuses dtypes that tensors do not have (objects, which
// are pickled Python and may run code; records; texts ...), each with a way out.
Tensor read_npy(const std::string& path);
Tensor read_npy(const Source& source);
Tensor read_npy(Stream& stream);
// The same, but texts (dtypes U and S) are allowed too: the result is a tensor, a text (for an array without axes), or
// nested lists of texts, in UTF-8 or, for S, the bytes as they are. Zeros at a text's end are not part of it.
Value read_npy_value(Stream& stream);
Value read_npy_value(const Source& source);

// Version 1.0, little-endian, row-major. bfloat16 is refused, since NumPy has no name for it.
void write_npy(const std::string& path, const Tensor& tensor);
void write_npy(Sink& sink, const Tensor& tensor);

// Every file begins with these bytes.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

}  // namespace lunaria
