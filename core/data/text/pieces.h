// SentencePiece models (Kudo and Richardson 2018), by Debian's library.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lunaria::text {

class Pieces {
  public:
    // The bytes of a model. Throws value_error in the name of `where`.
    static std::shared_ptr<const Pieces> load(std::string_view where, std::string_view model);
    virtual ~Pieces() = default;
    virtual std::vector<std::string> texts(std::string_view text) const = 0;
    virtual std::vector<int> numbers(std::string_view text) const = 0;
    virtual size_t size() const = 0;
};

struct PieceTraining {
    int size;
    double coverage;
    std::string kind;                  // unigram, bpe, char or word
    std::vector<std::string> options;  // further ones, as "name=value"
};
// The bytes of a model trained on the texts.
std::string train_pieces(std::string_view where, const std::vector<std::string>& texts, const PieceTraining& training);

}  // namespace lunaria::text
