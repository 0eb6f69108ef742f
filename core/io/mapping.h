// Files mapped into memory: a page is read when it is accessed. For tensors over the contents of a large file that the
// user asked to have mapped; all other files are read (core/io/file.h says why).
#pragma once

#include <memory>
#include <string>

#include "core/tensor/tensor.h"

namespace lunaria {

// The bytes of a regular file, as they are when they are accessed. A file that is replaced (as our writers do) stays
// mapped as it was. If another program truncates the file, the lost pages read as zero, a message goes to the standard
// error stream, and the program is interrupted, so that it does not go on with wrong numbers.
class Mapping : public std::enable_shared_from_this<Mapping> {
  public:
    // Throws file_error when the file cannot be mapped.
    static std::shared_ptr<Mapping> of(const std::string& path);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    size_t size() const { return size_; }
    // A tensor over the bytes from `offset`, which must lie in the file; it and its views keep the mapping. The mapping
    // is never written to: a write to a tensor over foreign memory copies first. Null when the bytes do not lie at a
    // multiple of the dtype's size.
    Tensor tensor(DType dtype, const Shape& shape, size_t offset);

    // Whether a tensor lies in a mapped file.
    static bool holds(const Tensor& tensor);

  private:
    Mapping(void* data, size_t size, size_t slot) : data_(static_cast<char*>(data)), size_(size), slot_(slot) {}
    char* data_;
    size_t size_, slot_;
};

}  // namespace lunaria
