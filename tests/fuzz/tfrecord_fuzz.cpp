// Any bytes are rows or an Error: as a file, and as the message in a record whose check sums are right.
#include <cstring>
#include <string>

#include "core/base/error.h"
#include "core/data/files/tfrecord.h"
#include "core/io/crc32c.h"
#include "tests/fuzz/memory_file.h"

namespace {

std::string number(const void* bytes, size_t size) { return {static_cast<const char*>(bytes), size}; }

std::string with_sum(const std::string& bytes) {
    const uint32_t crc = lunaria::crc32c(bytes);
    const uint32_t masked = (crc >> 15 | crc << 17) + 0xa282ead8;
    return bytes + number(&masked, sizeof masked);
}

void read(const std::string& path) {
    try {
        const auto records = lunaria::data::tfrecord_records({path}, {});
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
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    read(MemoryFile(data, size).path());
    const uint64_t length = size;
    const std::string record = with_sum(number(&length, sizeof length)) + with_sum(number(data, size));
    read(MemoryFile(reinterpret_cast<const uint8_t*>(record.data()), record.size()).path());
    return 0;
}
