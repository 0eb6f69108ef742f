#include "core/data/text/tokens.h"

namespace lunaria::text {

namespace {

Token part(std::string_view text, size_t begin, size_t end) {
    return {std::string(text.substr(begin, end - begin)), static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

// The number of bytes of a token such as [CLS] or [unused12] at this place; 0: there is none.
size_t unused_at(std::string_view text, size_t at) {
    if (text[at] != '[') return 0;
    for (std::string_view name : {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"})
        if (text.substr(at).starts_with(name)) return name.size();
    constexpr std::string_view kUnused = "[unused";
    if (!text.substr(at).starts_with(kUnused)) return 0;
    size_t end = at + kUnused.size();
    const size_t first = end;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return end > first && end < text.size() && text[end] == ']' ? end + 1 - at : 0;
}

// Lowers or normalizes the text between the special tokens; lower case also drops the marks.
std::string prepared(std::string_view where, std::string_view text, const BasicRule& rule) {
    std::string out;
    const auto add = [&](std::string_view piece) {
        const std::string made =
            rule.lower ? normalized(where, folded(where, piece), Form::nfd) : normalized(where, piece, rule.form);
        for (const Character& c : characters(where, made)) {
            const bool space = is_space(c.code);
            if ((is_control(c.code) && !space) || (rule.lower && is_mark(c.code))) continue;
            if (space && c.size() == 1)
                out += ' ';
            else
                out.append(made, c.begin, c.size());
        }
    };
    size_t from = 0;
    for (size_t at = 0; rule.keep_unused && at < text.size(); ++at) {
        const size_t size = unused_at(text, at);
        if (size == 0) continue;
        add(text.substr(from, at - from));
        out += text.substr(at, size);
        from = at + size;
        at = from - 1;
    }
    add(text.substr(from));
    return out;
}

}  // namespace

Tokens white_space_tokens(std::string_view where, std::string_view text) {
    Tokens list;
    size_t begin = 0;
    for (const Character& c : characters(where, text)) {
        if (!is_space(c.code)) continue;
        if (c.begin > begin) list.push_back(part(text, begin, c.begin));
        begin = c.end;
    }
    if (text.size() > begin) list.push_back(part(text, begin, text.size()));
    return list;
}

Tokens character_tokens(std::string_view where, std::string_view text) {
    Tokens list;
    for (const Character& c : characters(where, text)) list.push_back(part(text, c.begin, c.end));
    return list;
}

Tokens basic_tokens(std::string_view where, std::string_view given, const BasicRule& rule) {
    const std::string text = prepared(where, given, rule);
    Tokens list;
    size_t begin = 0;
    const auto flush = [&](size_t end) {
        if (end > begin) list.push_back(part(text, begin, end));
        begin = end;
    };
    size_t space_end = 0, skip_to = 0;
    for (const Character& c : characters(where, text)) {
        if (c.begin < skip_to) continue;
        const size_t special = rule.keep_unused ? unused_at(text, c.begin) : 0;
        if (special > 0) {
            flush(c.begin);
            skip_to = c.begin + special;
            flush(skip_to);
        } else if (is_space(c.code)) {
            if (c.begin != space_end || begin == c.begin) flush(c.begin);
            // Adjacent spaces are one token.
            if (rule.keep_space && !list.empty() && list.back().end == c.begin && space_end == c.begin &&
                space_end > 0) {
                list.back() = part(text, list.back().begin, c.end);
            } else if (rule.keep_space) {
                list.push_back(part(text, c.begin, c.end));
            }
            begin = space_end = c.end;
        } else if (is_punctuation(c.code) || is_ideograph(c.code)) {
            flush(c.begin);
            flush(c.end);
        }
    }
    flush(text.size());
    return list;
}

void add_pieces(std::string_view where, const Token& word, const PieceRule& rule, Tokens& out) {
    const auto unknown = [&] {
        out.push_back({rule.unknown.empty() ? word.text : rule.unknown, word.begin, word.end});
    };
    if (word.text.size() > rule.longest) return unknown();
    const std::vector<Character> letters = characters(where, word.text);
    Tokens made;
    for (size_t at = 0; at < letters.size();) {
        size_t end = letters.size();
        for (; end > at; --end) {
            const uint32_t from = letters[at].begin, to = letters[end - 1].end;
            std::string piece = (at > 0 ? rule.suffix : "") + word.text.substr(from, to - from);
            if (rule.words->number(piece) < 0) continue;
            made.push_back({std::move(piece), word.begin + from, word.begin + to});
            break;
        }
        if (end == at) return unknown();
        at = end;
    }
    out.insert(out.end(), made.begin(), made.end());
}

Tokens pattern_tokens(std::string_view text, const Pattern& cut, const Pattern* keep) {
    Tokens list;
    size_t begin = 0;
    for (const Pattern::Match& match : cut.all(text)) {
        if (match.end == match.begin) continue;  // it cuts nothing
        if (match.begin > begin) list.push_back(part(text, begin, match.begin));
        const std::string_view found = text.substr(match.begin, match.end - match.begin);
        Pattern::Match whole{};
        if (keep && keep->find(found, 0, whole) && whole.begin == 0 && whole.end == found.size())
            list.push_back(part(text, match.begin, match.end));
        begin = match.end;
    }
    if (text.size() > begin) list.push_back(part(text, begin, text.size()));
    return list;
}

Tokens script_tokens(std::string_view where, std::string_view text, bool keep_space) {
    static constexpr std::string_view kScripts =
        "Arabic Armenian Bengali Bopomofo Braille Cherokee Common Coptic Cyrillic Devanagari Ethiopic Georgian Gothic "
        "Greek "
        "Gujarati Gurmukhi Han Hangul Hebrew Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar "
        "Ogham "
        "Oriya Runic Sinhala Syriac Tamil Telugu Thaana Thai Tibetan Yi";
    static const Pattern runs = [] {
        std::string pattern = "\\s+";
        for (size_t at = 0; at < kScripts.size();) {
            const size_t end = std::min(kScripts.find(' ', at), kScripts.size());
            const std::string name(kScripts.substr(at, end - at));
            const std::string one = name == "Common" ? "(?!\\s)\\p{Common}" : "\\p{" + name + "}";
            pattern += "|(?:" + one + "\\p{Inherited}*)+";
            at = end + 1;
        }
        return Pattern("UnicodeScriptTokenizer", pattern + "|.");
    }();
    Tokens list;
    characters(where, text);
    for (const Pattern::Match& match : runs.all(text)) {
        const Token token = part(text, match.begin, match.end);
        if (keep_space || !is_space(characters(where, token.text).front().code)) list.push_back(token);
    }
    return list;
}

}  // namespace lunaria::text
