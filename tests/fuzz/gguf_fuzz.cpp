// Any bytes are a file or an Error; what could be read survives being written again.
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/io/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::vector<GgufTensor> tensors;
    GgufMetadata metadata;
    try {
        const GgufFile file(memory_source("fuzz", bytes));
        for (const GgufFile::Entry& entry : file.entries())
            tensors.push_back({entry.name, file.read(entry), entry.form});
        metadata = file.metadata();
        for (const auto& [key, value] : metadata) value.each([](const Value&) {});
    } catch (const Error&) {
        return 0;
    }
    StringSink sink;
    write_gguf(sink, tensors, metadata);
    const GgufFile again(memory_source("fuzz", sink.text()));
    if (again.entries().size() != tensors.size() || again.metadata().size() != metadata.size()) std::abort();
    for (size_t i = 0; i < tensors.size(); ++i) {
        const Tensor tensor = again.read(again.entries()[i]);
        if (!(tensor.shape() == tensors[i].tensor.shape()) ||
            std::memcmp(tensor.raw(), tensors[i].tensor.raw(), tensor.nbytes()) != 0)
            std::abort();
    }
    return 0;
}
