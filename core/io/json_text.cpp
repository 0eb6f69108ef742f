#include "core/io/json_text.h"

#include "core/io/protobuf.h"

namespace lunaria {

JsonText& JsonText::string(std::string_view text) {
    separate();
    const bool is_text = is_utf8(text);
    text_ += '"';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            text_ += '\\';
            text_ += c;
        } else if (byte < 32) {
            constexpr std::string_view kDigits = "0123456789abcdef";
            text_ += "\\u00";
            text_ += kDigits[byte >> 4];
            text_ += kDigits[byte & 15];
        } else if (byte >= 128 && !is_text) {
            text_ += "\uFFFD";
        } else {
            text_ += c;
        }
    }
    text_ += '"';
    return *this;
}

}  // namespace lunaria
