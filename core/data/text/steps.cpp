// The transforms of texts: a text, or a list of them, in each column.
#include <charconv>
#include <cmath>

#include "core/data/text/bytes.h"
#include "core/data/text/pieces.h"
#include "core/data/text/segmenter.h"
#include "core/data/text/tokens.h"

namespace lunaria::text {

namespace {

using transforms::Arguments;
using transforms::Row;
using transforms::RowDraws;

std::vector<std::string_view> texts_of(const Value& value, const Arguments& a) {
    std::vector<std::string_view> list;
    if (value.kind() == Value::Kind::string) {
        list.emplace_back(value.string());
        return list;
    }
    if (value.is_list()) {
        for (const Value& item : value.items())
            if (item.kind() == Value::Kind::string) list.emplace_back(item.string());
        if (list.size() == value.items().size()) return list;
    }
    throw argument_error(a.where, str("a text or a list of texts is expected, got ", to_string(value)));
}

Value list_of(const std::vector<std::string>& texts) {
    std::vector<Value> items;
    for (const std::string& text : texts) items.emplace_back(std::string_view(text));
    return Value::list(std::move(items));
}

// The tokens of a column; with offsets, their begins and ends in two more columns. A text without tokens gives one
// empty token.
void put_tokens(Row& row, size_t at, const Tokens& tokens, bool offsets) {
    std::vector<Value> texts;
    std::vector<int32_t> begins, ends;
    for (const Token& token : tokens) {
        texts.emplace_back(std::string_view(token.text));
        begins.push_back(static_cast<int32_t>(token.begin));
        ends.push_back(static_cast<int32_t>(token.end));
    }
    if (tokens.empty()) {
        texts.emplace_back(std::string_view(""));
        begins.push_back(0);
        ends.push_back(0);
    }
    row[at] = Value::list(std::move(texts));
    if (!offsets) return;
    row.emplace_back(Tensor::from<int32_t>(begins, {static_cast<int64_t>(begins.size())}));
    row.emplace_back(Tensor::from<int32_t>(ends, {static_cast<int64_t>(ends.size())}));
}

// The first number of a tokenizer tells whether offsets are wanted.
size_t with_offsets(const Arguments& a, size_t inputs) {
    if (!a.flag(0)) return inputs;
    if (inputs != 1) throw argument_error(a.where, "with_offsets is for one column");
    return 3;
}

template <class Cut>
void tokenize(Row& row, const Arguments& a, const Cut& cut) {
    const size_t columns = row.size();
    for (size_t i = 0; i < columns; ++i) {
        const Value value = row[i];
        Tokens all;
        for (std::string_view text : texts_of(value, a)) {
            Tokens some = cut(text);
            all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
        }
        put_tokens(row, i, all, a.flag(0));
    }
}

void run_white_space(Row& row, const Arguments& a, RowDraws&) {
    tokenize(row, a, [&](std::string_view text) { return white_space_tokens(a.where, text); });
}

void run_characters(Row& row, const Arguments& a, RowDraws&) {
    tokenize(row, a, [&](std::string_view text) { return character_tokens(a.where, text); });
}

// offsets, keep_whitespace
void run_scripts(Row& row, const Arguments& a, RowDraws&) {
    tokenize(row, a, [&](std::string_view text) { return script_tokens(a.where, text, a.flag(1)); });
}

// offsets, lower, keep_whitespace, form, preserve_unused
BasicRule basic_rule(const Arguments& a) { return {a.flag(1), a.flag(2), static_cast<Form>(a.integer(3)), a.flag(4)}; }

void run_basic(Row& row, const Arguments& a, RowDraws&) {
    tokenize(row, a, [&](std::string_view text) { return basic_tokens(a.where, text, basic_rule(a)); });
}

const Words& words_of(const Arguments& a) { return *static_cast<const Words*>(a.shared.get()); }

// suffix, unknown; the longest word is the number at `longest`
PieceRule piece_rule(const Arguments& a, size_t longest) {
    return {&words_of(a), a.texts[0], static_cast<size_t>(a.integer(longest)), a.texts[1]};
}

// offsets, longest; suffix, unknown
void run_word_pieces(Row& row, const Arguments& a, RowDraws&) {
    const PieceRule rule = piece_rule(a, 1);
    tokenize(row, a, [&](std::string_view text) {
        Tokens out;
        add_pieces(a.where, {std::string(text), 0, static_cast<uint32_t>(text.size())}, rule, out);
        return out;
    });
}

// as basic, longest; suffix, unknown
void run_bert(Row& row, const Arguments& a, RowDraws&) {
    const PieceRule rule = piece_rule(a, 5);
    tokenize(row, a, [&](std::string_view text) {
        Tokens out;
        for (const Token& word : basic_tokens(a.where, text, basic_rule(a))) add_pieces(a.where, word, rule, out);
        return out;
    });
}

struct Patterns {
    Pattern cut;
    std::unique_ptr<Pattern> keep;
};

void compile(Arguments& a) {
    std::unique_ptr<Pattern> keep;
    if (a.texts.size() > 1 && !a.texts[1].empty()) keep = std::make_unique<Pattern>(a.where, a.texts[1]);
    a.prepared = std::make_shared<Patterns>(Patterns{Pattern(a.where, a.texts[0]), std::move(keep)});
}

void compile_one(Arguments& a) { a.prepared = std::make_shared<Pattern>(a.where, a.texts[0]); }

void run_pattern_tokens(Row& row, const Arguments& a, RowDraws&) {
    const auto* patterns = static_cast<const Patterns*>(a.prepared.get());
    tokenize(row, a, [&](std::string_view text) { return pattern_tokens(text, patterns->cut, patterns->keep.get()); });
}

template <class Change>
void change_texts(Row& row, const Arguments& a, const Change& change) {
    for (Value& value : row) {
        std::vector<std::string> made;
        for (std::string_view text : texts_of(value, a)) made.push_back(change(text));
        value = value.is_list() ? list_of(made) : Value(std::string_view(made.front()));
    }
}

void run_replace(Row& row, const Arguments& a, RowDraws&) {
    const auto* pattern = static_cast<const Pattern*>(a.prepared.get());
    change_texts(row, a, [&](std::string_view text) { return pattern->replaced(text, a.texts[1], a.flag(0)); });
}

void run_fold(Row& row, const Arguments& a, RowDraws&) {
    change_texts(row, a, [&](std::string_view text) { return folded(a.where, text); });
}

void run_normalize(Row& row, const Arguments& a, RowDraws&) {
    change_texts(row, a,
                 [&](std::string_view text) { return normalized(a.where, text, static_cast<Form>(a.integer(0))); });
}

// number of the unknown word (-1: an error); dtype
void run_lookup(Row& row, const Arguments& a, RowDraws&) {
    const DType dtype = *parse_dtype(a.texts[0]);
    for (Value& value : row) {
        const std::vector<std::string_view> words = texts_of(value, a);
        const Shape shape = value.is_list() ? Shape{static_cast<int64_t>(words.size())} : Shape{};
        const Tensor out = Tensor::empty(DType::i64, shape);
        for (size_t i = 0; i < words.size(); ++i) {
            int64_t number = words_of(a).number(words[i]);
            if (number < 0) number = a.integer(0);
            if (number < 0)
                throw value_error(a.where, str("the vocabulary has no word '", words[i], "'"))
                    .hint("unknown_token names the word that stands for others");
            out.data<int64_t>()[i] = number;
        }
        value = Value(out.cast(dtype));
    }
}

// lower case as a second chance, the value for unknown words (a tensor); the first tensor has a row for each word
void run_vectors(Row& row, const Arguments& a, RowDraws&) {
    const Tensor &all = a.tensors[0], &other = a.tensors[1];
    const int64_t width = all.dim(1);
    for (Value& value : row) {
        const std::vector<std::string_view> words = texts_of(value, a);
        const Tensor out = Tensor::empty(
            DType::f32, value.is_list() ? Shape{static_cast<int64_t>(words.size()), width} : Shape{width});
        for (size_t i = 0; i < words.size(); ++i) {
            int64_t number = words_of(a).number(words[i]);
            if (number < 0 && a.flag(0)) number = words_of(a).number(folded(a.where, words[i]));
            const float* from = number < 0 ? other.data<float>() : all.data<float>() + number * width;
            std::copy_n(from, width, out.data<float>() + static_cast<int64_t>(i) * width);
        }
        value = Value(out);
    }
}

// lengths; left, right and separator as texts; numbers: pad left, pad right, lengths
void run_ngram(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) {
        const std::vector<std::string_view> words = texts_of(value, a);
        std::vector<std::string> made;
        for (size_t k = 2; k < a.numbers.size(); ++k) {
            const auto n = static_cast<size_t>(a.integer(k));
            const size_t left = std::min(static_cast<size_t>(a.integer(0)), n - 1),
                         right = std::min(static_cast<size_t>(a.integer(1)), n - 1);
            std::vector<std::string_view> padded(left, a.texts[0]);
            padded.insert(padded.end(), words.begin(), words.end());
            padded.insert(padded.end(), right, a.texts[1]);
            for (size_t i = 0; i + n <= padded.size(); ++i) {
                std::string gram(padded[i]);
                for (size_t j = 1; j < n; ++j) gram.append(a.texts[2]).append(padded[i + j]);
                made.push_back(std::move(gram));
            }
        }
        if (made.empty()) made.emplace_back();
        value = list_of(made);
    }
}

void run_to_number(Row& row, const Arguments& a, RowDraws&) {
    const DType dtype = *parse_dtype(a.texts[0]);
    for (Value& value : row) {
        const std::vector<std::string_view> texts = texts_of(value, a);
        const Shape shape = value.is_list() ? Shape{static_cast<int64_t>(texts.size())} : Shape{};
        const Tensor out = Tensor::empty(is_float(dtype) ? DType::f64 : DType::i64, shape);
        for (size_t i = 0; i < texts.size(); ++i) {
            std::string_view text = texts[i];
            while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
            while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
            if (text.starts_with('+')) text.remove_prefix(1);
            const char* end = text.data() + text.size();
            bool fits = false;
            if (is_float(dtype)) {
                double x = 0;
                fits = std::from_chars(text.data(), end, x).ptr == end;
                out.data<double>()[i] = x;
            } else {
                int64_t x = 0;
                const auto [rest, problem] = std::from_chars(text.data(), end, x);
                fits = rest == end && problem == std::errc();
                const Tensor one = Tensor::scalar(x);
                fits = fits && one.cast(dtype).cast(DType::i64).integer_at(0) == x;
                out.data<int64_t>()[i] = x;
            }
            if (!fits || text.empty())
                throw value_error(a.where, str("'", texts[i], "' is no number that ", name_of(dtype), " can hold"));
        }
        value = Value(out.cast(dtype));
    }
}

// Cuts a list down to so many of its texts, or a tensor along its first axis.
Value shortened(const Value& value, const Arguments& a, int64_t most) {
    if (value.is_list()) {
        const auto& items = value.items();
        return Value::list(
            {items.begin(), items.begin() + std::min<int64_t>(most, static_cast<int64_t>(items.size()))});
    }
    if (!value.is_tensor() || value.tensor().rank() == 0)
        throw argument_error(a.where, str("a list of texts or a tensor with axes is expected, got ", to_string(value)));
    const Tensor& t = value.tensor();
    Shape shape = t.shape();
    shape[0] = std::min(shape[0], most);
    return Value(t.view(shape, t.strides()).contiguous());
}

int64_t length_of(const Value& value) {
    if (value.is_list()) return static_cast<int64_t>(value.items().size());
    return value.is_tensor() && value.tensor().rank() > 0 ? value.tensor().dim(0) : 1;
}

void run_truncate(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) value = shortened(value, a, a.integer(0));
}

// The longer one is cut first.
void run_truncate_pair(Row& row, const Arguments& a, RowDraws&) {
    int64_t one = length_of(row[0]), two = length_of(row[1]);
    for (int64_t most = a.integer(0); one + two > most;) {
        const int64_t over = one + two - most;
        if (one > two)
            one -= std::min(over, one - two);
        else if (two > one)
            two -= std::min(over, two - one);
        else {
            two -= (over + 1) / 2;
            one -= over / 2;
        }
    }
    row[0] = shortened(row[0], a, one);
    row[1] = shortened(row[1], a, two);
}

size_t pair_of_columns(const Arguments& a, size_t inputs) {
    if (inputs != 2) throw argument_error(a.where, str("two columns are expected, got ", inputs));
    return 2;
}

// at the beginning
void run_add_token(Row& row, const Arguments& a, RowDraws&) {
    for (Value& value : row) {
        if (!value.is_list()) throw argument_error(a.where, str("a list of texts is expected, got ", to_string(value)));
        std::vector<Value> items = value.items();
        items.insert(a.flag(0) ? items.begin() : items.end(), Value(std::string_view(a.texts[0])));
        value = Value::list(std::move(items));
    }
}

// width
void run_sliding_window(Row& row, const Arguments& a, RowDraws&) {
    const int64_t width = a.integer(0);
    for (Value& value : row) {
        const int64_t count = std::max<int64_t>(length_of(value) - width + 1, 0);
        if (value.is_list()) {
            std::vector<Value> windows;
            for (int64_t i = 0; i < count; ++i)
                windows.push_back(Value::list({value.items().begin() + i, value.items().begin() + i + width}));
            value = Value::list(std::move(windows));
            continue;
        }
        if (!value.is_tensor() || value.tensor().rank() != 1)
            throw argument_error(a.where,
                                 str("a list of texts or a tensor of one axis is expected, got ", to_string(value)));
        const Tensor t = value.tensor().contiguous();
        if (count == 0) {
            value = Value(Tensor::empty(t.dtype(), {0, width}));
            continue;
        }
        value = Value(t.view({count, width}, Strides{1, 1}).contiguous());
    }
}

void read_merges(Arguments& a) { a.prepared = std::make_shared<BytePairs>(a.where, a.texts[0]); }

// numbers instead of texts, a space before the first word
void run_byte_pairs(Row& row, const Arguments& a, RowDraws&) {
    const auto* pairs = static_cast<const BytePairs*>(a.prepared.get());
    for (Value& value : row) {
        std::vector<std::string> all;
        for (std::string_view text : texts_of(value, a)) {
            const bool space = a.flag(1) && !text.starts_with(' ');
            const std::vector<std::string> some = space ? pairs->tokens(str(' ', text)) : pairs->tokens(text);
            all.insert(all.end(), some.begin(), some.end());
        }
        if (!a.flag(0)) {
            value = list_of(all);
            continue;
        }
        std::vector<int32_t> numbers;
        for (const std::string& token : all) {
            const int64_t number = words_of(a).number(token);
            if (number < 0) throw value_error(a.where, str("the vocabulary has no token '", token, "'"));
            numbers.push_back(static_cast<int32_t>(number));
        }
        value = Value(Tensor::from<int32_t>(numbers, {static_cast<int64_t>(numbers.size())}));
    }
}

// dictionary and model, each with the name of its file, and the user's words
void read_words(Arguments& a) {
    a.prepared =
        std::make_shared<Segmenter>(a.where, SourceText{a.texts[0], a.texts[1]}, SourceText{a.texts[2], a.texts[3]},
                                    a.texts[4], static_cast<SegmentMode>(a.integer(1)));
    a.texts.clear();
}

// offsets, mode
void run_segments(Row& row, const Arguments& a, RowDraws&) {
    const auto* segmenter = static_cast<const Segmenter*>(a.prepared.get());
    tokenize(row, a, [&](std::string_view text) { return segmenter->tokens(a.where, text); });
}

// numbers instead of texts
void run_pieces(Row& row, const Arguments& a, RowDraws&) {
    const auto* model = static_cast<const Pieces*>(a.shared.get());
    for (Value& value : row) {
        std::vector<std::string> all;
        std::vector<int32_t> numbers;
        for (std::string_view text : texts_of(value, a)) {
            if (a.flag(0)) {
                const std::vector<int> some = model->numbers(text);
                numbers.insert(numbers.end(), some.begin(), some.end());
            } else {
                std::vector<std::string> some = model->texts(text);
                all.insert(all.end(), some.begin(), some.end());
            }
        }
        value =
            a.flag(0) ? Value(Tensor::from<int32_t>(numbers, {static_cast<int64_t>(numbers.size())})) : list_of(all);
    }
}

}  // namespace

}  // namespace lunaria::text

namespace lunaria::transforms {

std::span<const Entry> text_entries() {
    using namespace text;
    static const Entry entries[] = {
        {"white_space_tokens", 1, run_white_space, 0, with_offsets},
        {"character_tokens", 1, run_characters, 0, with_offsets},
        {"script_tokens", 2, run_scripts, 0, with_offsets},
        {"basic_tokens", 5, run_basic, 0, with_offsets},
        {"word_pieces", 2, run_word_pieces, 0, with_offsets},
        {"bert_tokens", 6, run_bert, 0, with_offsets},
        {"pattern_tokens", 1, run_pattern_tokens, 0, with_offsets, compile},
        {"pattern_replace", 1, run_replace, 0, nullptr, compile_one},
        {"fold_case", 0, run_fold},
        {"normalize_text", 1, run_normalize},
        {"lookup", 1, run_lookup},
        {"to_vectors", 1, run_vectors, 2},
        {"ngram", 3, run_ngram},
        {"to_number", 0, run_to_number},
        {"truncate", 1, run_truncate},
        {"truncate_pair", 1, run_truncate_pair, 0, pair_of_columns},
        {"add_token", 1, run_add_token},
        {"sliding_window", 1, run_sliding_window},
        {"sentence_pieces", 1, run_pieces},
        {"segments", 2, run_segments, 0, with_offsets, read_words},
        {"byte_pairs", 2, run_byte_pairs, 0, nullptr, read_merges},
    };
    return entries;
}

}  // namespace lunaria::transforms
