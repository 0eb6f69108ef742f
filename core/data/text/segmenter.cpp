#include "core/data/text/segmenter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace lunaria::text {

namespace {

// Stands for the logarithm of 0, in place of the files' -3.14e100, which would swamp all other digits of a sum.
constexpr double kImpossible = -1e6;

// A tree of words by their characters, with a number for each word.
class Trie {
  public:
    static constexpr uint32_t kNone = 0;

    uint32_t child(uint32_t node, int32_t code) const {
        const uint64_t key = key_of(node, code);
        for (size_t at = slot_of(key);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at].key == key) return slots_[at].node;
            if (slots_[at].key == 0) return kNone;
        }
    }
    // The number of a word that ends at this node; nothing where none does.
    std::optional<double> at(uint32_t node) const {
        if (std::isnan(numbers_[node])) return {};
        return numbers_[node];
    }
    void add(std::span<const Character> word, double number) {
        uint32_t node = 0;
        for (const Character& c : word) {
            uint32_t next = child(node, c.code);
            if (next == kNone) {
                next = static_cast<uint32_t>(numbers_.size());
                numbers_.push_back(std::numeric_limits<double>::quiet_NaN());
                put({key_of(node, c.code), next});
            }
            node = next;
        }
        numbers_[node] = number;
    }
    template <class F>
    void change(const F& f) {
        for (double& number : numbers_) number = std::isnan(number) ? number : f(number);
    }

  private:
    struct Slot {
        uint64_t key = 0;
        uint32_t node = kNone;
    };
    // Never 0, as no word has the character 0.
    static uint64_t key_of(uint32_t node, int32_t code) {
        return (uint64_t{node} << 21 | static_cast<uint32_t>(code)) + 1;
    }
    size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u >> 20) & (slots_.size() - 1); }
    void put(const Slot& slot) {
        if (2 * ++used_ > slots_.size()) {
            std::vector<Slot> before(2 * slots_.size());
            before.swap(slots_);
            for (const Slot& old : before)
                if (old.key != 0) place(old);
        }
        place(slot);
    }
    void place(const Slot& slot) {
        size_t at = slot_of(slot.key);
        while (slots_[at].key != 0) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = slot;
    }

    std::vector<Slot> slots_ = std::vector<Slot>(64);
    std::vector<double> numbers_{std::numeric_limits<double>::quiet_NaN()};  // of the root
    size_t used_ = 0;
};

// Reads lines of a file and reports errors in them.
class Lines {
  public:
    Lines(std::string_view where, std::string_view text, std::string_view name)
        : where_(where), rest_(text), name_(name) {
        constexpr std::string_view kMark = "\xEF\xBB\xBF";
        if (rest_.starts_with(kMark)) rest_.remove_prefix(kMark.size());
    }
    // Goes to the next line that is not empty; false at the end.
    bool next(std::string_view& line) {
        while (!rest_.empty()) {
            const size_t end = std::min(rest_.find('\n'), rest_.size());
            line = rest_.substr(0, end);
            rest_.remove_prefix(std::min(end + 1, rest_.size()));
            ++number_;
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (line.find_first_not_of(" \t") != std::string_view::npos) return true;
        }
        return false;
    }
    [[noreturn]] void fail(std::string_view what) const {
        throw value_error(where_, str(name_, ", line ", number_, ": ", what));
    }
    double number(std::string_view text) const {
        double x = 0;
        const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
        if (problem != std::errc() || rest != text.data() + text.size() || !std::isfinite(x))
            fail(str("'", text, "' is no number"));
        return x;
    }
    std::vector<Character> letters(std::string_view text) const {
        try {
            return characters(where_, text);
        } catch (const Error&) {
            fail("the text is no UTF-8");
        }
    }

  private:
    std::string_view where_, rest_, name_;
    size_t number_ = 0;
};

std::vector<std::string_view> parts_of(std::string_view line, std::string_view separators) {
    std::vector<std::string_view> parts;
    for (size_t at = 0; at < line.size();) {
        const size_t begin = line.find_first_not_of(separators, at);
        if (begin == std::string_view::npos) break;
        at = std::min(line.find_first_of(separators, begin), line.size());
        parts.push_back(line.substr(begin, at - begin));
    }
    return parts;
}

// Calls take(characters, frequency) for each line of a dictionary.
template <class Take>
void each_word(Lines& lines, double least, const Take& take) {
    for (std::string_view line; lines.next(line);) {
        const std::vector<std::string_view> parts = parts_of(line, " \t");
        if (parts.size() != 2 && parts.size() != 3)
            lines.fail("a word, its frequency and perhaps a tag are expected, with spaces between");
        const double frequency = lines.number(parts[1]);
        if (frequency < least) lines.fail(str("the frequency must be positive, got ", parts[1]));
        take(lines.letters(parts[0]), frequency);
    }
}

// The words of a dictionary with the logarithms of their probabilities.
struct Dictionary {
    Trie words;
    double log_total = 0, least = 0, median = 0;
    std::string text;

    Dictionary(std::string_view where, const SourceText& source) : text(source.text) {
        Lines lines(where, source.text, source.name);
        std::vector<double> all;
        double total = 0;
        each_word(lines, std::numeric_limits<double>::min(), [&](std::span<const Character> word, double frequency) {
            words.add(word, frequency);
            all.push_back(frequency);
            total += frequency;
        });
        if (all.empty()) throw value_error(where, str(source.name, " has no words"));
        if (!std::isfinite(total)) throw value_error(where, str(source.name, ": the frequencies are too large"));
        log_total = std::log(total);
        words.change([&](double frequency) { return std::log(frequency) - log_total; });
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
        std::ranges::nth_element(all, middle);
        median = std::log(*middle) - log_total;
        least = std::log(*std::ranges::min_element(all)) - log_total;
    }

    // The last dictionary that was read is kept while it is in use, so that one more user's word does not mean reading
    // it again.
    static std::shared_ptr<const Dictionary> of(std::string_view where, const SourceText& source) {
        static std::mutex mutex;
        static std::weak_ptr<const Dictionary> last;
        {
            const std::lock_guard lock(mutex);
            if (auto known = last.lock(); known && known->text == source.text) return known;
        }
        auto made = std::make_shared<const Dictionary>(where, source);
        const std::lock_guard lock(mutex);
        last = made;
        return made;
    }
};

// B, E, M, S: a character begins a word, ends it, is within it, is a word by itself.
enum State : uint8_t { kBegin, kEnd, kWithin, kAlone };
constexpr size_t kStates = 4;
using States = std::array<double, kStates>;

struct HiddenMarkov {
    States first{};
    std::array<States, kStates> next{};
    std::unordered_map<int32_t, States> seen;

    HiddenMarkov(std::string_view where, const SourceText& source) {
        Lines lines(where, source.text, source.name);
        std::string_view line;
        auto take = [&] {
            do {
                if (!lines.next(line)) lines.fail("the file ends before the model does, which has nine lines");
            } while (line.starts_with('#'));
        };
        auto row = [&] {
            take();
            const std::vector<std::string_view> parts = parts_of(line, " \t");
            if (parts.size() != kStates) lines.fail(str("four numbers are expected, got ", parts.size()));
            States numbers{};
            for (size_t i = 0; i < kStates; ++i) numbers[i] = logarithm(lines, parts[i]);
            return numbers;
        };
        first = row();
        for (States& from : next) from = row();
        for (size_t state = 0; state < kStates; ++state) {
            take();
            for (const std::string_view pair : parts_of(line, ",")) {
                const size_t colon = pair.rfind(':');
                if (colon == std::string_view::npos)
                    lines.fail(str("'", pair, "' must be a character, : and a number"));
                const std::vector<Character> letter = lines.letters(pair.substr(0, colon));
                if (letter.size() != 1) lines.fail(str("'", pair, "' must be a character, : and a number"));
                States none{};
                none.fill(kImpossible);
                seen.try_emplace(letter[0].code, none).first->second[state] = logarithm(lines, pair.substr(colon + 1));
            }
        }
    }
    static double logarithm(const Lines& lines, std::string_view text) {
        return std::max(lines.number(text), kImpossible);
    }
    const States& of(int32_t code) const {
        static constexpr States kUnseen{kImpossible, kImpossible, kImpossible, kImpossible};
        const auto found = seen.find(code);
        return found == seen.end() ? kUnseen : found->second;
    }
};

using Letters = std::span<const Character>;

bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
bool is_separator(int32_t c) { return c == ' ' || c == '\t' || c == '\n' || c == 0xFF0C || c == 0x3002; }

}  // namespace

struct Segmenter::Body {
    SegmentMode mode;
    std::shared_ptr<const Dictionary> dictionary;
    std::optional<HiddenMarkov> model;
    Trie user;
    bool has_user = false;

    // Calls take(characters of the word) for words one after the other.
    template <class Take>
    void by_dictionary(Letters letters, const Take& take) const {
        const size_t n = letters.size();
        std::vector<double> best(n + 1, 0);
        std::vector<size_t> end(n);
        for (size_t i = n; i-- > 0;) {
            best[i] = -std::numeric_limits<double>::infinity();
            each_word_at(letters.subspan(i), [&](size_t count, double weight) {
                if (weight + best[i + count] <= best[i]) return;
                best[i] = weight + best[i + count];
                end[i] = i + count;
            });
        }
        for (size_t i = 0; i < n; i = end[i]) take(letters.subspan(i, end[i] - i));
    }

    // The words that begin at this character, short ones first. The character alone is always among them; the user's
    // words come before the others.
    template <class Take>
    void each_word_at(Letters letters, const Take& take) const {
        uint32_t known = 0, own = 0;
        bool is_known = true, is_own = has_user;
        for (size_t i = 0; i < letters.size() && (is_known || is_own); ++i) {
            if (is_known) is_known = (known = dictionary->words.child(known, letters[i].code)) != Trie::kNone;
            if (is_own) is_own = (own = user.child(own, letters[i].code)) != Trie::kNone;
            std::optional<double> weight = is_own ? user.at(own) : std::nullopt;
            if (!weight && is_known) weight = dictionary->words.at(known);
            if (weight || i == 0) take(i + 1, weight.value_or(dictionary->least));
        }
    }

    bool is_user_word(const Character& letter) const {
        const uint32_t node = has_user ? user.child(0, letter.code) : Trie::kNone;
        return node != Trie::kNone && user.at(node);
    }

    // ASCII is cut by rules: letters with the digits after them, numbers, and everything else character by character.
    template <class Take>
    void by_model(Letters letters, const Take& take) const {
        constexpr int32_t kAscii = 0x80;
        for (size_t i = 0; i < letters.size();) {
            size_t end = i + 1;
            auto run = [&](auto belongs) {
                while (end < letters.size() && belongs(letters[end].code)) ++end;
            };
            const int32_t code = letters[i].code;
            if (code >= kAscii) {
                run([](int32_t c) { return c >= kAscii; });
                most_probable(letters.subspan(i, end - i), take);
            } else {
                if (is_letter(code)) run([](int32_t c) { return is_letter(c) || is_digit(c); });
                if (is_digit(code)) run([](int32_t c) { return is_digit(c) || c == '.'; });
                take(letters.subspan(i, end - i));
            }
            i = end;
        }
    }

    // Viterbi's method (1967).
    template <class Take>
    void most_probable(Letters letters, const Take& take) const {
        const size_t n = letters.size();
        std::vector<std::array<uint8_t, kStates>> before(n);
        States now = model->first;
        for (size_t s = 0; s < kStates; ++s) now[s] += model->of(letters[0].code)[s];
        for (size_t i = 1; i < n; ++i) {
            const States &seen = model->of(letters[i].code), past = now;
            for (size_t s = 0; s < kStates; ++s) {
                now[s] = -std::numeric_limits<double>::infinity();
                for (size_t from = 0; from < kStates; ++from) {
                    const double p = past[from] + model->next[from][s] + seen[s];
                    if (p <= now[s]) continue;
                    now[s] = p;
                    before[i][s] = static_cast<uint8_t>(from);
                }
            }
        }
        std::vector<bool> ends(n);
        auto state = static_cast<uint8_t>(now[kEnd] >= now[kAlone] ? kEnd : kAlone);
        for (size_t i = n; i-- > 0; state = before[i][state]) ends[i] = state == kEnd || state == kAlone;
        size_t begin = 0;
        for (size_t i = 0; i < n; ++i) {
            if (!ends[i]) continue;
            take(letters.subspan(begin, i + 1 - begin));
            begin = i + 1;
        }
    }

    // Runs of characters that the dictionary knows no words of go through the model.
    template <class Take>
    void by_both(Letters letters, const Take& take) const {
        size_t begin = 0, at = 0;
        auto flush = [&] {
            if (at > begin) by_model(letters.subspan(begin, at - begin), take);
        };
        by_dictionary(letters, [&](Letters word) {
            if (word.size() > 1 || is_user_word(word[0])) {
                flush();
                take(word);
                begin = at + word.size();
            }
            at += word.size();
        });
        flush();
    }

    template <class Take>
    void cut(Letters letters, const Take& take) const {
        if (letters.empty()) return;
        if (mode == SegmentMode::dictionary) return by_dictionary(letters, take);
        if (mode == SegmentMode::model) return by_model(letters, take);
        by_both(letters, take);
    }
};

Segmenter::Segmenter(std::string_view where, const SourceText& dictionary, const SourceText& model,
                     std::string_view user, SegmentMode mode) {
    auto body = std::make_unique<Body>();
    body->mode = mode;
    if (mode != SegmentMode::dictionary) body->model.emplace(where, model);
    if (mode != SegmentMode::model) {
        body->dictionary = Dictionary::of(where, dictionary);
        Lines lines(where, user, "the user's words");
        each_word(lines, 0, [&](Letters word, double frequency) {
            body->user.add(
                word, frequency == 0 ? body->dictionary->median : std::log(frequency) - body->dictionary->log_total);
            body->has_user = true;
        });
    }
    body_ = std::move(body);
}
Segmenter::~Segmenter() = default;

Tokens Segmenter::tokens(std::string_view where, std::string_view text) const {
    Tokens out;
    const std::vector<Character> all = characters(where, text);
    const Letters letters(all);
    auto take = [&](Letters word) {
        const uint32_t begin = word.front().begin, end = word.back().end;
        out.push_back({std::string(text.substr(begin, end - begin)), begin, end});
    };
    size_t begin = 0;
    for (size_t i = 0; i < letters.size(); ++i) {
        if (!is_separator(letters[i].code)) continue;
        body_->cut(letters.subspan(begin, i - begin), take);
        take(letters.subspan(i, 1));
        begin = i + 1;
    }
    body_->cut(letters.subspan(begin), take);
    return out;
}

}  // namespace lunaria::text
