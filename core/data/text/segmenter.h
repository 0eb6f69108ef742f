// Words of texts that are written without spaces, such as Chinese: the most probable path through the words of a
// dictionary, and a hidden Markov model for words that it lacks. The files are those of cppjieba.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/data/text/tokens.h"

namespace lunaria::text {

// The numbers are those of JiebaMode.
enum class SegmentMode : uint8_t { mix = 0, dictionary = 1, model = 2 };

// A file: its contents, and its name for messages.
struct SourceText {
    std::string text, name;
};

class Segmenter {
  public:
    // dictionary: a line for each word, with its frequency and perhaps a tag. model: the logarithms of a hidden Markov
    // model's probabilities, for characters that begin, end or are within a word or are one (B, E, M, S). It has a line
    // for the first character, four of transitions, and four of "character:number" with commas between, in the order B,
    // E, M, S; lines with # are comments. Each is empty where the mode does not use it. user: more words, as in a
    // dictionary; frequency 0 stands for a middling one. Throws value_error, with the line of the file.
    Segmenter(std::string_view where, const SourceText& dictionary, const SourceText& model, std::string_view user,
              SegmentMode mode);
    ~Segmenter();

    // Spaces, line ends, commas and full stops of Chinese are tokens of their own.
    Tokens tokens(std::string_view where, std::string_view text) const;

  private:
    struct Body;
    std::unique_ptr<const Body> body_;
};

}  // namespace lunaria::text
