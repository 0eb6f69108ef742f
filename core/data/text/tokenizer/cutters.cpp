#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/text/bytes.h"
#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

namespace {

using nlohmann::json;

// The classes of Oniguruma, in which the files' patterns are written, as PCRE2 has to be told of them: letters of words
// are also marks, white space is Unicode's.
constexpr std::string_view kWordClass = "\\p{L}\\p{M}\\p{N}\\p{Pc}";
constexpr std::string_view kSpaceClass = "\\t-\\r\\x{85}\\p{Z}";

std::string translated(std::string_view pattern) {
    std::string out = "(?m)";  // ^ and $ are those of lines
    int depth = 0;             // of classes
    for (size_t at = 0; at < pattern.size(); ++at) {
        const char c = pattern[at];
        if (c == '[' && pattern.substr(at).starts_with("[:") && depth > 0) {
            const size_t end = std::min(pattern.find(":]", at), pattern.size() - 2) + 2;
            out += pattern.substr(at, end - at);
            at = end - 1;
            continue;
        }
        if (c == '[')
            ++depth;
        else if (c == ']' && depth > 0)
            --depth;
        if (c != '\\' || at + 1 == pattern.size()) {
            out += c;
            // The first bracket of a class that closes it at once stands for itself.
            if (c == '[' && at + 1 < pattern.size()) {
                size_t next = at + 1;
                if (pattern[next] == '^') ++next;
                if (next < pattern.size() && pattern[next] == ']') {
                    out += pattern.substr(at + 1, next - at);
                    at = next;
                }
            }
            continue;
        }
        const char kind = pattern[++at];
        const std::string_view known = kind == 'w' || kind == 'W'   ? kWordClass
                                       : kind == 's' || kind == 'S' ? kSpaceClass
                                                                    : std::string_view();
        const bool is_negative = kind == 'W' || kind == 'S';
        if (known.empty() || (depth > 0 && is_negative))
            out.append(1, '\\').append(1, kind);
        else if (depth > 0)
            out += known;
        else
            out.append(is_negative ? "[^" : "[").append(known).append("]");
    }
    return out;
}

std::vector<Match> with_gaps(std::string_view text, const std::vector<Pattern::Match>& found) {
    std::vector<Match> list;
    size_t at = 0;
    for (const Pattern::Match& match : found) {
        if (match.begin > at) list.push_back({at, match.begin, false});
        list.push_back({match.begin, match.end, true});
        at = match.end;
    }
    if (at < text.size()) list.push_back({at, text.size(), false});
    return list;
}

Finder finder_of_pattern(std::string_view pattern) {
    return [compiled = std::make_shared<const Pattern>(kTokenizer, pattern)](std::string_view text) {
        return with_gaps(text, compiled->all(text));
    };
}

Finder finder_of_text(std::string what) {
    return [what = std::move(what)](std::string_view text) {
        std::vector<Pattern::Match> found;
        for (size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string_view::npos; at += what.size())
            found.push_back({at, at + what.size()});
        return with_gaps(text, found);
    };
}

Finder inverted(Finder finder) {
    return [finder = std::move(finder)](std::string_view text) {
        std::vector<Match> list = finder(text);
        for (Match& match : list) match.is_match = !match.is_match;
        return list;
    };
}

template <class Is>
Finder finder_of_letters(const Is& is) {
    return [=](std::string_view text) {
        std::vector<Match> list;
        size_t at = 0;
        for (const Character& c : characters(kTokenizer, text)) {
            if (!is(c.code)) continue;
            if (c.begin > at) list.push_back({at, c.begin, false});
            list.push_back({c.begin, c.end, true});
            at = c.end;
        }
        if (at < text.size()) list.push_back({at, text.size(), false});
        return list;
    };
}

bool is_number(int32_t code) {
    const auto kind = utf8proc_category(code);
    return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

Cutter splitting(Finder finder, Behavior behavior) {
    return [finder = std::move(finder), behavior](std::vector<Part>& parts) {
        cut_parts(parts, [&](Aligned& text) { return split(text, finder, behavior); });
    };
}

Cutter byte_level(const json& entry) {
    const bool prefix = flag_of(entry, "add_prefix_space", true), cuts = flag_of(entry, "use_regex", true);
    Finder words = cuts ? finder_of_pattern(translated(kByteWords)) : Finder();
    return [=](std::vector<Part>& parts) {
        cut_parts(parts, [&](Aligned& text) {
            if (prefix && !text.text().starts_with(' ')) text.prepend(" ");
            std::vector<Aligned> made = cuts ? split(text, words, Behavior::isolated) : std::vector<Aligned>{text};
            for (Aligned& one : made) to_byte_letters(one);
            return made;
        });
    };
}

Cutter metaspace(const json& entry) {
    const std::string letter = text_of(entry, "replacement");
    std::string scheme = "always";
    if (entry.contains("prepend_scheme"))
        scheme = text_of(entry, "prepend_scheme");
    else if (!flag_of(entry, "add_prefix_space", true))
        scheme = "never";
    if (scheme != "always" && scheme != "first" && scheme != "never")
        fail_entry(entry, str("prepend_scheme '", scheme, "' is not known"));
    const bool cuts = flag_of(entry, "split", true);
    const Finder spaces = finder_of_text(" "), marks = finder_of_text(letter);
    return [=](std::vector<Part>& parts) {
        cut_parts(parts, [&](Aligned& text) {
            text.replace(spaces(text.text()), letter);
            const bool wanted = scheme == "always" || (scheme == "first" && text.is_first());
            if (wanted && !text.text().starts_with(letter)) text.prepend(letter);
            return cuts ? split(text, marks, Behavior::merged_with_next) : std::vector<Aligned>{text};
        });
    };
}

Cutter split_cutter(const json& entry) {
    if (!entry.contains("pattern")) fail_entry(entry, "there is no pattern");
    Finder finder = finder_of(entry["pattern"]);
    if (flag_of(entry, "invert", false)) finder = inverted(std::move(finder));
    return splitting(std::move(finder), behavior_of(entry, Behavior::isolated));
}

Cutter delimiter(const json& entry) {
    return splitting(finder_of_text(text_of(entry, "delimiter")), Behavior::removed);
}

Cutter white_space(const json&) {
    // Letters as Rust's regular expressions have them: alphabetic characters and marks, digits, connectors, joiners.
    constexpr std::string_view kLetters =
        R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}\x{200C}\x{200D})";
    return splitting(inverted(finder_of_pattern(str("[", kLetters, "]+|[^", kLetters, kSpaceClass, "]+"))),
                     Behavior::removed);
}

Cutter fixed_length(const json& entry) {
    const int64_t length = integer_of(entry, "length");
    if (length < 1) fail_entry(entry, "length must be positive");
    return [=](std::vector<Part>& parts) {
        cut_parts(parts, [&](Aligned& text) {
            std::vector<Aligned> made;
            const std::vector<Character> letters = text.letters();
            for (size_t at = 0; at < letters.size(); at += static_cast<size_t>(length)) {
                const size_t last = std::min(at + static_cast<size_t>(length), letters.size()) - 1;
                made.push_back(text.slice(letters[at].begin, letters[last].end));
            }
            return made;
        });
    };
}

Cutter sequence(const json& entry) {
    if (!entry.contains("pretokenizers") || !entry["pretokenizers"].is_array())
        fail_entry(entry, "pretokenizers must be a list");
    std::vector<Cutter> list;
    for (const json& one : entry["pretokenizers"]) list.push_back(cutter_of(one));
    return [list](std::vector<Part>& parts) {
        for (const Cutter& one : list) one(parts);
    };
}

Cutter bert(const json&) {
    return [spaces = finder_of_letters(is_space), marks = finder_of_letters(is_punctuation)](std::vector<Part>& parts) {
        cut_parts(parts, [&](Aligned& text) { return split(text, spaces, Behavior::removed); });
        cut_parts(parts, [&](Aligned& text) { return split(text, marks, Behavior::isolated); });
    };
}

using Make = Cutter (*)(const json&);
constexpr std::pair<std::string_view, Make> kKinds[] = {
    {"ByteLevel", byte_level},
    {"Metaspace", metaspace},
    {"Split", split_cutter},
    {"Sequence", sequence},
    {"BertPreTokenizer", bert},
    {"Whitespace", white_space},
    {"CharDelimiterSplit", delimiter},
    {"FixedLength", fixed_length},
    {"WhitespaceSplit", [](const json&) { return splitting(finder_of_letters(is_space), Behavior::removed); }},
    {"Punctuation",
     [](const json& e) { return splitting(finder_of_letters(is_punctuation), behavior_of(e, Behavior::isolated)); }},
    {"Digits",
     [](const json& e) {
         const bool one = flag_of(e, "individual_digits", false);
         return splitting(finder_of_letters(is_number), one ? Behavior::isolated : Behavior::contiguous);
     }},
};

}  // namespace

Finder finder_of(const json& pattern) {
    if (pattern.is_string()) return finder_of_text(pattern.get<std::string>());
    for (const char* kind : {"String", "Regex"}) {
        if (!pattern.is_object() || !pattern.contains(kind)) continue;
        const std::string text = text_of(pattern, kind);
        return *kind == 'S' ? finder_of_text(text) : finder_of_pattern(translated(text));
    }
    throw value_error(kTokenizer, "a pattern of the file is neither a String nor a Regex");
}

Behavior behavior_of(const json& entry, Behavior missing) {
    if (!entry.contains("behavior")) return missing;
    const std::string name = text_of(entry, "behavior");
    constexpr std::pair<std::string_view, Behavior> kNames[] = {{"Isolated", Behavior::isolated},
                                                                {"Removed", Behavior::removed},
                                                                {"MergedWithPrevious", Behavior::merged_with_previous},
                                                                {"MergedWithNext", Behavior::merged_with_next},
                                                                {"Contiguous", Behavior::contiguous}};
    for (const auto& [known, behavior] : kNames)
        if (name == known) return behavior;
    fail_entry(entry, str("the behavior '", name, "' is not known"));
}

std::vector<Aligned> split(const Aligned& text, const Finder& finder, Behavior behavior) {
    std::vector<Match> all = finder(text.text());
    std::vector<Match> kept;
    bool before = false;
    if (behavior == Behavior::merged_with_next) {
        // From the end: a match joins the part that follows it.
        std::ranges::reverse(all);
        for (const Match& match : all) {
            if (match.is_match && !before && !kept.empty())
                kept.back().begin = match.begin;
            else
                kept.push_back(match);
            before = match.is_match;
        }
        std::ranges::reverse(kept);
    } else {
        for (const Match& match : all) {
            const bool joins = behavior == Behavior::contiguous
                                   ? before == match.is_match
                                   : behavior == Behavior::merged_with_previous && match.is_match && !before;
            if (behavior == Behavior::removed && match.is_match) continue;
            if (joins && !kept.empty())
                kept.back().end = match.end;
            else
                kept.push_back(match);
            before = match.is_match;
        }
    }
    std::vector<Aligned> parts;
    for (const Match& part : kept)
        if (part.end > part.begin) parts.push_back(text.slice(part.begin, part.end));
    return parts;
}

void cut_parts(std::vector<Part>& parts, const std::function<std::vector<Aligned>(Aligned&)>& cut) {
    std::vector<Part> made;
    for (Part& part : parts) {
        if (part.token) {
            made.push_back(std::move(part));
            continue;
        }
        for (Aligned& text : cut(part.text))
            if (!text.is_empty()) made.push_back({std::move(text), std::nullopt});
    }
    parts = std::move(made);
}

void to_byte_letters(Aligned& text) {
    std::vector<Change> list;
    for (const Character& c : text.letters())
        for (uint32_t at = c.begin; at < c.end; ++at) {
            const auto byte = static_cast<unsigned char>(text.text()[at]);
            list.push_back({byte_letters()[byte], at > c.begin ? 1 : 0});
        }
    text.transform(list);
}

int byte_of_letter(int32_t code) {
    static const auto bytes = [] {
        std::map<int32_t, int> all;
        for (int byte = 0; byte < 256; ++byte) all[byte_letters()[static_cast<size_t>(byte)]] = byte;
        return all;
    }();
    const auto it = bytes.find(code);
    return it == bytes.end() ? -1 : it->second;
}

Cutter cutter_of(const json& entry) {
    const std::string type = type_of(entry);
    for (const auto& [name, make] : kKinds)
        if (name == type) return make(entry);
    throw value_error(kTokenizer, str("the pre-tokenizer '", type, "' is not supported"));
}

}  // namespace lunaria::text
