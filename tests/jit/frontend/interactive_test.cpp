#include "jit/frontend/interactive.h"

#include <gtest/gtest.h>

namespace lunaria::lua {
namespace {

TEST(Interactive, KnowsCompleteInput) {
    for (const char* text : {"x = 1", "1 + 1", "f()", "x", "a, b", "x.y", "if a then b() end", "", "  -- nothing", "#t",
                             "return 1", "function f() end", "t[1];", "1;", "goto a ::a::"})
        EXPECT_EQ(completeness(text), Completeness::complete) << text;
}

TEST(Interactive, KnowsIncompleteInput) {
    for (const char* text : {"x =",        "1 +",
                             "f(",         "if a then",
                             "if a",       "function f()",
                             "x = {",      "x = [[",
                             "--[[ a",     "for",
                             "local",      "local x <",
                             "#t +",       "#",
                             "not",        "a.",
                             "a:b",        "return function()",
                             "repeat f()", "while x do y = 1",
                             "x = 'a\\",   "x = 'a\\z  ",
                             "a, b =",     "if a then b() else",
                             "::x",        "if a:b()",
                             "if a : b()", "while a do b:"})
        EXPECT_EQ(completeness(text), Completeness::incomplete) << text;
}

TEST(Interactive, KnowsInvalidInput) {
    for (const char* text : {"x = 'abc",
                             "x = )",
                             "end",
                             "1 1",
                             "x y",
                             "break",
                             "goto nowhere",
                             "x = 1 = 2",
                             "for 1",
                             "local x <const> = 1; x = 2",
                             "x = \"a\\q\"",
                             "f())",
                             "if a then b() end end",
                             "x = 3x",
                             "function f() return ... end",
                             "for i in range(3):",
                             "for i in range(3): print(i)",
                             "if x > 1: print(x)",
                             "if not x: print(x)",
                             "if x[\"a: b\"]: y = 1",
                             "while True: pass",
                             "while x: y",
                             "if x: return",
                             "while True: print(",
                             "else:",
                             "def f(x): return x"})
        EXPECT_EQ(completeness(text), Completeness::invalid) << text;
}

TEST(Interactive, IndentsByLinesWithOpenConstructs) {
    const auto indent = [](const char* text) { return input_state(text).indent.size(); };
    EXPECT_EQ(indent("x = 1"), 0u);
    EXPECT_EQ(indent("if a then"), 2u);
    EXPECT_EQ(indent("if a then\n  f()"), 2u);
    EXPECT_EQ(indent("if a then\n  for i = 1, 2 do"), 4u);
    EXPECT_EQ(indent("if a then\n  for i = 1, 2 do\n    f()\n  end"), 2u);
    EXPECT_EQ(indent("f(function(x)"), 2u);
    EXPECT_EQ(indent("f({\n  x = function()"), 4u);
    EXPECT_EQ(indent("x ="), 2u);
    EXPECT_EQ(indent("if a then\n  x = [["), 0u);
    EXPECT_EQ(indent("if a then f() else"), 2u);
    EXPECT_EQ(indent("f(1,"), 2u);
    EXPECT_EQ(indent("function f(a,"), 2u);
}

TEST(Interactive, TellsExpressionsFromStatements) {
    for (const char* text : {"1", "f(x)", "a, b", "x == 1", "#t;", "function() end", "..."})
        EXPECT_TRUE(is_expression(text)) << text;
    for (const char* text : {"", "x = 1", "return 1", "local x", "1 +", "f() g()"})
        EXPECT_FALSE(is_expression(text)) << text;
}

TEST(Interactive, ReportsTheErrorOfTheAttemptThatGotFurther) {
    EXPECT_TRUE(parse_interactive("f(x)", "In[1]")->is_expression());
    EXPECT_FALSE(parse_interactive("x = 1", "In[1]")->is_expression());
    const auto headline = [](const char* text) {
        try {
            parse_interactive(text, "In[1]");
        } catch (const SyntaxError& error) {
            return error.headline();
        }
        return std::string("none");
    };
    EXPECT_EQ(headline("x = 1 = 2"), "unexpected symbol near '='");
    EXPECT_EQ(headline("f(1, 2))"), "unexpected symbol near ')'");
    EXPECT_EQ(headline("1 + * 2"), "unexpected symbol near '*'");
    EXPECT_EQ(headline("x += 1"), "unexpected symbol near '='");
    EXPECT_EQ(headline("if x the y() end"), "'then' expected near 'the'");
}

}  // namespace
}  // namespace lunaria::lua
