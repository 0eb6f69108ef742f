// NumPy's .npy files, versions 1.0 to 3.0.
#pragma once

#include "core/io/elements.h"

namespace lunaria {

// Reads one array, in C or Fortran order and either byte order. Refuses dtypes that tensors do not have (objects, which
// are pickled Python and may run code; records; unsigned 16 to 64 bits; complex128 ...), each with a way out.
Tensor read_npy(const std::string& path);
Tensor read_npy(const Source& source);
Tensor read_npy(Stream& stream);

// Version 1.0, little-endian, row-major. bfloat16 is refused, since NumPy has no name for it.
void write_npy(const std::string& path, const Tensor& tensor);
void write_npy(Sink& sink, const Tensor& tensor);

// Every file begins with these bytes.
inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

}  // namespace lunaria
