// Any bytes are a sound or an Error.
#include "core/base/error.h"
#include "core/data/audio/sound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (bool whole : {false, true}) {
        try {
            lunaria::audio::read_sound("fuzz", bytes, whole);
        } catch (const lunaria::Error&) {
        }
    }
    return 0;
}
