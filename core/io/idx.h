// The idx files of the MNIST family, plain or gzipped.
#pragma once

#include "core/io/elements.h"

namespace lunaria {

// u8, i8, i16, i32, f32 or f64, of any rank up to eight. Gzip is recognised by its first bytes, not by the file's name.
Tensor read_idx(const std::string& path);
Tensor read_idx(const Source& source);

}  // namespace lunaria
