// Any bytes are an archive or an Error; a good archive survives being written again.
#include <cstdlib>

#include "core/base/error.h"
#include "core/io/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    std::vector<NamedTensor> tensors;
    try {
        tensors = NpzFile(memory_source("fuzz", bytes)).read_all();
    } catch (const Error&) {
        return 0;
    }
    StringSink sink;
    try {
        write_npz(sink, tensors, true);
    } catch (const Error&) {
        return 0;  // names that only differ by ".npy"
    }
    if (NpzFile(memory_source("fuzz", sink.text())).read_all().size() != tensors.size()) std::abort();
    return 0;
}
