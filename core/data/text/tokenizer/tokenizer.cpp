#include "core/data/text/tokenizer/tokenizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace lunaria::text {

namespace {

using nlohmann::json;

// The character that begins at `at`, or the last one that ends there.
int32_t code_at(std::string_view text, size_t at) {
    utf8proc_int32_t code = 0;
    utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                     static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    return code;
}
size_t before(std::string_view text, size_t at) {
    do --at;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
    return at;
}

bool is_word_letter(int32_t code) {
    switch (utf8proc_category(code)) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_PC:
            return true;
        default:
            return code == 0x200C || code == 0x200D;
    }
}

// Entries within entries are read by functions within functions.
void check_depth(std::string_view file) {
    constexpr int kMost = 64;
    int depth = 0;
    bool is_text = false;
    for (size_t at = 0; at < file.size(); ++at) {
        const char c = file[at];
        if (is_text && c == '\\')
            ++at;
        else if (c == '"')
            is_text = !is_text;
        else if (!is_text && (c == '[' || c == '{'))
            ++depth;
        else if (!is_text && (c == ']' || c == '}'))
            --depth;
        if (depth > kMost)
            throw value_error(kTokenizer, str("the file is nested deeper than ", kMost, " levels at byte ", at));
    }
}

json parsed(std::string_view file) {
    check_depth(file);
    json tree;
    try {
        tree = json::parse(file);
    } catch (const json::parse_error& e) {
        throw value_error(kTokenizer, str("the file is no JSON: the problem is at byte ", e.byte));
    } catch (const json::exception& e) {
        throw value_error(kTokenizer, str("the file is no JSON: ", e.what()));
    }
    if (!tree.is_object() || !tree.contains("model"))
        throw value_error(kTokenizer, "the file is no tokenizer.json: it has no model")
            .hint("a tokenizer.json of the package tokenizers is expected");
    return tree;
}

bool has(const json& tree, const char* name) { return tree.contains(name) && !tree[name].is_null(); }

}  // namespace

Tokenizer::Tokenizer(std::string_view file) {
    const json tree = parsed(file);
    try {
        if (has(tree, "normalizer")) normalizer_ = normalizer_of(tree["normalizer"]);
        if (has(tree, "pre_tokenizer")) cutter_ = cutter_of(tree["pre_tokenizer"]);
        model_ = token_model_of(tree["model"]);
        if (has(tree, "decoder")) decoder_ = decoder_of(tree["decoder"]);
        post_processor_ = post_processor_of(has(tree, "post_processor") ? tree["post_processor"] : json());
        if (has(tree, "added_tokens")) read_added(tree["added_tokens"]);
        read_limits(tree);
    } catch (const json::exception& e) {
        throw value_error(kTokenizer, str("the file is damaged: ", e.what()));
    }
}

void Tokenizer::read_added(const json& list) {
    if (!list.is_array()) throw value_error(kTokenizer, "added_tokens must be a list");
    for (const json& entry : list) {
        if (!entry.is_object()) throw value_error(kTokenizer, "added_tokens has an entry that is no table");
        Added token{static_cast<int>(integer_of(entry, "id")),
                    {},
                    text_of(entry, "content"),
                    flag_of(entry, "single_word", false),
                    flag_of(entry, "lstrip", false),
                    flag_of(entry, "rstrip", false),
                    flag_of(entry, "normalized", true),
                    flag_of(entry, "special", false)};
        if (token.content.empty() || token.number < 0) continue;
        // A token of the vocabulary keeps the number that it has there.
        if (const int known = model_->number(token.content); known >= 0) token.number = known;
        Aligned text(kTokenizer, token.content);
        if (token.is_normalized && normalizer_) normalizer_(text);
        token.text = text.text();
        added_numbers_.try_emplace(token.number, added_.size());
        added_words_.add(token.content, token.number);
        added_.push_back(std::move(token));
    }
    for (size_t i = 0; i < added_.size(); ++i) {
        const Added& token = added_[i];
        if (!token.text.empty())
            (token.is_normalized ? normalized_ : raw_)[static_cast<unsigned char>(token.text[0])].push_back(i);
    }
    for (AddedByByte* all : {&raw_, &normalized_})
        for (std::vector<size_t>& some : *all)
            std::ranges::stable_sort(some, std::greater<>(), [&](size_t i) { return added_[i].text.size(); });
}

void Tokenizer::read_limits(const json& tree) {
    if (has(tree, "truncation")) {
        const json& entry = tree["truncation"];
        const std::string direction = entry.contains("direction") ? text_of(entry, "direction") : "Right";
        truncation_ = {static_cast<size_t>(std::max<int64_t>(integer_of(entry, "max_length"), 0)), direction == "Left"};
    }
    if (has(tree, "padding")) {
        const json& entry = tree["padding"];
        const json strategy = entry.value("strategy", json("BatchLongest"));
        Padding padding{0,
                        1,
                        static_cast<int>(integer_of(entry, "pad_id")),
                        static_cast<int>(integer_of(entry, "pad_type_id")),
                        text_of(entry, "pad_token"),
                        entry.contains("direction") && text_of(entry, "direction") == "Left"};
        if (strategy.is_object())
            padding.length = static_cast<size_t>(std::max<int64_t>(integer_of(strategy, "Fixed"), 0));
        if (has(entry, "pad_to_multiple_of"))
            padding.multiple = static_cast<size_t>(std::max<int64_t>(integer_of(entry, "pad_to_multiple_of"), 1));
        constexpr size_t kMost = 1 << 20;
        if (padding.length > kMost || padding.multiple > kMost) throw value_error(kTokenizer, "padding is too long");
        padding_ = padding;
    }
}

const Tokenizer::Added* Tokenizer::added_at(std::string_view text, size_t at, const AddedByByte& by_byte) const {
    for (const size_t i : by_byte[static_cast<unsigned char>(text[at])])
        if (text.substr(at).starts_with(added_[i].text)) return &added_[i];
    return nullptr;
}

std::vector<Part> Tokenizer::without_added(const Aligned& part, const AddedByByte& by_byte) const {
    const std::string_view text = part.text();
    std::vector<Part> parts;
    size_t from = 0;
    for (size_t at = 0; at < text.size();) {
        const Added* token = added_at(text, at, by_byte);
        if (!token) {
            ++at;
            continue;
        }
        size_t begin = at, end = at + token->text.size();
        at = end;
        const bool follows_word = begin > 0 && is_word_letter(code_at(text, before(text, begin)));
        const bool precedes_word = end < text.size() && is_word_letter(code_at(text, end));
        if (token->single_word && (follows_word || precedes_word)) continue;
        while (token->left_strip && begin > from && is_space(code_at(text, before(text, begin))))
            begin = before(text, begin);
        while (token->right_strip && end < text.size() && is_space(code_at(text, end))) do
                ++end;
            while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
        if (begin > from) parts.push_back({part.slice(from, begin), std::nullopt});
        parts.push_back({part.slice(begin, end), token->number});
        from = end;
        at = std::max(at, end);
    }
    if (from < text.size()) parts.push_back({from == 0 ? part : part.slice(from, text.size()), std::nullopt});
    return parts;
}

Encoding Tokenizer::tokens_of(std::string_view text) const {
    std::vector<Part> parts;
    for (Part& raw : without_added(Aligned(kTokenizer, text), raw_)) {
        if (raw.token) {
            parts.push_back(std::move(raw));
            continue;
        }
        if (normalizer_) normalizer_(raw.text);
        for (Part& part : without_added(raw.text, normalized_)) parts.push_back(std::move(part));
    }
    if (cutter_) cutter_(parts);
    Encoding out;
    out.source = text;
    std::vector<Piece> pieces;
    for (const Part& part : parts) {
        if (part.token) {
            out.push(*part.token, part.text.text(), part.text.place(0, part.text.text().size()), 0, false);
            continue;
        }
        pieces.clear();
        model_->add(part.text.text(), pieces);
        for (Piece& piece : pieces)
            out.push(piece.number, piece.text.empty() ? *model_->token(piece.number) : std::move(piece.text),
                     part.text.place(piece.begin, piece.end), 0, false);
    }
    return out;
}

void Tokenizer::cut_off(Encoding& text, size_t most) const {
    const size_t all = text.numbers.size();
    if (all <= most) return;
    const size_t from = truncation_->from_left ? all - most : 0;
    Encoding kept;
    kept.source = text.source;
    for (size_t i = from; i < from + most; ++i)
        kept.push(text.numbers[i], text.tokens[i], text.places[i], text.types[i], text.special[i]);
    text = std::move(kept);
}

void Tokenizer::pad(Encoding& text) const {
    const Padding& padding = *padding_;
    size_t length = std::max(padding.length, text.numbers.size());
    length = (length + padding.multiple - 1) / padding.multiple * padding.multiple;
    Encoding more;
    for (size_t i = text.numbers.size(); i < length; ++i)
        more.push(padding.number, padding.token, {0, 0}, padding.type, true);
    if (padding.at_left) std::swap(text, more);
    text.append(more);
}

Encoding Tokenizer::encode(std::string_view text, const std::string_view* second, bool add_special) const {
    Encoding first = tokens_of(text), other;
    if (second) other = tokens_of(*second);
    if (truncation_) {
        const size_t added = !add_special ? 0
                             : second     ? post_processor_.added_to_pair
                                          : post_processor_.added_to_single;
        const size_t most = truncation_->most > added ? truncation_->most - added : 0;
        size_t a = first.numbers.size(), b = other.numbers.size();
        // The longer one of a pair is cut first.
        if (a + b > most) {
            if (second) {
                const bool swaps = a > b;
                size_t less = std::min(a, b), more = most;
                less = std::min(less, most);
                more = std::max(less, most - less);
                if (less + more > most) {
                    less = most / 2;
                    more = less + most % 2;
                }
                a = swaps ? more : less;
                b = swaps ? less : more;
            } else {
                a = most;
            }
            cut_off(first, a);
            cut_off(other, b);
        }
    }
    Encoding all = post_processor_.process(std::move(first), second ? &other : nullptr, add_special);
    if (padding_) pad(all);
    return all;
}

std::string Tokenizer::decode(const std::vector<int>& numbers, bool skip_special) const {
    std::vector<std::string> tokens;
    for (const int number : numbers) {
        const std::string* known = token(number);
        if (known && !(skip_special && is_special(number))) tokens.push_back(*known);
    }
    if (decoder_) decoder_(tokens);
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0 && !decoder_) text += ' ';
        text += tokens[i];
    }
    return text;
}

int Tokenizer::number(std::string_view token) const {
    const int64_t added = added_words_.number(token);
    return added >= 0 ? static_cast<int>(added) : model_->number(token);
}

const std::string* Tokenizer::token(int number) const {
    const auto it = added_numbers_.find(number);
    return it != added_numbers_.end() ? &added_[it->second].text : model_->token(number);
}

bool Tokenizer::is_special(int number) const {
    const auto it = added_numbers_.find(number);
    return it != added_numbers_.end() && added_[it->second].is_special;
}

size_t Tokenizer::size() const {
    size_t size = model_->size();
    for (const Added& token : added_) size = std::max(size, static_cast<size_t>(token.number) + 1);
    return size;
}

namespace {

// What a text has behind the part that it shares with another one, in whole characters.
std::string beyond(const std::string& text, const std::string& shared) {
    size_t at = static_cast<size_t>(std::ranges::mismatch(text, shared).in1 - text.begin());
    while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    return text.substr(at);
}

}  // namespace

std::string TokenStream::next(int number) {
    if (skip_special_ && tokenizer_->is_special(number)) return {};
    numbers_.push_back(number);
    const std::string text = tokenizer_->decode(numbers_, skip_special_);
    // Bytes that begin no character are not waited for longer than any character takes.
    constexpr size_t kMostHeld = 8;
    const bool is_open = text.ends_with("\xEF\xBF\xBD") && numbers_.size() - told_ < kMostHeld;
    if (is_open || text.size() <= before_.size()) return {};
    std::string added = beyond(text, before_);
    // The tokens of this step are read again with the next ones: what they give may depend on being first.
    numbers_.erase(numbers_.begin(), numbers_.begin() + static_cast<std::ptrdiff_t>(told_));
    before_ = tokenizer_->decode(numbers_, skip_special_);
    told_ = numbers_.size();
    return added;
}

std::string TokenStream::rest() {
    const std::string text = tokenizer_->decode(numbers_, skip_special_);
    std::string added = text.size() > before_.size() ? beyond(text, before_) : std::string();
    numbers_.clear();
    before_.clear();
    told_ = 0;
    return added;
}

}  // namespace lunaria::text
