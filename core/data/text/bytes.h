// Byte-pair tokens over bytes, as GPT-2 has them (Radford et al. 2019; Sennrich et al. 2016).
#pragma once

#include <array>
#include <map>

#include "core/data/text/tokens.h"

namespace lunaria::text {

// The rule by which GPT-2's training texts were cut: endings, words, numbers, other signs, each with the space before.
inline constexpr std::string_view kByteWords =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The character that stands for each byte in tokens: a printable one for itself.
const std::array<int32_t, 256>& byte_letters();

class BytePairs {
  public:
    // The lines of a file of merges, "a b" each, in the order in which they are made. Throws value_error.
    BytePairs(std::string_view where, std::string_view merges);
    // Cuts the text into words and these into tokens, in which a printable character stands for each byte.
    std::vector<std::string> tokens(std::string_view text) const;

  private:
    void add_word(std::string_view word, std::vector<std::string>& out) const;
    struct Less {
        using is_transparent = void;
        using View = std::pair<std::string_view, std::string_view>;
        bool operator()(const View& a, const View& b) const { return a < b; }
    };
    std::map<std::pair<std::string, std::string>, int, Less> ranks_;
    Pattern words_;
};

}  // namespace lunaria::text
