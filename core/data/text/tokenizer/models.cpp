#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/data/text/tokenizer/parts.h"

namespace lunaria::text {

namespace {

using nlohmann::json;

std::string optional_text(const json& entry, const char* name) {
    const auto it = entry.find(name);
    return it == entry.end() || it->is_null() ? std::string() : text_of(entry, name);
}

class BytePairModel final : public TokenModel {
  public:
    explicit BytePairModel(const json& entry)
        : prefix_(optional_text(entry, "continuing_subword_prefix")),
          suffix_(optional_text(entry, "end_of_word_suffix")),
          fuses_unknown_(flag_of(entry, "fuse_unk", false)),
          falls_back_(flag_of(entry, "byte_fallback", false)),
          ignores_merges_(flag_of(entry, "ignore_merges", false)) {
        if (const auto it = entry.find("dropout"); it != entry.end() && it->is_number() && it->get<double>() != 0)
            fail_entry(entry, "dropout is not supported: a text always gives the same tokens here");
        add_vocabulary(entry);
        const std::string unknown = optional_text(entry, "unk_token");
        if (!unknown.empty()) unknown_ = number(unknown);
        has_unknown_ = !unknown.empty();
        if (!entry.contains("merges") || !entry["merges"].is_array()) fail_entry(entry, "merges must be a list");
        int rank = 0;
        for (const json& merge : entry["merges"]) {
            std::string left, right;
            if (merge.is_string()) {
                const std::string both = merge.get<std::string>();
                const size_t space = both.find(' ');
                if (space == std::string::npos) fail_entry(entry, str("the merge '", both, "' has no space"));
                left = both.substr(0, space);
                right = both.substr(space + 1);
            } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
                left = merge[0].get<std::string>();
                right = merge[1].get<std::string>();
            } else {
                fail_entry(entry, str("merge ", rank, " is not two tokens"));
            }
            if (right.size() < prefix_.size()) fail_entry(entry, str("merge ", rank, " lacks the prefix of pieces"));
            const int made = needed(left + right.substr(prefix_.size()), "a merge makes");
            merges_[key(needed(left, "a merge has"), needed(right, "a merge has"))] = {rank++, made};
        }
    }

    void add(std::string_view word, std::vector<Piece>& out) const override {
        if (const int whole = ignores_merges_ ? number(word) : -1; whole >= 0)
            return out.push_back({whole, 0, word.size(), {}});
        std::vector<Symbol> symbols = symbols_of(word);
        merge(symbols);
        size_t at = 0;
        for (const Symbol& symbol : symbols) {
            if (symbol.size == 0) continue;
            out.push_back({symbol.number, at, at + symbol.size, {}});
            at += symbol.size;
        }
    }

  private:
    struct Symbol {
        int number;
        size_t size;  // bytes of the word; 0: merged into another
        int before, after;
    };
    struct Made {
        int rank, number;
    };
    static uint64_t key(int left, int right) {
        return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    }

    std::vector<Symbol> symbols_of(std::string_view word) const {
        std::vector<Symbol> list;
        const auto put = [&](int number, size_t size) {
            list.push_back({number, size, static_cast<int>(list.size()) - 1, static_cast<int>(list.size()) + 1});
        };
        size_t unknown = 0;  // bytes of an unknown token that is still to be put
        std::vector<int> bytes;
        for (const Character& c : characters(kTokenizer, word)) {
            std::string letter(word.substr(c.begin, c.size()));
            if (c.begin > 0) letter = prefix_ + letter;
            if (c.end == word.size()) letter += suffix_;
            const int known = number(letter);
            if (known >= 0) {
                if (unknown > 0) put(unknown_, unknown);
                unknown = 0;
                put(known, c.size());
            } else if (falls_back_ && bytes_of(letter, bytes)) {
                for (const int byte : bytes) put(byte, 1);
            } else if (has_unknown_) {
                if (unknown_ < 0) throw value_error(kTokenizer, "the vocabulary lacks the token for unknown texts");
                if (unknown > 0 && !fuses_unknown_) {
                    put(unknown_, unknown);
                    unknown = 0;
                }
                unknown += c.size();
            }
        }
        if (unknown > 0) put(unknown_, unknown);
        if (!list.empty()) list.back().after = -1;
        return list;
    }

    void merge(std::vector<Symbol>& symbols) const {
        struct Candidate {
            int rank, at, number;
            bool operator<(const Candidate& other) const {
                return rank != other.rank ? rank > other.rank : at > other.at;
            }
        };
        std::priority_queue<Candidate> queue;
        const auto offer = [&](int left) {
            if (left < 0 || symbols[static_cast<size_t>(left)].after < 0) return;
            const Symbol& symbol = symbols[static_cast<size_t>(left)];
            const auto it = merges_.find(key(symbol.number, symbols[static_cast<size_t>(symbol.after)].number));
            if (it != merges_.end()) queue.push({it->second.rank, left, it->second.number});
        };
        for (size_t i = 0; i + 1 < symbols.size(); ++i) offer(static_cast<int>(i));
        while (!queue.empty()) {
            poll_interrupt();
            const Candidate best = queue.top();
            queue.pop();
            Symbol& left = symbols[static_cast<size_t>(best.at)];
            if (left.size == 0 || left.after < 0) continue;
            Symbol& right = symbols[static_cast<size_t>(left.after)];
            // One of the two may have been merged since.
            const auto it = merges_.find(key(left.number, right.number));
            if (it == merges_.end() || it->second.number != best.number) continue;
            left.number = best.number;
            left.size += right.size;
            right.size = 0;
            left.after = right.after;
            if (left.after >= 0) symbols[static_cast<size_t>(left.after)].before = best.at;
            offer(left.before);
            offer(best.at);
        }
    }

    const std::string prefix_, suffix_;
    const bool fuses_unknown_, falls_back_, ignores_merges_;
    int unknown_ = -1;
    bool has_unknown_ = false;
    std::unordered_map<uint64_t, Made> merges_;
};

class WordPieceModel final : public TokenModel {
  public:
    explicit WordPieceModel(const json& entry)
        : prefix_(entry.contains("continuing_subword_prefix") ? text_of(entry, "continuing_subword_prefix") : "##"),
          most_(entry.contains("max_input_chars_per_word") ? integer_of(entry, "max_input_chars_per_word") : 100) {
        add_vocabulary(entry);
        unknown_ = needed(entry.contains("unk_token") ? text_of(entry, "unk_token") : "[UNK]", "unk_token is");
    }

    void add(std::string_view word, std::vector<Piece>& out) const override {
        const std::vector<Character> letters = characters(kTokenizer, word);
        const size_t first = out.size();
        const auto unknown = [&] {
            out.resize(first, {});
            out.push_back({unknown_, 0, word.size(), {}});
        };
        if (static_cast<int64_t>(letters.size()) > most_) return unknown();
        for (size_t at = 0; at < letters.size();) {
            size_t end = letters.size();
            int found = -1;
            for (; end > at; --end) {
                const auto piece = word.substr(letters[at].begin, letters[end - 1].end - letters[at].begin);
                found = at > 0 ? number(prefix_ + std::string(piece)) : number(piece);
                if (found >= 0) break;
            }
            if (found < 0) return unknown();
            out.push_back({found, letters[at].begin, letters[end - 1].end, {}});
            at = end;
        }
    }

  private:
    const std::string prefix_;
    const int64_t most_;
    int unknown_ = -1;
};

class WordModel final : public TokenModel {
  public:
    explicit WordModel(const json& entry) {
        add_vocabulary(entry);
        unknown_ = number(text_of(entry, "unk_token"));
    }
    void add(std::string_view word, std::vector<Piece>& out) const override {
        int found = number(word);
        if (found < 0) found = unknown_;
        if (found < 0)
            throw value_error(kTokenizer, str("the vocabulary has neither '", word, "' nor an unknown token"));
        out.push_back({found, 0, word.size(), {}});
    }

  private:
    int unknown_ = -1;
};

class UnigramModel final : public TokenModel {
  public:
    explicit UnigramModel(const json& entry) : falls_back_(flag_of(entry, "byte_fallback", false)) {
        if (!entry.contains("vocab") || !entry["vocab"].is_array()) fail_entry(entry, "vocab must be a list of pairs");
        double least = std::numeric_limits<double>::infinity();
        for (const json& pair : entry["vocab"]) {
            if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number())
                fail_entry(entry, str("entry ", scores_.size(), " of vocab is not a text and a number"));
            add_word(pair[0].get<std::string>(), static_cast<int64_t>(scores_.size()));
            scores_.push_back(pair[1].get<double>());
            least = std::min(least, scores_.back());
        }
        constexpr double kPenalty = 10;
        unknown_score_ = least - kPenalty;
        if (entry.contains("unk_id") && !entry["unk_id"].is_null()) {
            unknown_ = static_cast<int>(integer_of(entry, "unk_id"));
            if (unknown_ < 0 || static_cast<size_t>(unknown_) >= scores_.size())
                fail_entry(entry, str("unk_id is ", unknown_, " of ", scores_.size(), " pieces"));
        }
    }

    void add(std::string_view word, std::vector<Piece>& out) const override {
        std::vector<int> bytes;
        for (const auto& [begin, end] : path(word)) {
            const std::string_view piece = word.substr(begin, end - begin);
            const int found = number(piece);
            if (found >= 0) {
                out.push_back({found, begin, end, {}});
            } else if (falls_back_ && bytes_of(piece, bytes)) {
                for (const int byte : bytes) out.push_back({byte, begin, end, {}});
            } else {
                if (unknown_ < 0)
                    throw value_error(kTokenizer, str("no pieces make '", piece, "', and there is no unk_id"));
                out.push_back({unknown_, begin, end, std::string(piece)});
            }
        }
    }

  private:
    // The pieces with the largest sum of scores; what is unknown side by side is one.
    std::vector<std::pair<size_t, size_t>> path(std::string_view word) const {
        struct Node {
            double score = 0;
            size_t begin = SIZE_MAX;
            int number = -1;
        };
        std::vector<Node> best(word.size() + 1);
        const auto offer = [&](size_t begin, size_t end, double score, int number) {
            Node& node = best[end];
            if (node.begin == SIZE_MAX || score > node.score) node = {score, begin, number};
        };
        const std::vector<Character> letters = characters(kTokenizer, word);
        for (size_t at = 0; at < letters.size(); ++at) {
            poll_interrupt();
            const size_t begin = letters[at].begin;
            const double here = best[begin].score;
            bool is_known = false;
            for (size_t last = at; last < letters.size() && letters[last].end - begin <= longest_; ++last) {
                const int found = number(word.substr(begin, letters[last].end - begin));
                if (found < 0) continue;
                offer(begin, letters[last].end, here + scores_[static_cast<size_t>(found)], found);
                is_known |= last == at;
            }
            if (is_known) continue;
            if (unknown_ < 0) throw value_error(kTokenizer, "the text has unknown characters, and there is no unk_id");
            offer(begin, letters[at].end, here + unknown_score_, unknown_);
        }
        std::vector<std::pair<size_t, size_t>> list;
        bool was_unknown = false;
        for (size_t end = word.size(); end > 0; end = best[end].begin) {
            const bool is_unknown = unknown_ >= 0 && best[end].number == unknown_;
            if (is_unknown && was_unknown)
                list.back().first = best[end].begin;
            else
                list.emplace_back(best[end].begin, end);
            was_unknown = is_unknown;
        }
        std::ranges::reverse(list);
        return list;
    }

    const bool falls_back_;
    std::vector<double> scores_;
    double unknown_score_ = 0;
    int unknown_ = -1;
};

}  // namespace

const std::string* TokenModel::token(int number) const {
    if (number < 0 || static_cast<size_t>(number) >= tokens_.size()) return nullptr;
    const auto& token = tokens_[static_cast<size_t>(number)];
    return token ? &*token : nullptr;
}

void TokenModel::add_word(std::string_view token, int64_t number) {
    constexpr int64_t kMost = 1 << 24;
    if (number < 0 || number >= kMost) throw value_error(kTokenizer, str("the number of '", token, "' is ", number));
    words_.add(token, number);
    if (static_cast<size_t>(number) >= tokens_.size()) tokens_.resize(static_cast<size_t>(number) + 1);
    tokens_[static_cast<size_t>(number)] = token;
    longest_ = std::max(longest_, token.size());
}

void TokenModel::add_vocabulary(const json& entry) {
    const auto table = entry.find("vocab");
    if (table == entry.end() || !table->is_object()) fail_entry(entry, "vocab must be a table of numbers");
    for (const auto& [token, number] : table->items()) {
        if (!number.is_number_integer()) fail_entry(entry, str("the number of '", token, "' is none"));
        add_word(token, number.get<int64_t>());
    }
}

int TokenModel::needed(std::string_view token, std::string_view role) const {
    const int found = number(token);
    if (found < 0) throw value_error(kTokenizer, str(role, " '", token, "', which the vocabulary lacks"));
    return found;
}

bool TokenModel::bytes_of(std::string_view text, std::vector<int>& numbers) const {
    numbers.clear();
    for (const char c : text) {
        constexpr std::string_view kDigits = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        const char name[] = {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
        numbers.push_back(number({name, sizeof name}));
        if (numbers.back() < 0) return false;
    }
    return true;
}

std::unique_ptr<TokenModel> token_model_of(const json& entry) {
    if (!entry.is_object()) throw value_error(kTokenizer, "the file has no model");
    // Older files do not say of what type the model is.
    std::string type = "BPE";
    if (entry.contains("type"))
        type = type_of(entry);
    else if (!entry.contains("merges"))
        type = entry.contains("vocab") && entry["vocab"].is_array() ? "Unigram" : "WordPiece";
    if (type == "BPE") return std::make_unique<BytePairModel>(entry);
    if (type == "WordPiece") return std::make_unique<WordPieceModel>(entry);
    if (type == "WordLevel") return std::make_unique<WordModel>(entry);
    if (type == "Unigram") return std::make_unique<UnigramModel>(entry);
    throw value_error(kTokenizer, str("the model '", type, "' is not supported"));
}

}  // namespace lunaria::text
