// Any bytes are a picture or an Error; so is any part of them.
// Source: core/data/vision/bmp.cpp
// Source: core/data/vision/color.cpp
// Source: core/data/vision/jpeg.cpp
// Source: core/data/vision/layout.cpp
// Source: core/data/vision/orientation.cpp
// Source: core/data/vision/png.cpp
#include "core/base/error.h"
#include "core/data/vision/decode.h"

using namespace lunaria;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    for (int mode = 0; mode < 3; ++mode) {
        try {
            vision::decode("fuzz", bytes, static_cast<vision::ReadMode>(mode));
        } catch (const Error&) {
        }
    }
    try {
        const auto middle = [](void*, int64_t h, int64_t w) {
            return vision::Part{h / 4, w / 4, (h + 1) / 2, (w + 1) / 2};
        };
        vision::decode_part("fuzz", bytes, middle, nullptr, {4, 4});
    } catch (const Error&) {
    }
    return 0;
}
