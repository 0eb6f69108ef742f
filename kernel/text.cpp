#include "kernel/text.h"

#include <algorithm>

namespace lunaria::jupyter {

namespace {

bool is_start(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

size_t byte_position(std::string_view text, int position) {
    if (position < 0) return text.size();
    for (size_t i = 0; i < text.size(); ++i)
        if (is_start(text[i]) && position-- == 0) return i;
    return text.size();
}

int code_point_position(std::string_view text, size_t byte) {
    return static_cast<int>(std::ranges::count_if(text.substr(0, byte), is_start));
}

std::string base64(std::string_view bytes) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.size(); i += 3) {
        unsigned group = 0;
        for (size_t k = 0; k < 3; ++k)
            group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        const size_t digits = std::min<size_t>(bytes.size() - i, 3) + 1;
        for (size_t k = 0; k < 4; ++k) text += k < digits ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

}  // namespace lunaria::jupyter
