#include "core/base/printable.h"

#include <cstdint>
#include <cstdio>

namespace lunaria {

namespace {

struct Decoded {
    uint32_t code;
    size_t length;  // 0: not UTF-8
};

Decoded decode(std::string_view text) {
    const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned first = byte(0);
    if (first < 0x80) return {first, text.empty() ? size_t{0} : size_t{1}};
    const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                          : first >= 0xe0 && first < 0xf0 ? 3
                          : first >= 0xf0 && first < 0xf5 ? 4
                                                          : 0;
    uint32_t code = length == 0 ? 0 : first & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {0, 0};
        code = code << 6 | (byte(i) & 0x3f);
    }
    // An overlong form, half of a surrogate pair, or a code point past the last one.
    const bool wrong = (length == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
                       (length == 4 && code < 0x10000) || code > 0x10ffff;
    return {code, wrong ? 0 : length};
}

bool prints(uint32_t code) {
    return code >= 0x20 && (code < 0x7f || code >= 0xa0) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2066 && code <= 0x2069) && code != 0x200e && code != 0x200f && code != 0x061c;
}

}  // namespace

size_t printable_length(std::string_view text) {
    const Decoded d = decode(text);
    return d.length > 0 && prints(d.code) ? d.length : 0;
}

std::string printable(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const Decoded d = decode(text.substr(at));
        const size_t length = d.length > 0 ? d.length : 1;
        if (d.length > 0 && (prints(d.code) || text[at] == '\n' || text[at] == '\t')) {
            shown += text.substr(at, length);
        } else {
            char escape[16];
            if (d.length > 1)
                std::snprintf(escape, sizeof escape, "\\u{%x}", d.code);
            else
                std::snprintf(escape, sizeof escape, "\\x%02x",
                              static_cast<unsigned>(static_cast<unsigned char>(text[at])));
            shown += escape;
        }
        at += length;
    }
    return shown;
}

}  // namespace lunaria
