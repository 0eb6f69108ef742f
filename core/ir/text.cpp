#include "core/ir/text.h"

#include <algorithm>
#include <charconv>

namespace lunaria::ir {

namespace {

template <class T>
std::string shortest(T value) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string with_point(const std::string& text) {
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

// A float is written without a point, unless the integer would lose the sign of zero or not fit.
template <class T>
std::string element_of(T value) {
    const std::string text = shortest(value);
    return text == "-0" || text.size() > 15 ? with_point(text) : text;
}

std::string element_text(const Tensor& t, int64_t i) {
    if (t.dtype() == DType::boolean) return t.integer_at(i) ? "true" : "false";
    if (is_integer(t.dtype())) return std::to_string(t.integer_at(i));
    if (t.dtype() == DType::f64) return element_of(t.at(i));
    // Half-width floats are exact in 32 bits.
    return element_of(static_cast<float>(t.at(i)));
}

std::string complex_text(const Tensor& dense, int64_t i) {
    auto text = [](auto z) { return "{" + element_of(z.real()) + ", " + element_of(z.imag()) + "}"; };
    return dense.dtype() == DType::c128 ? text(dense.data<Complex128>()[i]) : text(dense.data<Complex64>()[i]);
}

bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

bool is_graph_name_char(char c) { return is_word_char(c) || c == ':'; }
bool is_node_name_char(char c) { return is_word_char(c); }

std::string quoted(std::string_view text) {
    constexpr char kHex[] = "0123456789abcdef";
    std::string out = "\"";
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else if (byte < 0x20 || byte == 0x7f)
            ((out += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
        else
            out += c;
    }
    return out + "\"";
}

std::string number_text(double value) { return with_point(shortest(value)); }

std::string tensor_text(const Tensor& tensor, int64_t limit) {
    std::string text = str(name_of(tensor.dtype()), tensor.shape(), " {");
    if (tensor.size() > limit) return text + "...}";
    const Tensor dense = is_complex(tensor.dtype()) ? tensor.contiguous() : tensor;
    for (int64_t i = 0; i < tensor.size(); ++i)
        text += (i ? ", " : "") + (is_complex(tensor.dtype()) ? complex_text(dense, i) : element_text(tensor, i));
    return text + "}";
}

std::string graph_name_text(std::string_view name) {
    bool plain = !name.empty() && name.front() != ' ' && name.back() != ' ' && name.find("  ") == name.npos;
    for (char c : name) plain &= is_graph_name_char(c) || c == ' ';
    return plain ? std::string(name) : quoted(name);
}

std::string node_name_text(std::string_view name) {
    return std::all_of(name.begin(), name.end(), is_node_name_char) ? std::string(name) : quoted(name);
}

std::string span_text(const Span& span) {
    const std::string_view chunk = span.chunk ? std::string_view(*span.chunk) : "?";
    bool plain = !chunk.empty() && chunk.front() != '"' && chunk.front() != ' ';
    for (char c : chunk) plain &= static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
    return (plain ? std::string(chunk) : quoted(chunk)) + ":" + std::to_string(span.line);
}

std::string place_text(const Span& span) {
    return span.chunk && span.line > 0 ? *span.chunk + ":" + std::to_string(span.line) : std::string();
}

}  // namespace lunaria::ir
