// A text that normalizers change, with the place in the original of each of its bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/text/unicode.h"

namespace lunaria::text {

// Bytes of the original text.
struct Place {
    uint32_t begin, end;
};

// A character of the new text and what became of the old characters there: 0: it replaces one, 1: it is new,
// -n: it replaces one and n more.
struct Change {
    int32_t code;
    int change;
};

// A part of a text: a match of a pattern, or what is between two.
struct Match {
    size_t begin, end;
    bool is_match;
};

class Aligned {
  public:
    explicit Aligned(std::string_view where, std::string_view text);

    const std::string& text() const { return text_; }
    bool is_empty() const { return text_.empty(); }
    // Where the bytes from `begin` to `end` of the text stand in the original.
    Place place(size_t begin, size_t end) const;
    // Whether the text begins where the original does.
    bool is_first() const { return places_.empty() || places_.front().begin == 0; }
    std::vector<Character> letters() const { return characters("Tokenizer", text_); }

    Aligned slice(size_t begin, size_t end) const;
    // The text is made of these characters; the first `removed` old ones are gone. A new character has the place of the
    // one before it.
    void transform(const std::vector<Change>& list, size_t removed = 0);
    // The same for the bytes from `begin` to `end`.
    void transform(size_t begin, size_t end, const std::vector<Change>& list, size_t removed);
    void prepend(std::string_view text);
    // `content` takes the place of each match. It stands where the last byte of the match did.
    void replace(const std::vector<Match>& all, std::string_view content);
    template <class Keep>
    void filter(const Keep& keep) {
        std::vector<Change> list;
        size_t first = 0;
        int removed = 0;
        for (const Character& c : letters()) {
            if (!keep(c.code)) {
                ++removed;
                continue;
            }
            if (list.empty())
                first = static_cast<size_t>(removed);
            else
                list.back().change = -removed;
            removed = 0;
            list.push_back({c.code, 0});
        }
        if (!list.empty()) list.back().change = -removed;
        if (list.empty()) first = letters().size();
        transform(list, first);
    }

  private:
    Aligned() = default;
    std::string text_;
    std::vector<Place> places_;  // of each byte
};

// The text with U+FFFD in place of what is no UTF-8: one for each longest beginning of a character.
std::string repaired(std::string_view bytes);

}  // namespace lunaria::text
