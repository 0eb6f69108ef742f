// The parts of a tokenizer as tokenizer.json of Hugging Face has them, each made of its entry in the file. An entry
// that is not known, or an option of one, is an error that names it.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/text/tokenizer/aligned.h"
#include "core/data/text/words.h"

namespace lunaria::text {

inline constexpr std::string_view kTokenizer = "Tokenizer";

using Normalizer = std::function<void(Aligned&)>;
Normalizer normalizer_of(const nlohmann::json& entry);

// A part of a text. One with a token is an added token, which no later step cuts.
struct Part {
    Aligned text;
    std::optional<int> token;
};
using Cutter = std::function<void(std::vector<Part>&)>;
Cutter cutter_of(const nlohmann::json& entry);

enum class Behavior : uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };
// All of the text, as matches of the pattern and what is between them.
using Finder = std::function<std::vector<Match>(std::string_view)>;
// {"String": s} or {"Regex": s}.
Finder finder_of(const nlohmann::json& pattern);
Behavior behavior_of(const nlohmann::json& entry, Behavior missing);
std::vector<Aligned> split(const Aligned& text, const Finder& finder, Behavior behavior);
// Changes each part that is no token into parts; empty ones are dropped.
void cut_parts(std::vector<Part>& parts, const std::function<std::vector<Aligned>(Aligned&)>& cut);
// The bytes of the text, as the characters that stand for them in byte-level tokens; and back, -1 for others.
void to_byte_letters(Aligned& text);
int byte_of_letter(int32_t code);

// A token of a word: its number, and the bytes of the word.
struct Piece {
    int number;
    size_t begin, end;
    std::string text;  // empty: the vocabulary's
};
class TokenModel {
  public:
    virtual ~TokenModel() = default;
    virtual void add(std::string_view word, std::vector<Piece>& out) const = 0;

    int number(std::string_view token) const { return static_cast<int>(words_.number(token)); }
    // Null where no token has the number.
    const std::string* token(int number) const;
    // One more than the largest number.
    size_t size() const { return tokens_.size(); }

  protected:
    void add_word(std::string_view token, int64_t number);
    void add_vocabulary(const nlohmann::json& entry);  // tokens and their numbers
    int needed(std::string_view token, std::string_view role) const;
    // Adds the tokens <0xNN> of the bytes; false where one of them is not in the vocabulary.
    bool bytes_of(std::string_view text, std::vector<int>& numbers) const;
    size_t longest_ = 0;

  private:
    Words words_;
    std::vector<std::optional<std::string>> tokens_;
};
std::unique_ptr<TokenModel> token_model_of(const nlohmann::json& entry);

using Decoder = std::function<void(std::vector<std::string>&)>;
Decoder decoder_of(const nlohmann::json& entry);

// The tokens of a text, or of a pair of them.
struct Encoding {
    std::string_view source;  // the text, while it is encoded
    std::vector<int> numbers, types;
    std::vector<std::string> tokens;
    std::vector<Place> places;
    std::vector<bool> special;

    void push(int number, std::string token, Place place, int type, bool is_special);
    void append(const Encoding& other);
};
struct PostProcessor {
    // Adds special tokens around one text or between two (null: there is one).
    std::function<Encoding(Encoding first, Encoding* second, bool add_special)> process;
    size_t added_to_single = 0, added_to_pair = 0;
};
PostProcessor post_processor_of(const nlohmann::json& entry);

// Reading of entries; errors name the entry's type.
std::string type_of(const nlohmann::json& entry);
[[noreturn]] void fail_entry(const nlohmann::json& entry, std::string_view problem);
bool flag_of(const nlohmann::json& entry, const char* name, bool missing);
std::string text_of(const nlohmann::json& entry, const char* name);
int64_t integer_of(const nlohmann::json& entry, const char* name);

}  // namespace lunaria::text
