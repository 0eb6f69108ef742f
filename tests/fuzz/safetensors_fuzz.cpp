// Any bytes are a file or an Error; what could be read survives being written again.
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::vector<NamedTensor> tensors;
    Metadata metadata;
    try {
        SafetensorsFile file(memory_source("fuzz", bytes));
        tensors = file.read_all();
        metadata = file.metadata();
    } catch (const Error&) {
        return 0;
    }
    StringSink sink;
    write_safetensors(sink, tensors, metadata);
    auto again = SafetensorsFile(memory_source("fuzz", sink.text())).read_all();
    if (again.size() != tensors.size()) std::abort();
    for (size_t i = 0; i < again.size(); ++i)
        if (again[i].first != tensors[i].first || again[i].second.nbytes() != tensors[i].second.nbytes() ||
            std::memcmp(again[i].second.raw(), tensors[i].second.raw(), tensors[i].second.nbytes()) != 0)
            std::abort();
    return 0;
}
