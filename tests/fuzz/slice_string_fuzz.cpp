// Whatever text stands in x["..."]: an index or a syntax error.
// Source: core/ops/indexing.cpp
#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/ops/indexing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    try {
        lunaria::parse_index("fuzz", {reinterpret_cast<const char*>(data), size});
    } catch (const lunaria::Error& e) {
        if (e.kind() != lunaria::ErrorKind::syntax) throw;
    }
    return 0;
}
