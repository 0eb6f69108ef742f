#include "core/data/text/unicode.h"

#include <utf8proc.h>

#include <cstdlib>

#include "core/base/error.h"

namespace lunaria::text {

std::vector<Character> characters(std::string_view where, std::string_view text) {
    std::vector<Character> list;
    for (size_t at = 0; at < text.size();) {
        utf8proc_int32_t code = 0;
        const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
        const utf8proc_ssize_t size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
        if (size <= 0) throw value_error(where, str("the text is no UTF-8: byte ", at, " begins no character"));
        list.push_back({code, static_cast<uint32_t>(at), static_cast<uint32_t>(at + static_cast<size_t>(size))});
        at += static_cast<size_t>(size);
    }
    return list;
}

std::string utf8_of(int32_t code) {
    utf8proc_uint8_t bytes[4];
    const auto size = static_cast<size_t>(utf8proc_encode_char(code, bytes));
    return {reinterpret_cast<const char*>(bytes), size};
}

bool is_space(int32_t code) {
    if ((code >= 9 && code <= 13) || code == 0x85) return true;
    const auto kind = utf8proc_category(code);
    return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool is_control(int32_t code) {
    const auto kind = utf8proc_category(code);
    return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF;
}

bool is_mark(int32_t code) { return utf8proc_category(code) == UTF8PROC_CATEGORY_MN; }

bool is_punctuation(int32_t code) {
    if (code < 128) return std::ispunct(code) != 0;
    const auto kind = utf8proc_category(code);
    return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_ideograph(int32_t code) {
    static constexpr int32_t kRanges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                             {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF},
                                             {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (const auto& range : kRanges)
        if (code >= range[0] && code <= range[1]) return true;
    return false;
}

namespace {

std::string mapped(std::string_view where, std::string_view text, int options) {
    utf8proc_uint8_t* made = nullptr;
    const utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &made, static_cast<utf8proc_option_t>(options));
    const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> keeper(made, &std::free);
    if (size < 0) throw value_error(where, str("the text cannot be normalized: ", utf8proc_errmsg(size)));
    return {reinterpret_cast<char*>(made), static_cast<size_t>(size)};
}

}  // namespace

std::string normalized(std::string_view where, std::string_view text, Form form) {
    switch (form) {
        case Form::none:
            break;
        case Form::nfc:
            return mapped(where, text, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        case Form::nfkc:
            return mapped(where, text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
        case Form::nfd:
            return mapped(where, text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
        case Form::nfkd:
            return mapped(where, text, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    }
    return std::string(text);
}

namespace {

std::string changed(std::string_view where, std::string_view text, utf8proc_int32_t (*change)(utf8proc_int32_t),
                    int32_t special, std::string_view with) {
    std::string out;
    for (const Character& c : characters(where, text)) {
        if (c.code == special)
            out += with;
        else
            out += utf8_of(change(c.code));
    }
    return out;
}

}  // namespace

// Of the characters whose other case is two characters, only these two are common.
std::string upper(std::string_view where, std::string_view text) {
    return changed(where, text, utf8proc_toupper, 0xDF, "SS");
}
std::string lower(std::string_view where, std::string_view text) {
    return changed(where, text, utf8proc_tolower, 0x130, "i\xCC\x87");
}

std::string folded(std::string_view where, std::string_view text) {
    return mapped(where, text,
                  UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
}

}  // namespace lunaria::text
