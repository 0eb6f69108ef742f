#include "jit/frontend/syntax_error.h"

#include <gtest/gtest.h>

#include "jit/frontend/parser.h"

namespace lunaria::lua {
namespace {

SyntaxError error_of(const std::string& text) {
    try {
        parse(text, "train.lua", TextKind::fragment);
    } catch (const SyntaxError& error) {
        return error;
    }
    ADD_FAILURE() << "accepted: " << text;
    return SyntaxError("", "", {});
}
std::string headline(const std::string& text) { return error_of(text).headline(); }
std::string hint(const std::string& text) { return error_of(text).problem().hint; }

TEST(SyntaxError, ShowsPlaceLineCaretAndHint) {
    const SyntaxError error = error_of("local x = 1\nif x = 1 then\n  f()\nend");
    EXPECT_STREQ(error.what(),
                 "train.lua:2: 'then' expected near '='\n"
                 "    if x = 1 then\n"
                 "         ^\n"
                 "  hint: '=' assigns a value: equality is written ==");
    EXPECT_EQ(error.kind(), ErrorKind::syntax);
    EXPECT_EQ(error.chunk_name(), "train.lua");
    EXPECT_EQ(error.line(), 2u);
    EXPECT_EQ(error.column(), 6u);
    EXPECT_EQ(error.problem().found, "'='");
    EXPECT_EQ(error.problem().expected, "'then'");
    EXPECT_EQ(error.source_line(), "if x = 1 then");
    EXPECT_FALSE(error.incomplete());
}

TEST(SyntaxError, PutsTheCaretBelowTheCharacterAfterTabsAndUtf8) {
    EXPECT_NE(std::string(error_of("\tx = '\xC3\xA9' ! 1").what()).find("\n    \t        ^"), std::string::npos);
    const std::string long_line = "x = " + std::string(500, 'a') + " ! " + std::string(500, 'b');
    const std::string message = error_of(long_line).what();
    EXPECT_LT(message.size(), 500u);
    std::vector<std::string> lines;
    for (std::size_t at = 0, end; at < message.size(); at = end + 1) {
        end = std::min(message.find('\n', at), message.size());
        lines.push_back(message.substr(at, end - at));
    }
    ASSERT_GE(lines.size(), 3u);
    EXPECT_EQ(lines[1][lines[2].find('^')], '!');
}

TEST(SyntaxError, SaysWhichConstructIsOpen) {
    EXPECT_EQ(headline("function f()\n  return 1\n"), "'end' expected (to close 'function' at line 1) near <eof>");
    EXPECT_EQ(headline("x = {\n1, 2"), "'}' expected (to close '{' at line 1) near <eof>");
    EXPECT_EQ(headline("x = f(\n1, 2"), "')' expected (to close '(' at line 1) near <eof>");
    EXPECT_EQ(headline("if x then f("), "unexpected symbol near <eof>");
    EXPECT_EQ(headline("repeat\nf() end"), "'until' expected (to close 'repeat' at line 1) near 'end'");
    EXPECT_EQ(headline("while x do f()"), "'end' expected near <eof>");
    EXPECT_EQ(headline("x = t[\n1"), "']' expected (to close '[' at line 1) near <eof>");
}

TEST(SyntaxError, UsesStockLuasWords) {
    EXPECT_EQ(headline("x = = 1"), "unexpected symbol near '='");
    EXPECT_EQ(headline("x ="), "unexpected symbol near <eof>");
    EXPECT_EQ(headline("local 1"), "<name> expected near '1'");
    EXPECT_EQ(headline("for i in"), "unexpected symbol near <eof>");
    EXPECT_EQ(headline("for i do"), "'=' or 'in' expected near 'do'");
    EXPECT_EQ(headline("for i = 1 do end"), "',' expected near 'do'");
    EXPECT_EQ(headline("f(1)) "), "unexpected symbol near ')'");
    EXPECT_EQ(headline("x"), "syntax error near <eof>");
    EXPECT_EQ(headline("x y"), "syntax error near 'y'");
    EXPECT_EQ(headline("f() = 1"), "syntax error near '='");
    EXPECT_EQ(headline("a, f() = 1"), "syntax error near '='");
    EXPECT_EQ(headline("a:b = 1"), "function arguments expected near '='");
    EXPECT_EQ(headline("function f(a,) end"), "<name> or '...' expected near ')'");
    EXPECT_EQ(headline("function f(..., a) end"), "')' expected near ','");
    EXPECT_EQ(headline("end"), "<eof> expected near 'end'");
    EXPECT_EQ(headline("goto 1"), "<name> expected near '1'");
    EXPECT_EQ(headline("::x"), "'::' expected near <eof>");
    EXPECT_EQ(headline("function f() return ... end"), "cannot use '...' outside a vararg function near '...'");
    EXPECT_EQ(headline("x = 'abc"), "unfinished string near ''abc'");
    EXPECT_EQ(headline("x = \x01"), "unexpected symbol near '<\\1>'");
    EXPECT_EQ(headline("f() y \xC3\xA9"), "syntax error near '\xC3\xA9'");
}

TEST(SyntaxError, HintsAtSlipsFromOtherLanguages) {
    const auto mentions = [](const std::string& text, const std::string& word) {
        EXPECT_NE(hint(text).find(word), std::string::npos) << text << "\n" << error_of(text).what();
    };
    mentions("if a != b then end", "~=");
    mentions("x = !a", "not x");
    mentions("if a && b then end", "'and'");
    mentions("if a || b then end", "'or'");
    mentions("x += 1", "x = x + ...");
    mentions("t.x -= 1", "t.x = t.x - ...");
    mentions("x *= 2", "x = x * ...");
    mentions("x ..= y", "x = x .. ...");
    mentions("x //= y", "x = x // ...");
    mentions("y = x += 1", "x = x + y");
    mentions("x++", "x = x + 1");
    mentions("x = a ? b : c", "c and a or b");
    mentions("x = a ?? b", "a or b");
    mentions("x = a === b", "==");
    mentions("x = a !== b", "~=");
    mentions("x = a ** b", "^");
    mentions("x := 1", "local");
    mentions("f(x => x)", "function(x)");
    mentions("f(x -> x)", "function(x)");
    mentions("// comment", "--");
    mentions("/* comment */", "--");
    mentions("# comment", "--");
    mentions("x = `a`", "string");
    mentions(
        "x = \xE2\x80\x9C"
        "a\xE2\x80\x9D",
        "quote");
    mentions("x\xC2\xA0= 1", "space");
    mentions("\xC3\xA9 = 1", "letters");
    mentions("if a then\nf()\nelse if b then\ng()\nend", "elseif");
    mentions("if a = b then end", "==");
    mentions("while a = b do end", "==");
    mentions("repeat until a = b", "==");
    mentions("while x do continue end", "goto continue");
    mentions("while x do continue\nf() end", "goto continue");
    mentions("if x f() end", "'then'");
    mentions("if x: f() end", "'then'");
    mentions("if (x) { f() }", "braces");
    mentions("while (x) { f() }", "braces");
    mentions("while x f() end", "'do'");
    mentions("for i = 1, 3 f(i) end", "'do'");
    mentions("for i = 1, 3 then end", "'do'");
    mentions("if x do end", "'then'");
    mentions("if x then elif y then end", "elseif");
    mentions("var x = 1", "local");
    mentions("let x = 1", "local");
    mentions("def f(x): end", "function");
    mentions("import torch", "require");
    mentions("try f() end", "pcall");
    mentions("print x", "print(…)");
    mentions("x.y", "call or an assignment");
    mentions("local x = 'abc\n'", "\\n");
    mentions("local x.y = 1", "plain name");
    mentions("local function a.b() end", "plain name");
    mentions("return 1\nf()", "last statement");
    mentions("if x then return 1 f() end", "last statement");
    mentions("f() end", "closes nothing");
    mentions("local end = 1", "reserved");
    mentions("x = t.end", "t[\"end\"]");
    mentions("x = {a = 1 b = 2}", "commas");
    mentions("x = {\"a\": 1}", "name = value");
    mentions("f(a b)", "commas");
    mentions("f(a = 1)", "f{name = value}");
    mentions("function f(a = 1) end", "default");
    mentions("function f(a: int) end", "types");
    mentions("x = function f() end", "no name");
    mentions("function() end", "needs a name");
    mentions("x = 1..2", "spaces");
}

TEST(SyntaxError, ShortensLongTokens) {
    EXPECT_EQ(quoted_for_message("abc"), "'abc'");
    EXPECT_EQ(quoted_for_message(std::string(1000, 'x')).size(), 65u);
    EXPECT_EQ(quoted_for_message("a\x02"), "'a<\\2>'");
    const std::string accents = std::string(59, 'x') + "\xC3\xA9\xC3\xA9";
    EXPECT_EQ(quoted_for_message(accents), "'" + std::string(59, 'x') + "...'");
}

}  // namespace
}  // namespace lunaria::lua
