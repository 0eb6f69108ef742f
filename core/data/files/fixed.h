// Files of records of equal size.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lunaria::data {

// The bytes of all records of the files as uint8 of shape (records, size). Throws if the size of a file is no multiple
// of `size`.
Tensor read_fixed(const std::vector<std::string>& paths, int64_t size);

}  // namespace lunaria::data
