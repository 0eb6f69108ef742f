// Any bytes are a model or an Error; a model can be written.
#include "core/base/error.h"
#include "core/io/onnx.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto source = lunaria::memory_source("fuzz", bytes);
    try {
        lunaria::onnx::write_model(lunaria::onnx::read_model(*source, std::nullopt));
    } catch (const lunaria::Error&) {
    }
    // The same bytes as a tensor, and as a list of lists of tensors.
    using lunaria::onnx::TypeEntry;
    TypeEntry type;
    type.kind = TypeEntry::Kind::tensor;
    for (int depth = 0; depth < 3; ++depth) {
        try {
            lunaria::onnx::read_test_value(*source, type);
        } catch (const lunaria::Error&) {
        }
        TypeEntry outer;
        outer.kind = depth == 0 ? TypeEntry::Kind::sequence : TypeEntry::Kind::optional;
        outer.inner.push_back(type);
        type = outer;
    }
    return 0;
}
