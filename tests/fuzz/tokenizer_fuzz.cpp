// Tokenizers of any tokenizer.json, on texts of the same bytes: errors are ours, places are within the text, streams
// end.
// Source: core/data/text/pattern.cpp
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/data/text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace lunaria;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    // A text may follow the file behind a zero.
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    const std::string_view text = end < bytes.size() ? bytes.substr(end + 1) : "Hello, wörld! <s> 12 日本\n\n x";
    try {
        const auto tokenizer = std::make_shared<const text::Tokenizer>(bytes.substr(0, end));
        const text::Encoding made = tokenizer->encode(text, nullptr, true);
        for (const text::Place& place : made.places)
            if (place.begin > place.end || place.end > text.size()) std::abort();
        (void)tokenizer->encode(text, &text, false);
        (void)tokenizer->decode(made.numbers, true);
        text::TokenStream stream(tokenizer, false);
        for (const int number : made.numbers) (void)stream.next(number);
        (void)stream.rest();
    } catch (const Error&) {
    }
    return 0;
}
