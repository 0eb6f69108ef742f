// Any bytes are events or an Error, and an event takes no more memory than a few times its bytes.
#include "core/base/error.h"
#include "core/data/files/events.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (const bool partial : {false, true}) {
        EventReader reader(memory_source("fuzz", bytes), partial);
        try {
            while (reader.next()) continue;
        } catch (const Error&) {
        }
    }
    // Check sums keep most inputs from the messages.
    try {
        read_event(bytes, "fuzz");
    } catch (const Error&) {
    }
    return 0;
}
