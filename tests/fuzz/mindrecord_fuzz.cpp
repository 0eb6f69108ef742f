// Any bytes are rows or an Error.
#include "core/base/error.h"
#include "core/data/files/mindrecord.h"
#include "tests/fuzz/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const MemoryFile file(data, size);
    try {
        const auto records = lunaria::data::mindrecord_records({file.path()}, false, {}, size % 2 == 0);
        lunaria::data::Row row;
        for (int64_t i = 0; i < records->rows(); ++i) {
            row.clear();
            try {
                records->read(i, row);
            } catch (const lunaria::Error&) {
            }
        }
    } catch (const lunaria::Error&) {
    }
    return 0;
}
