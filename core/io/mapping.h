// Files in memory without being read: their pages come when somebody looks at them. For tensors over the contents of a
// large file that the user asked to have mapped; everything else is read (core/io/file.h says why).
#pragma once

#include <memory>
#include <string>

#include "core/tensor/tensor.h"

namespace lunaria {

// The bytes of a regular file, as they are when they are looked at. A file that is replaced (as our writers do) stays
// mapped as it was. Of one that somebody makes shorter the lost pages read as zero, the standard error output says so,
// and the program is interrupted, so that nothing goes on with wrong numbers.
class Mapping : public std::enable_shared_from_this<Mapping> {
  public:
    // Throws file_error when the file cannot be mapped.
    static std::shared_ptr<Mapping> of(const std::string& path);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    size_t size() const { return size_; }
    // A tensor over the bytes from `offset`, which are in the file; it and its views keep the mapping. Nothing writes
    // to it: whoever changes a tensor over foreign memory makes a copy first. Null when the bytes do not lie at a
    // multiple of the dtype's size.
    Tensor tensor(DType dtype, const Shape& shape, size_t offset);

  private:
    Mapping(void* data, size_t size, size_t slot) : data_(static_cast<char*>(data)), size_(size), slot_(slot) {}
    char* data_;
    size_t size_, slot_;
};

}  // namespace lunaria
