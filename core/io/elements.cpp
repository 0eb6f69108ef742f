#include "core/io/elements.h"

#include <algorithm>
#include <bit>

namespace lunaria {
namespace {

static_assert(std::endian::native == std::endian::little, "the file formats are written from memory as it is");

void swap_bytes(char* data, size_t count, size_t width) {
    for (size_t i = 0; i < count; ++i) std::reverse(data + i * width, data + (i + 1) * width);
}

}  // namespace

Tensor read_elements(Stream& stream, DType dtype, std::span<const int64_t> dims, bool big_endian) {
    Shape shape = checked_shape(stream.name(), dims, size_of(dtype));
    uint64_t bytes = static_cast<uint64_t>(shape.size()) * size_of(dtype);
    if (bytes > stream.most())
        throw stream.error(str("truncated or corrupt: a ", name_of(dtype), " array of shape ", shape, " has ", bytes,
                               " bytes, but no more than ", stream.most(), " can be there"));
    Tensor tensor = Tensor::empty(dtype, shape);
    stream.read(tensor.raw(), bytes);
    char* data = static_cast<char*>(tensor.raw());
    if (big_endian) {
        size_t width = is_complex(dtype) ? size_of(dtype) / 2 : size_of(dtype);
        if (width > 1) swap_bytes(data, bytes / width, width);
    }
    // A C++ bool that is neither 0 nor 1 is undefined behaviour in every kernel.
    if (dtype == DType::boolean)
        for (size_t i = 0; i < bytes; ++i) data[i] = data[i] != 0;
    return tensor;
}

Tensor snapshot(const Tensor& tensor) { return tensor.is_contiguous() ? tensor.apart() : tensor.copy(); }

void write_elements(Sink& sink, const Tensor& tensor) {
    const Tensor dense = tensor.contiguous().to_host();
    sink.write(dense.raw(), dense.nbytes());
}

}  // namespace lunaria
