#include "core/lite/micro/text.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace lunaria::lite::micro {

namespace {

constexpr std::array kWords{
    "auto",     "break",    "case",   "char",     "const",  "continue", "default", "do",     "double", "else",
    "enum",     "extern",   "float",  "for",      "goto",   "if",       "inline",  "int",    "long",   "main",
    "register", "restrict", "return", "short",    "signed", "sizeof",   "static",  "struct", "switch", "typedef",
    "union",    "unsigned", "void",   "volatile", "while",  "bool",     "true",    "false",  "arena",  "arena_bytes",
    "memory",   "net_run",  "index",  "gamma",    "y0",     "y1",       "j0",      "j1",     "exp",    "log",
    "round",    "abs",      "sin",    "cos",      "NULL",
};

// The shortest digits that read back as the same number; to_chars knows no locale.
template <class T>
std::string digits(T x, std::string_view suffix) {
    if (std::isnan(x)) return "NAN";
    if (std::isinf(x)) return x < 0 ? "-INFINITY" : "INFINITY";
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
    std::string text(buffer.data(), end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + std::string(suffix);
}

}  // namespace

std::string literal(float x) { return digits(x, "f"); }
std::string literal(double x) { return digits(x, ""); }

std::string literal(int64_t x, DType dtype) {
    if (dtype == DType::boolean) return x ? "true" : "false";
    // The least number of a type has no literal of its own: its digits are those of a number one too large.
    if (dtype == DType::i64) return x == INT64_MIN ? "INT64_MIN" : str("INT64_C(", x, ")");
    if (dtype == DType::u64) return str("UINT64_C(", static_cast<uint64_t>(x), ")");
    if (dtype == DType::i32 && x == INT32_MIN) return "INT32_MIN";
    if (dtype == DType::u32) return str(static_cast<uint32_t>(x), "U");
    return str(x);
}

std::string literal(double number, int64_t integer, DType dtype) {
    if (dtype == DType::f32) return literal(static_cast<float>(number));
    if (dtype == DType::f64) return literal(number);
    return literal(integer, dtype);
}

std::string_view type_name(DType dtype) {
    switch (dtype) {
        case DType::boolean:
            return "bool";
        case DType::u8:
            return "uint8_t";
        case DType::i8:
            return "int8_t";
        case DType::u16:
            return "uint16_t";
        case DType::i16:
            return "int16_t";
        case DType::u32:
            return "uint32_t";
        case DType::i32:
            return "int32_t";
        case DType::u64:
            return "uint64_t";
        case DType::i64:
            return "int64_t";
        case DType::f32:
            return "float";
        case DType::f64:
            return "double";
        default:
            return "";
    }
}

std::string comment(std::string_view text) {
    std::string result;
    for (const char c : text) {
        // Neither an end nor a beginning of a comment comes about, nor a line that goes on in the next.
        if (c == '/' && !result.empty() && result.back() == '*') result += ' ';
        if (c == '*' && !result.empty() && result.back() == '/') result += ' ';
        result += std::iscntrl(static_cast<unsigned char>(c)) || c == '\\' ? ' ' : c;
    }
    return result;
}

Names::Names() : taken_(kWords.begin(), kWords.end()) {}

std::string Names::name(std::string_view wish) {
    std::string name;
    for (const char c : wish) {
        const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (fits)
            name += c;
        else if (!name.empty() && name.back() != '_')
            name += '_';
    }
    while (!name.empty() && name.back() == '_') name.pop_back();
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "v" + name;
    std::string unique = name;
    for (int i = 2; !taken_.insert(unique).second; ++i) unique = str(name, "_", i);
    return unique;
}

Index& Index::add(std::string_view variable, int64_t factor) {
    if (factor == 0) return *this;
    if (!text_.empty())
        text_ += factor < 0 ? " - " : " + ";
    else if (factor < 0)
        text_ += "-";
    text_ += variable;
    if (const int64_t size = factor < 0 ? -factor : factor; size != 1) text_ += str(" * ", size);
    return *this;
}

std::string Index::text() const {
    if (text_.empty()) return std::to_string(number_);
    if (number_ == 0) return text_;
    return number_ < 0 ? str(text_, " - ", -number_) : str(text_, " + ", number_);
}

}  // namespace lunaria::lite::micro
