#include "jit/frontend/literals.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "jit/frontend/token.h"

namespace lunaria::lua {

namespace {

// from_chars says "out of range" for both ends of the scale. The decimal exponent of the first significant digit tells
// them apart; a hexadecimal digit counts for at least one decimal one, which is enough at this distance.
double beyond_range(std::string_view digits, char exponent_mark) {
    long exponent = 0;
    bool significant = false, after_point = false;
    std::size_t i = 0;
    for (; i < digits.size(); ++i) {
        const char c = digits[i];
        if (c == exponent_mark || c == exponent_mark - 32) break;
        if (c == '.')
            after_point = true;
        else if (significant || c != '0') {
            significant = true;
            if (!after_point) ++exponent;
        } else if (after_point)
            --exponent;
    }
    if (exponent_mark == 'p') exponent *= 4;
    if (i < digits.size()) {
        ++i;
        const bool negative = i < digits.size() && digits[i] == '-';
        if (i < digits.size() && (digits[i] == '-' || digits[i] == '+')) ++i;
        long given = 0;
        for (; i < digits.size() && given < 1'000'000'000; ++i) given = given * 10 + (digits[i] - '0');
        exponent += negative ? -given : given;
    }
    return significant && exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

std::optional<NumberValue> parse_float(std::string_view digits, bool hexadecimal) {
    double value = 0;
    const char* end = digits.data() + digits.size();
    const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
    const auto [stop, error] = std::from_chars(digits.data(), end, value, format);
    if (error == std::errc::invalid_argument || stop != end) return std::nullopt;
    if (error == std::errc::result_out_of_range) return beyond_range(digits, hexadecimal ? 'p' : 'e');
    return value;
}

}  // namespace

std::optional<NumberValue> parse_number(std::string_view text) {
    const bool hexadecimal = text.size() >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const std::string_view digits = hexadecimal ? text.substr(2) : text;
    if (digits.empty()) return std::nullopt;
    // from_chars also reads signs and words such as "inf"; a numeral begins with a digit or with a point.
    if (digits[0] != '.' && !(hexadecimal ? is_hex_digit(digits[0]) : is_digit(digits[0]))) return std::nullopt;

    std::uint64_t value = 0;
    for (const char c : digits) {
        if (hexadecimal) {
            if (!is_hex_digit(c)) return parse_float(digits, true);
            value = value * 16 + static_cast<std::uint64_t>(hex_value(c));
        } else {
            if (!is_digit(c)) return parse_float(digits, false);
            const auto digit = static_cast<std::uint64_t>(c - '0');
            constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
            if (value > (kMax - digit) / 10) return parse_float(digits, false);
            value = value * 10 + digit;
        }
    }
    return static_cast<std::int64_t>(value);
}

std::optional<NumberValue> read_number(std::string_view text) {
    constexpr std::string_view kBlanks = " \f\n\r\t\v";
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == text.npos) return std::nullopt;
    text = text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
    const bool negative = text[0] == '-';
    if (negative || text[0] == '+') text.remove_prefix(1);
    const auto number = parse_number(text);
    if (!number || !negative) return number;
    if (const auto* integer = std::get_if<std::int64_t>(&*number))
        return static_cast<std::int64_t>(-static_cast<std::uint64_t>(*integer));
    return -std::get<double>(*number);
}

std::string write_number(std::int64_t value) {
    if (value >= 0) return std::to_string(value);
    // A numeral has no sign: only a hexadecimal one, which wraps around, is a negative integer.
    char digits[16];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, static_cast<std::uint64_t>(value), 16);
    return "0x" + std::string(digits, end);
}

std::string write_number(double value) {
    if (std::isnan(value)) return "(0/0)";
    if (std::isinf(value)) return value > 0 ? "1e999" : "-1e999";
    char buffer[40];
    const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
    std::string text(buffer, end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

std::string write_string(std::string_view value) {
    std::string out = "\"";
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            (out += '\\') += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (byte >= 0x20 && byte < 0x7F)
            out += c;
        else {
            // Always three digits, so that a digit may follow.
            out += '\\';
            out += static_cast<char>('0' + byte / 100);
            out += static_cast<char>('0' + byte / 10 % 10);
            out += static_cast<char>('0' + byte % 10);
        }
    }
    return out += '"';
}

void append_utf8(std::string& out, std::uint32_t code) {
    if (code < 0x80) {
        out += static_cast<char>(code);
        return;
    }
    char bytes[6];
    int count = 0;
    std::uint32_t first_limit = 0x3F;  // the largest remainder that fits in the first byte
    do {
        bytes[count++] = static_cast<char>(0x80 | (code & 0x3F));
        code >>= 6;
        first_limit >>= 1;
    } while (code > first_limit);
    out += static_cast<char>((~first_limit << 1) | code);
    while (count > 0) out += bytes[--count];
}

}  // namespace lunaria::lua
