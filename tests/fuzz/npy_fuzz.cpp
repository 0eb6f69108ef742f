// Any bytes are an array or an Error.
#include "core/base/error.h"
#include "core/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try {
        lunaria::read_npy(*lunaria::memory_source("fuzz", bytes));
    } catch (const lunaria::Error&) {
    }
    return 0;
}
