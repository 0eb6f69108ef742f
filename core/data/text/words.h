// A vocabulary: words with numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace lunaria::text {

class Words {
  public:
    // A word that is there already keeps its number.
    void add(std::string_view word, int64_t number) { numbers_.try_emplace(std::string(word), number); }
    // -1: the vocabulary does not have the word.
    int64_t number(std::string_view word) const {
        const auto it = numbers_.find(word);
        return it == numbers_.end() ? -1 : it->second;
    }
    size_t size() const { return numbers_.size(); }

  private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace lunaria::text
