// Any bytes are lines and records of one size, or an Error.
#include "core/base/error.h"
#include "core/data/files/csv.h"
#include "core/data/files/fixed.h"
#include "tests/fuzz/memory_file.h"

using namespace lunaria;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const MemoryFile file(data, size);
    try {
        const auto records = data::line_records({file.path()});
        data::Row row;
        for (int64_t i = 0; i < records->rows(); ++i) {
            row.clear();
            records->read(i, row);
        }
    } catch (const Error&) {
    }
    try {
        data::read_fixed({file.path()}, size > 0 ? data[0] + 1 : 1);
    } catch (const Error&) {
    }
    return 0;
}
