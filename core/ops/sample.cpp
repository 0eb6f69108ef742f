#include "core/ops/sample.h"

#include <charconv>
#include <cmath>

#include "core/random/random.h"

namespace lunaria {

namespace {

class SampleReader {
  public:
    SampleReader(const Op& op, std::string_view text, uint64_t seed) : op_(op), text_(text), seed_(seed) {}

    std::vector<Value> read() {
        const auto& params = op_.signature.params;
        std::vector<Value> args(params.size());
        std::vector<bool> set(params.size());
        size_t position = 0;
        spaces();
        while (!text_.empty()) {
            int at = named();
            if (at < 0) at = static_cast<int>(position++);
            if (static_cast<size_t>(at) >= params.size()) fail("has too many arguments");
            args[static_cast<size_t>(at)] = convert(params[static_cast<size_t>(at)], item());
            set[static_cast<size_t>(at)] = true;
            spaces();
            if (!text_.empty() && !eat(',')) fail("needs a comma");
            spaces();
        }
        for (size_t i = 0; i < params.size(); ++i) {
            if (set[i]) continue;
            if (!params[i].has_default) fail(str("lacks ", params[i].name));
            args[i] = params[i].default_value;
        }
        return args;
    }

  private:
    [[noreturn]] void fail(std::string_view what) const {
        throw argument_error(op_.name(), str("sample ", what, " near '", text_, "'"));
    }
    void spaces() {
        while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
    }
    bool eat(char c) {
        spaces();
        if (text_.empty() || text_.front() != c) return false;
        text_.remove_prefix(1);
        return true;
    }
    std::string_view peek_word() const {
        size_t n = 0;
        while (n < text_.size() && detail::word_char(text_[n])) ++n;
        return text_.substr(0, n);
    }
    // The parameter named by `name=`; -1 when the argument is positional.
    int named() {
        std::string_view w = peek_word();
        if (w.empty() || text_.size() <= w.size() || text_[w.size()] != '=') return -1;
        int at = op_.signature.find(w);
        if (at < 0) fail("names an unknown parameter");
        text_.remove_prefix(w.size() + 1);
        return at;
    }
    // A dtype default or attribute may be written by its name.
    static Value convert(const Param& param, Value v) {
        if (param.type == ArgType::dtype && v.kind() == Value::Kind::string)
            if (auto t = parse_dtype(v.string())) return Value(*t);
        return v;
    }
    Value item() {
        spaces();
        if (eat('{')) {
            std::vector<Value> items;
            if (!eat('}')) {
                do items.push_back(item());
                while (eat(','));
                if (!eat('}')) fail("needs '}'");
            }
            return Value::list(std::move(items));
        }
        std::string_view w = peek_word();
        if (!w.empty() && text_.size() > w.size() && text_[w.size()] == '[') return tensor();
        if (auto t = parse_dtype(w)) {
            text_.remove_prefix(w.size());
            return Value(*t);
        }
        return parse_literal(text_);
    }
    double number() {
        spaces();
        double x = 0;
        auto r = std::from_chars(text_.data(), text_.data() + text_.size(), x);
        if (r.ec != std::errc()) fail("needs a number");
        text_.remove_prefix(static_cast<size_t>(r.ptr - text_.data()));
        return x;
    }
    Value tensor() {
        constexpr std::pair<std::string_view, DType> kShort[] = {
            {"f32", DType::f32},      {"f64", DType::f64}, {"f16", DType::f16},  {"bf16", DType::bf16},
            {"i8", DType::i8},        {"i16", DType::i16}, {"i32", DType::i32},  {"i64", DType::i64},
            {"bool", DType::boolean}, {"u8", DType::u8},   {"u16", DType::u16},  {"u32", DType::u32},
            {"u64", DType::u64},      {"c64", DType::c64}, {"c128", DType::c128}};
        std::string_view w = peek_word();
        const std::pair<std::string_view, DType>* found = nullptr;
        for (auto& entry : kShort)
            if (entry.first == w) found = &entry;
        if (!found) fail("has an unknown dtype");
        text_.remove_prefix(w.size());
        eat('[');
        Shape shape;
        if (!eat(']')) {
            do shape.push_back(static_cast<int64_t>(number()));
            while (eat(','));
            if (!eat(']')) fail("needs ']'");
        }
        bool ranged = false;
        double low = 0, high = 0;
        if (eat(':')) {
            if (!eat('(')) fail("needs '('");
            low = number();
            if (!eat(',')) fail("needs a comma");
            high = number();
            if (!eat(')')) fail("needs ')'");
            ranged = true;
        }
        return Value(fill(found->second, shape, ranged, low, high));
    }
    Tensor fill(DType dtype, const Shape& shape, bool ranged, double low, double high) {
        Tensor t = Tensor::empty(dtype, shape);
        for (int64_t i = 0; i < t.size(); ++i) {
            auto words = philox(seed_, static_cast<uint64_t>(i), static_cast<uint64_t>(tensors_));
            double u = (words[0] + 0.5) * 0x1p-32, v = (words[1] + 0.5) * 0x1p-32;
            double x = std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
            if (ranged)
                x = low + (high - low) * u;
            else if (dtype == DType::boolean)
                x = u < 0.5;
            else if (is_integer(dtype))
                x = (has_sign(dtype) ? -10 : 0) + 20 * u;
            t.set_at(i, is_integer(dtype) ? std::floor(x) : x);
        }
        ++tensors_;
        return t;
    }

    const Op& op_;
    std::string_view text_;
    uint64_t seed_;
    int tensors_ = 0;
};

}  // namespace

std::vector<Value> sample_args(const Op& op, std::string_view text, uint64_t seed) {
    return SampleReader(op, text, seed).read();
}

}  // namespace lunaria
