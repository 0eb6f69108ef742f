#include "jit/frontend/lexer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "jit/frontend/literals.h"

namespace lunaria::lua {
namespace {

std::vector<Token> tokens_of(Chunk& chunk) {
    Lexer lexer(chunk);
    std::vector<Token> tokens;
    do tokens.push_back(lexer.next());
    while (tokens.back().kind != TokenKind::eof);
    return tokens;
}

std::string string_value(const std::string& literal) {
    Chunk chunk(literal, "test");
    const auto tokens = tokens_of(chunk);
    EXPECT_EQ(tokens.size(), 2u) << literal;
    EXPECT_EQ(tokens[0].kind, TokenKind::string) << literal;
    return std::string(tokens[0].text);
}

std::string failure(const std::string& text) {
    Chunk chunk(text, "test");
    try {
        tokens_of(chunk);
    } catch (const SyntaxError& error) {
        return error.headline();
    }
    return "none";
}

TEST(Lexer, SpellsEveryTokenAsItReadsIt) {
    for (int i = 0; i < static_cast<int>(TokenKind::name); ++i) {
        const auto kind = static_cast<TokenKind>(i);
        Chunk chunk(std::string(spelling(kind)), "test");
        const auto tokens = tokens_of(chunk);
        ASSERT_EQ(tokens.size(), 2u) << spelling(kind);
        EXPECT_EQ(tokens[0].kind, kind);
        EXPECT_EQ(tokens[0].span.end, spelling(kind).size());
    }
    EXPECT_EQ(spelling(TokenKind::eof), "<eof>");
    EXPECT_EQ(spelling(TokenKind::unknown), "<unknown>");
}

TEST(Lexer, CountsLinesForEveryKindOfLineEnd) {
    Chunk chunk("a\nb\rc\r\nd\n\re\n\nf", "test");
    std::vector<std::uint32_t> lines;
    for (const Token& token : tokens_of(chunk)) lines.push_back(token.span.line);
    EXPECT_EQ(lines, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 7, 7}));
    EXPECT_EQ(chunk.line(4), "d");
    EXPECT_EQ(chunk.line(6), "");
    EXPECT_EQ(chunk.line(7), "f");
    EXPECT_EQ(chunk.line(8), "");
    EXPECT_EQ(chunk.position(7).line, 4u);
    EXPECT_EQ(chunk.position(8).column, 2u);
}

TEST(Lexer, GivesEveryTokenItsSpan) {
    Chunk chunk("x =\n  'a\\z\n  b' -- c\n y", "test");
    const auto tokens = tokens_of(chunk);
    ASSERT_EQ(tokens.size(), 5u);
    EXPECT_EQ(chunk.text(tokens[2].span), "'a\\z\n  b'");
    EXPECT_EQ(tokens[2].span.line, 2u);
    EXPECT_EQ(tokens[2].span.column, 3u);
    EXPECT_EQ(tokens[3].span.line, 4u);
    EXPECT_EQ(tokens[3].span.column, 2u);
}

TEST(Lexer, SkipsAByteOrderMarkAndAFirstLineWithAHash) {
    for (const char* text : {"#!/usr/bin/lua\nx", "\xEF\xBB\xBFx", "\xEF\xBB\xBF# hi\r\nx", "\nx"}) {
        Chunk chunk(text, "test");
        Lexer lexer(chunk);
        lexer.skip_file_header();
        const Token token = lexer.next();
        ASSERT_TRUE(token.name) << text;
        EXPECT_EQ(token.name->text, "x");
        EXPECT_EQ(lexer.next().kind, TokenKind::eof);
    }
    Chunk only("#", "test");
    Lexer lexer(only);
    lexer.skip_file_header();
    EXPECT_EQ(lexer.next().kind, TokenKind::eof);
}

TEST(Lexer, ReadsEveryEscape) {
    EXPECT_EQ(string_value(R"('\a\b\f\n\r\t\v\\\"\'')"), "\a\b\f\n\r\t\v\\\"'");
    EXPECT_EQ(string_value(R"("\x41\x7a\65\0659\0")"), std::string("AzAA9\0", 6));
    EXPECT_EQ(string_value(R"("\u{48}\u{e9}\u{20AC}\u{1F600}")"), "H\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    EXPECT_EQ(string_value(R"("\u{3FFFFFF}\u{7FFFFFFF}")"), "\xFB\xBF\xBF\xBF\xBF\xFD\xBF\xBF\xBF\xBF\xBF");
    EXPECT_EQ(string_value("'a\\\nb\\\r\nc'"), "a\nb\nc");
    EXPECT_EQ(string_value("'a\\z \n\t \r\n b'"), "ab");
    EXPECT_EQ(string_value(std::string("'a\0b'", 5)), std::string("a\0b", 3));
}

TEST(Lexer, ReadsLongStringsOfEveryLevel) {
    EXPECT_EQ(string_value("[[a]]"), "a");
    EXPECT_EQ(string_value("[[\na\n]]"), "a\n");
    EXPECT_EQ(string_value("[==[a]]]=]b]==]"), "a]]]=]b");
    EXPECT_EQ(string_value("[=[]]]=]"), "]]");
    EXPECT_EQ(string_value("[[\r\na\rb\n\rc\\n]]"), "a\nb\nc\\n");
    EXPECT_EQ(string_value("[[]]"), "");
}

TEST(Lexer, SkipsComments) {
    Chunk chunk("a -- b\n--[[ c\n d ]] e --[==[ f ]] ]==] g --[ h\n--[=i\n--", "test");
    std::string names;
    for (const Token& token : tokens_of(chunk))
        if (token.name) names += token.name->text;
    EXPECT_EQ(names, "aeg");
}

TEST(Lexer, NamesWhatIsWrongWithAToken) {
    EXPECT_EQ(failure("'abc"), "unfinished string near ''abc'");
    EXPECT_EQ(failure("'abc\n'"), "unfinished string near ''abc'");
    EXPECT_EQ(failure("[[abc"), "unfinished long string (starting at line 1) near <eof>");
    EXPECT_EQ(failure("\n--[==[abc]]"), "unfinished long comment (starting at line 2) near <eof>");
    EXPECT_EQ(failure("[=a"), "invalid long string delimiter near '[='");
    EXPECT_EQ(failure(R"('\q')"), R"(invalid escape sequence near '\q')");
    EXPECT_EQ(failure(R"('\300')"), R"(decimal escape too large near '\300'')");
    EXPECT_EQ(failure(R"('\xg0')"), R"(hexadecimal digit expected near '\xg')");
    EXPECT_EQ(failure(R"('\u41')"), R"(missing '{' in \u{xxxx} near '\u4')");
    EXPECT_EQ(failure(R"('\u{}')"), R"(hexadecimal digit expected near '\u{}')");
    EXPECT_EQ(failure(R"('\u{41')"), R"(missing '}' in \u{xxxx} near '\u{41'')");
    EXPECT_EQ(failure(R"('\u{80000000}')"), R"(UTF-8 value too large near '\u{80000000')");
    EXPECT_EQ(failure("3x"), "malformed number near '3x'");
    EXPECT_EQ(failure("0x"), "malformed number near '0x'");
    EXPECT_EQ(failure("1..2"), "malformed number near '1..2'");
}

TEST(Literals, TellIntegersFromFloats) {
    const auto integer = [](std::string_view text) { return std::get<std::int64_t>(parse_number(text).value()); };
    const auto number = [](std::string_view text) { return std::get<double>(parse_number(text).value()); };
    EXPECT_EQ(integer("0"), 0);
    EXPECT_EQ(integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(number("9223372036854775808"), 0x1p63);
    EXPECT_EQ(integer("0xffffffffffffffff"), -1);
    EXPECT_EQ(integer("0x1ffffffffffffffff"), -1);
    EXPECT_EQ(integer("0XaB"), 0xAB);
    EXPECT_EQ(number("3."), 3.0);
    EXPECT_EQ(number(".5"), 0.5);
    EXPECT_EQ(number("1e2"), 100.0);
    EXPECT_EQ(number("0x.8p1"), 1.0);
    EXPECT_EQ(number("0xA."), 10.0);
    EXPECT_EQ(number("0x1P-2"), 0.25);
    EXPECT_EQ(number("1e400"), std::numeric_limits<double>::infinity());
    EXPECT_EQ(number("1e-400"), 0.0);
    EXPECT_EQ(number("0x1p99999"), std::numeric_limits<double>::infinity());
    EXPECT_EQ(number("0x1p-99999"), 0.0);
    EXPECT_EQ(number("0." + std::string(400, '0') + "1e+10"), 0.0);
    EXPECT_EQ(number(std::string(400, '9')), std::numeric_limits<double>::infinity());
    EXPECT_EQ(number("0e99999999999999999999"), 0.0);
    for (const char* bad :
         {"", "0x", ".", "1e", "1e+", "0x.", "0xp1", "1p3", "0x1p", "inf", "nan", "1.2.3", "1f", "+1"})
        EXPECT_FALSE(parse_number(bad)) << bad;
}

TEST(Literals, AreWrittenSoThatTheyReadBack) {
    for (const double value : {0.0, 1.0, 0.1, 1e300, 5e-324, 123456789.5, 9223372036854775808.0}) {
        const auto back = parse_number(write_number(value));
        ASSERT_TRUE(back && std::holds_alternative<double>(*back)) << value;
        EXPECT_EQ(std::get<double>(*back), value);
    }
    EXPECT_EQ(write_number(1.0), "1.0");
    EXPECT_EQ(write_number(std::int64_t{42}), "42");
    EXPECT_EQ(write_number(std::int64_t{-1}), "0xffffffffffffffff");
    const auto smallest = std::numeric_limits<std::int64_t>::min();
    EXPECT_EQ(std::get<std::int64_t>(parse_number(write_number(smallest)).value()), smallest);
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    EXPECT_EQ(string_value(write_string(bytes + "1")), bytes + "1");
}

}  // namespace
}  // namespace lunaria::lua
