// Tokenizers as tokenizer.json of Hugging Face describes them: texts to numbers and back, as the package `tokenizers`
// does it.
#pragma once

#include <array>

#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

class Tokenizer {
  public:
    // The text of a tokenizer.json. Throws value_error, which names the entry that is not understood.
    explicit Tokenizer(std::string_view file);

    // Never changes. The text must be UTF-8; `second`: the other one of a pair, or null.
    Encoding encode(std::string_view text, const std::string_view* second, bool add_special) const;
    // Numbers without a token are left out.
    std::string decode(const std::vector<int>& numbers, bool skip_special) const;

    // -1: there is no such token; null: no such number.
    int number(std::string_view token) const;
    const std::string* token(int number) const;
    bool is_special(int number) const;
    // One more than the largest number.
    size_t size() const;

  private:
    struct Added {
        int number;
        std::string text;     // as it is matched and shown: normalized where it is matched in a normalized text
        std::string content;  // its name
        bool single_word, left_strip, right_strip, is_normalized, is_special;
    };
    // Added tokens by their first byte, the longest first.
    using AddedByByte = std::array<std::vector<size_t>, 256>;

    void read_added(const nlohmann::json& list);
    void read_limits(const nlohmann::json& file);
    std::vector<Part> without_added(const Aligned& text, const AddedByByte& by_byte) const;
    const Added* added_at(std::string_view text, size_t at, const AddedByByte& by_byte) const;
    Encoding tokens_of(std::string_view text) const;
    void cut_off(Encoding& text, size_t most) const;
    void pad(Encoding& text) const;

    Normalizer normalizer_;
    Cutter cutter_;
    std::unique_ptr<TokenModel> model_;
    Decoder decoder_;
    PostProcessor post_processor_;
    std::vector<Added> added_;
    AddedByByte raw_, normalized_;
    std::unordered_map<int, size_t> added_numbers_;
    Words added_words_;

    struct Truncation {
        size_t most;
        bool from_left;
    };
    struct Padding {
        size_t length;  // 0: none but to a multiple
        size_t multiple;
        int number, type;
        std::string token;
        bool at_left;
    };
    std::optional<Truncation> truncation_;
    std::optional<Padding> padding_;
};

// Text from numbers that come one after the other, as far as its characters are complete.
class TokenStream {
  public:
    TokenStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
        : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}
    // What the number adds; empty where it ends within a character.
    std::string next(int number);
    // What is still held back.
    std::string rest();

  private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    bool skip_special_;
    std::vector<int> numbers_;  // those that the next ones are read with
    size_t told_ = 0;           // how many of them are in `before_`
    std::string before_;
};

}  // namespace lunaria::text
