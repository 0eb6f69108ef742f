#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

void replace_all(std::string& text, std::string_view what, std::string_view with) {
    if (what.empty()) return;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
}

// English punctuation without the spaces that tokens left before it.
void clean_up(std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> kRows[] = {
        {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
        {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (const auto& [what, with] : kRows) replace_all(text, what, with);
}

void byte_level(Texts& tokens) {
    std::string bytes;
    for (const std::string& token : tokens) {
        std::string made;
        bool fits = true;
        for (const Character& c : characters(kTokenizer, token)) {
            const int byte = byte_of_letter(c.code);
            fits = fits && byte >= 0;
            made += static_cast<char>(byte);
        }
        bytes += fits ? made : token;
    }
    tokens = {repaired(bytes)};
}

bool is_utf8(std::string_view bytes) { return repaired(bytes) == bytes; }

void byte_fallback(Texts& tokens) {
    Texts made;
    std::string bytes;
    const auto flush = [&] {
        if (is_utf8(bytes)) {
            if (!bytes.empty()) made.push_back(bytes);
        } else {
            made.insert(made.end(), bytes.size(), "\xEF\xBF\xBD");
        }
        bytes.clear();
    };
    const auto digit = [](char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                      : -1;
    };
    for (std::string& token : tokens) {
        if (token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') && digit(token[3]) >= 0 &&
            digit(token[4]) >= 0) {
            bytes += static_cast<char>(digit(token[3]) * 16 + digit(token[4]));
            continue;
        }
        flush();
        made.push_back(std::move(token));
    }
    flush();
    tokens = std::move(made);
}

void fuse(Texts& tokens) {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {all};
}

Decoder word_piece(const json& entry) {
    return [prefix = text_of(entry, "prefix"), cleans = flag_of(entry, "cleanup", true)](Texts& tokens) {
        for (size_t i = 0; i < tokens.size(); ++i) {
            if (i > 0 && tokens[i].starts_with(prefix))
                tokens[i].erase(0, prefix.size());
            else if (i > 0)
                tokens[i].insert(0, " ");
            if (cleans) clean_up(tokens[i]);
        }
    };
}

Decoder metaspace(const json& entry) {
    const std::string letter = text_of(entry, "replacement");
    const bool strips = entry.contains("prepend_scheme") ? text_of(entry, "prepend_scheme") != "never"
                                                         : flag_of(entry, "add_prefix_space", true);
    return [=](Texts& tokens) {
        for (size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], letter, i == 0 && strips ? "" : " ");
    };
}

Decoder strip(const json& entry) {
    const std::string letter = text_of(entry, "content");
    const int64_t left = integer_of(entry, "start"), right = integer_of(entry, "stop");
    if (letter.empty()) fail_entry(entry, "content must be a character");
    return [=](Texts& tokens) {
        for (std::string& token : tokens) {
            for (int64_t i = 0; i < left && token.starts_with(letter); ++i) token.erase(0, letter.size());
            for (int64_t i = 0; i < right && token.ends_with(letter); ++i) token.resize(token.size() - letter.size());
        }
    };
}

Decoder replace(const json& entry) {
    if (!entry.contains("pattern")) fail_entry(entry, "there is no pattern");
    return [finder = finder_of(entry["pattern"]), content = text_of(entry, "content")](Texts& tokens) {
        for (std::string& token : tokens) {
            std::string made;
            for (const Match& match : finder(token))
                made += match.is_match ? content : token.substr(match.begin, match.end - match.begin);
            token = std::move(made);
        }
    };
}

Decoder bpe(const json& entry) {
    return [suffix = text_of(entry, "suffix")](Texts& tokens) {
        for (size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    };
}

Decoder ctc(const json& entry) {
    return [pad = text_of(entry, "pad_token"), space = text_of(entry, "word_delimiter_token"),
            cleans = flag_of(entry, "cleanup", true)](Texts& tokens) {
        tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
        for (std::string& token : tokens) {
            replace_all(token, pad, "");
            if (!cleans) continue;
            clean_up(token);
            replace_all(token, space, " ");
        }
        std::erase(tokens, "");
    };
}

Decoder sequence(const json& entry) {
    if (!entry.contains("decoders") || !entry["decoders"].is_array()) fail_entry(entry, "decoders must be a list");
    std::vector<Decoder> list;
    for (const json& one : entry["decoders"]) list.push_back(decoder_of(one));
    return [list](Texts& tokens) {
        for (const Decoder& one : list) one(tokens);
    };
}

using Make = Decoder (*)(const json&);
constexpr std::pair<std::string_view, Make> kKinds[] = {
    {"ByteLevel", [](const json&) -> Decoder { return byte_level; }},
    {"ByteFallback", [](const json&) -> Decoder { return byte_fallback; }},
    {"Fuse", [](const json&) -> Decoder { return fuse; }},
    {"WordPiece", word_piece},
    {"Metaspace", metaspace},
    {"Strip", strip},
    {"Replace", replace},
    {"BPEDecoder", bpe},
    {"CTC", ctc},
    {"Sequence", sequence},
};

}  // namespace

Decoder decoder_of(const json& entry) {
    const std::string type = type_of(entry);
    for (const auto& [name, make] : kKinds)
        if (name == type) return make(entry);
    throw value_error(kTokenizer, str("the decoder '", type, "' is not supported"));
}

}  // namespace lunaria::text
