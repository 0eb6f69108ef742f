#include "core/data/text/tokenizer/precompiled.h"

#include <utf8proc.h>

#include <cstring>

#include "core/base/error.h"

namespace lunaria::text {

namespace {

std::string from_base64(std::string_view text) {
    std::string bytes;
    uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        if (c == '=') break;
        constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const size_t digit = kDigits.find(c);
        if (digit == std::string_view::npos) throw value_error(kTokenizer, "precompiled_charsmap is no base64");
        bits = bits << 6 | static_cast<uint32_t>(digit);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xFF);
    }
    return bytes;
}

struct Table {
    std::vector<uint32_t> units;
    std::string texts;

    explicit Table(std::string_view encoded) {
        const std::string bytes = from_base64(encoded);
        uint32_t size = 0;
        if (bytes.size() >= 4) std::memcpy(&size, bytes.data(), 4);
        if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4)
            throw value_error(kTokenizer, str("precompiled_charsmap is damaged: its tree has ", size, " of ",
                                              bytes.size(), " bytes"));
        units.resize(size / 4);
        if (size > 0) std::memcpy(units.data(), bytes.data() + 4, size);
        texts = bytes.substr(4 + size);
        texts += '\0';
    }

    // What replaces the first entry that is a beginning of the text; null where none is.
    const char* of(std::string_view text) const {
        size_t node = 0;
        if (units.empty()) return nullptr;
        uint32_t unit = units[0];
        node ^= offset(unit);
        for (const char c : text) {
            if (c == 0) break;
            node ^= static_cast<unsigned char>(c);
            if (node >= units.size()) return nullptr;
            unit = units[node];
            if ((unit & 0x800000FFu) != static_cast<unsigned char>(c)) return nullptr;
            node ^= offset(unit);
            if (unit >> 8 & 1) {
                if (node >= units.size()) return nullptr;
                const uint32_t at = units[node] & 0x7FFFFFFFu;
                return at < texts.size() ? texts.data() + at : nullptr;
            }
        }
        return nullptr;
    }
    static size_t offset(uint32_t unit) { return static_cast<size_t>(unit >> 10) << ((unit & 1u << 9) >> 6); }
};

}  // namespace

Normalizer precompiled(std::string_view encoded) {
    return [table = std::make_shared<const Table>(encoded)](Aligned& text) {
        std::vector<Change> list;
        bool is_changed = false;
        const auto put = [&](const char* with, size_t old) {
            is_changed = true;
            const std::vector<Character> letters = characters(kTokenizer, with);
            for (size_t i = 0; i < letters.size(); ++i) list.push_back({letters[i].code, i < old ? 0 : 1});
            if (letters.size() < old && !list.empty()) list.back().change -= static_cast<int>(old - letters.size());
        };
        const std::vector<Character> letters = text.letters();
        const std::string_view bytes = text.text();
        for (size_t at = 0; at < letters.size();) {
            // A user's character may be several of Unicode's.
            size_t end = at + 1;
            utf8proc_int32_t state = 0;
            while (end < letters.size() &&
                   !utf8proc_grapheme_break_stateful(letters[end - 1].code, letters[end].code, &state))
                ++end;
            const std::string_view all = bytes.substr(letters[at].begin, letters[end - 1].end - letters[at].begin);
            const char* with = all.size() < 6 ? table->of(all) : nullptr;
            if (with) {
                put(with, end - at);
                at = end;
                continue;
            }
            for (; at < end; ++at) {
                with = table->of(bytes.substr(letters[at].begin, letters[at].size()));
                if (with)
                    put(with, 1);
                else
                    list.push_back({letters[at].code, 0});
            }
        }
        if (is_changed) text.transform(list);
    };
}

}  // namespace lunaria::text
