// Files of records that all have the same number of bytes.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace lunaria::data {

// The bytes of all records of the files as uint8 of shape (records, size). Throws when a file's size is no multiple.
Tensor read_fixed(const std::vector<std::string>& paths, int64_t size);

}  // namespace lunaria::data
