#include <utf8proc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/text/tokenizer/parts.h"
#include "core/data/text/tokenizer/precompiled.h"

namespace lunaria::text {

namespace {

using nlohmann::json;

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

int class_of(int32_t code) { return utf8proc_get_property(code)->combining_class; }

// The character that two make together; -1: none.
int32_t composed(int32_t a, int32_t b) {
    if (b < 0x300) return -1;
    utf8proc_int32_t pair[3] = {a, b, 0};
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    return utf8proc_normalize_utf32(pair, 2, options) == 1 ? pair[0] : -1;
}

// Unicode's canonical composition; changes add up.
void compose(std::vector<Change>& list) {
    constexpr size_t kNone = SIZE_MAX;
    size_t starter = kNone, kept = 0;
    int last = -1;  // class of the character before, within a run after the starter
    for (const Change& c : list) {
        const int kind = class_of(c.code);
        if (starter != kNone && (last < kind || last == -1)) {
            if (const int32_t both = composed(list[starter].code, c.code); both >= 0) {
                list[starter] = {both, list[starter].change + c.change - 1};
                continue;
            }
        }
        if (kind == 0) {
            starter = kept;
            last = -1;
        } else {
            last = kind;
        }
        list[kept++] = c;
    }
    list.resize(kept);
}

void normalize(Aligned& text, bool compatibility, bool composes) {
    if (is_ascii(text.text())) return;
    std::vector<Change> list;
    const auto options =
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0));
    for (const Character& c : text.letters()) {
        utf8proc_int32_t parts[32];
        int boundary = 0;
        const utf8proc_ssize_t count = utf8proc_decompose_char(c.code, parts, 32, options, &boundary);
        if (count <= 0 || count > 32) {
            list.push_back({c.code, 0});
            continue;
        }
        for (utf8proc_ssize_t i = 0; i < count; ++i) list.push_back({parts[i], i > 0 ? 1 : 0});
    }
    for (auto at = list.begin(); at != list.end();) {
        const auto is_mark = [](const Change& c) { return class_of(c.code) != 0; };
        const auto first = std::find_if(at, list.end(), is_mark);
        at = std::find_if_not(first, list.end(), is_mark);
        std::stable_sort(first, at,
                         [](const Change& a, const Change& b) { return class_of(a.code) < class_of(b.code); });
    }
    if (composes) compose(list);
    text.transform(list);
}

void lower(Aligned& text) {
    std::vector<Change> list;
    for (const Character& c : text.letters()) {
        if (c.code == 0x130) {  // the one capital letter whose small one is two characters
            list.push_back({'i', 0});
            list.push_back({0x307, 1});
        } else {
            list.push_back({utf8proc_tolower(c.code), 0});
        }
    }
    text.transform(list);
}

template <class Map>
void map(Aligned& text, const Map& change) {
    std::vector<Change> list;
    for (const Character& c : text.letters()) list.push_back({change(c.code), 0});
    text.transform(list);
}

bool is_any_mark(int32_t code) {
    const auto kind = utf8proc_category(code);
    return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ME;
}

Normalizer bert(const json& entry) {
    const bool clean = flag_of(entry, "clean_text", true), chinese = flag_of(entry, "handle_chinese_chars", true),
               lowers = flag_of(entry, "lowercase", true), strips = flag_of(entry, "strip_accents", lowers);
    return [=](Aligned& text) {
        if (clean) {
            text.filter([](int32_t c) {
                if (c == '\t' || c == '\n' || c == '\r') return true;
                const auto kind = utf8proc_category(c);
                return c != 0 && c != 0xFFFD && !is_control(c) && kind != UTF8PROC_CATEGORY_CO &&
                       kind != UTF8PROC_CATEGORY_CS;
            });
            map(text, [](int32_t c) { return is_space(c) ? ' ' : c; });
        }
        if (chinese) {
            std::vector<Change> list;
            for (const Character& c : text.letters()) {
                if (is_ideograph(c.code))
                    list.insert(list.end(), {{' ', 0}, {c.code, 1}, {' ', 1}});
                else
                    list.push_back({c.code, 0});
            }
            text.transform(list);
        }
        if (strips) {
            normalize(text, false, false);
            text.filter([](int32_t c) { return !is_mark(c); });
        }
        if (lowers) lower(text);
    };
}

Normalizer strip(const json& entry) {
    const bool left = flag_of(entry, "strip_left", true), right = flag_of(entry, "strip_right", true);
    return [=](Aligned& text) {
        const std::vector<Character> letters = text.letters();
        size_t begin = 0, end = letters.size();
        while (left && begin < end && is_space(letters[begin].code)) ++begin;
        while (right && end > begin && is_space(letters[end - 1].code)) --end;
        const size_t first = begin < end ? letters[begin].begin : 0, last = begin < end ? letters[end - 1].end : 0;
        text = text.slice(first, last);
    };
}

// SentencePiece's nmt_nfkc drops these characters and takes those for spaces.
void nmt(Aligned& text) {
    text.filter([](int32_t c) {
        return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F);
    });
    map(text, [](int32_t c) {
        constexpr int32_t kSpaces[] = {9, 0xA, 0xC, 0xD, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
        return (c >= 0x200B && c <= 0x200F) || std::ranges::find(kSpaces, c) != std::end(kSpaces) ? ' ' : c;
    });
}

Normalizer replace(const json& entry) {
    if (!entry.contains("pattern")) fail_entry(entry, "there is no pattern");
    return [finder = finder_of(entry["pattern"]), content = text_of(entry, "content")](Aligned& text) {
        text.replace(finder(text.text()), content);
    };
}

Normalizer sequence(const json& entry) {
    if (!entry.contains("normalizers") || !entry["normalizers"].is_array())
        fail_entry(entry, "normalizers must be a list");
    std::vector<Normalizer> list;
    for (const json& one : entry["normalizers"]) list.push_back(normalizer_of(one));
    return [list](Aligned& text) {
        for (const Normalizer& one : list) one(text);
    };
}

using Make = Normalizer (*)(const json&);
constexpr std::pair<std::string_view, Make> kKinds[] = {
    {"BertNormalizer", bert},
    {"Strip", strip},
    {"Replace", replace},
    {"Sequence", sequence},
    {"Precompiled", [](const json& e) -> Normalizer { return precompiled(text_of(e, "precompiled_charsmap")); }},
    {"NFC", [](const json&) -> Normalizer { return [](Aligned& t) { normalize(t, false, true); }; }},
    {"NFD", [](const json&) -> Normalizer { return [](Aligned& t) { normalize(t, false, false); }; }},
    {"NFKC", [](const json&) -> Normalizer { return [](Aligned& t) { normalize(t, true, true); }; }},
    {"NFKD", [](const json&) -> Normalizer { return [](Aligned& t) { normalize(t, true, false); }; }},
    {"Lowercase", [](const json&) -> Normalizer { return lower; }},
    {"Nmt", [](const json&) -> Normalizer { return nmt; }},
    {"StripAccents",
     [](const json&) -> Normalizer { return [](Aligned& t) { t.filter([](int32_t c) { return !is_any_mark(c); }); }; }},
    {"Prepend",
     [](const json& e) -> Normalizer { return [before = text_of(e, "prepend")](Aligned& t) { t.prepend(before); }; }},
    {"ByteLevel", [](const json&) -> Normalizer { return to_byte_letters; }},
};

}  // namespace

Normalizer normalizer_of(const json& entry) {
    const std::string type = type_of(entry);
    for (const auto& [name, make] : kKinds)
        if (name == type) return make(entry);
    throw value_error(kTokenizer, str("the normalizer '", type, "' is not supported"));
}

}  // namespace lunaria::text
