// Any bytes are tokens or an Error, and so they are as merges of byte pairs.
// Source: core/data/text/pattern.cpp
#include "core/base/error.h"
#include "core/data/text/bytes.h"
#include "core/data/text/tokens.h"

using namespace lunaria;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    const auto attempt = [](const auto& f) {
        try {
            f();
        } catch (const Error&) {
        }
    };
    attempt([&] { text::white_space_tokens("fuzz", bytes); });
    attempt([&] { text::character_tokens("fuzz", bytes); });
    attempt([&] { text::script_tokens("fuzz", bytes, size % 2 == 0); });
    for (int form = 0; form <= 4; ++form)
        attempt([&] {
            text::basic_tokens("fuzz", bytes,
                               {form % 2 == 1, size % 2 == 0, static_cast<text::Form>(form), size % 3 == 0});
        });
    attempt([&] { text::BytePairs("fuzz", bytes).tokens(bytes); });
    return 0;
}
