// Tokens of texts: the rules that cut a text.
#pragma once

#include "core/data/text/unicode.h"
#include "core/data/text/words.h"
#include "core/data/transforms/step.h"

namespace lunaria::text {

struct Token {
    std::string text;
    uint32_t begin, end;  // bytes of the text that was cut
};
using Tokens = std::vector<Token>;

Tokens white_space_tokens(std::string_view where, std::string_view text);
Tokens character_tokens(std::string_view where, std::string_view text);

struct BasicRule {
    bool lower, keep_space;
    Form form;
    bool keep_unused;  // [CLS], [SEP], [UNK], [PAD], [MASK] and [unused1] stay as they are
};
Tokens basic_tokens(std::string_view where, std::string_view text, const BasicRule& rule);

struct PieceRule {
    const Words* words;
    std::string suffix;   // the beginning of every piece but the first
    size_t longest;       // longest word that is looked up, in bytes
    std::string unknown;  // empty: the word itself
};
// The word as the longest pieces that the vocabulary has.
void add_pieces(std::string_view where, const Token& word, const PieceRule& rule, Tokens& out);

// Runs of characters of one script; a mark belongs to the character before it.
Tokens script_tokens(std::string_view where, std::string_view text, bool keep_space);

// The parts between the matches of `cut`; a match stays as a token where `keep` matches the whole of it.
Tokens pattern_tokens(std::string_view text, const Pattern& cut, const Pattern* keep);

}  // namespace lunaria::text
