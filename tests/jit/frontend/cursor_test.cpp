#include "jit/frontend/cursor.h"

#include <gtest/gtest.h>

#include <ctime>

namespace lunaria::lua {
namespace {

// The context at the bar.
CursorContext at(std::string text) {
    const std::size_t bar = text.rfind('|');
    text.erase(bar, 1);
    return cursor_context(text, bar);
}
std::string joined(const std::vector<std::string>& items) {
    std::string out;
    for (const auto& item : items) (out += out.empty() ? "" : " ") += item;
    return out;
}

TEST(Cursor, FindsTheWordAndItsChain) {
    const auto context = at("local y = ms.ops.so| + 1");
    EXPECT_EQ(context.place, CursorPlace::code);
    EXPECT_EQ(context.word, "so");
    EXPECT_EQ(context.word_begin, 17u);
    EXPECT_EQ(context.separator, '.');
    EXPECT_EQ(context.base.text, "ms.ops");
    ASSERT_EQ(context.base.path.size(), 2u);
    EXPECT_EQ(std::get<std::string>(context.base.path[1]), "ops");
    EXPECT_EQ(at("x|").separator, '\0');
    EXPECT_EQ(at("x|").word, "x");
    EXPECT_EQ(at("|").word, "");
    EXPECT_EQ(at("x = |").word_begin, 4u);
    EXPECT_EQ(at("a .. b|").separator, '\0');
    EXPECT_EQ(at("goto a ::b|").separator, '\0');
    EXPECT_EQ(at("en|d").word, "en");
    EXPECT_EQ(at("end|").word, "end");
}

TEST(Cursor, FollowsChainsThroughCallsAndIndices) {
    EXPECT_EQ(at("x:su|").separator, ':');
    EXPECT_EQ(at("x:su|").base.text, "x");
    EXPECT_EQ(at("x .\n  y . z|").base.text, "x .\n  y");
    EXPECT_EQ(at("y = f(a, b).c[i]:m{1}.z|").base.text, "f(a, b).c[i]:m{1}");
    EXPECT_TRUE(at("f(a).z|").base.path.empty());
    EXPECT_TRUE(at("a[i].z|").base.path.empty());
    EXPECT_EQ(at("('x'):re|").base.text, "('x')");
    EXPECT_EQ(at("require 'a'.b|").base.text, "require 'a'");
    const auto path = at("t[1][\"k\"].z|").base.path;
    ASSERT_EQ(path.size(), 3u);
    EXPECT_EQ(std::get<std::int64_t>(path[1]), 1);
    EXPECT_EQ(std::get<std::string>(path[2]), "k");
    EXPECT_EQ(at("t['ke|").separator, '[');
    EXPECT_EQ(at("t['ke|").base.text, "t");
    EXPECT_EQ(at("t['ke|").word, "ke");
    EXPECT_EQ(at("if x.y|").base.text, "x");
    EXPECT_EQ(at("return (a).b|").base.text, "(a)");
    EXPECT_EQ(at("(a or b).c|").base.text, "(a or b)");
    EXPECT_EQ(at("}.x|").base.text, "");
    EXPECT_EQ(at(").x|").word, "x");
}

TEST(Cursor, TellsCodeFromStringsCommentsAndNumbers) {
    EXPECT_EQ(at("x = 'a|b'").place, CursorPlace::string);
    EXPECT_EQ(at("x = 'data/fi|").word, "data/fi");
    EXPECT_EQ(at("x = 'a\\'b|").place, CursorPlace::string);
    EXPECT_EQ(at("x = 'a\nb|").place, CursorPlace::code);
    EXPECT_EQ(at("x = [==[ a ]] b|").place, CursorPlace::long_string);
    EXPECT_EQ(at("x = [==[ a ]] b|").word, " a ]] b");
    EXPECT_EQ(at("-- a b|").place, CursorPlace::comment);
    EXPECT_EQ(at("--[[ a\nb|").place, CursorPlace::comment);
    EXPECT_EQ(at("-- a\nb|").place, CursorPlace::code);
    EXPECT_EQ(at("--[[ a ]] b|").place, CursorPlace::code);
    EXPECT_EQ(at("x = 12|").place, CursorPlace::number);
    EXPECT_EQ(at("x = 3.|").place, CursorPlace::number);
    EXPECT_EQ(at("x = 1 ..y|").word, "y");
}

TEST(Cursor, FindsTheCallAndTheArgument) {
    const auto call = at("ops.softmax(x, ax|").call;
    ASSERT_TRUE(call);
    EXPECT_EQ(call->callee.text, "ops.softmax");
    EXPECT_EQ(call->argument, 1);
    EXPECT_FALSE(call->in_table);
    EXPECT_EQ(at("f(|").call->argument, 0);
    EXPECT_EQ(at("f(a, g(b, c), |").call->argument, 2);
    EXPECT_EQ(at("f(a, (b + |").call->argument, 1);
    EXPECT_EQ(at("f(a, t[i, |").call->callee.text, "f");
    EXPECT_EQ(at("x:sum(|").call->method, "sum");
    EXPECT_EQ(at("x:sum(|").call->callee.text, "x");
    EXPECT_EQ(at("require 'lu|").call->callee.text, "require");
    EXPECT_EQ(at("require('lu|").call->callee.text, "require");
    EXPECT_FALSE(at("f(a) |").call);
    EXPECT_FALSE(at("(a + |").call);
    EXPECT_FALSE(at("function f(a, |").call);
    EXPECT_FALSE(at("f(function() |").call);
    EXPECT_EQ(at("f(function() end, |").call->argument, 1);
}

TEST(Cursor, FindsOptionNamesInATrailingTable) {
    const auto call = at("ops.softmax(x, {axis = 1, dt|").call;
    ASSERT_TRUE(call);
    EXPECT_EQ(call->callee.text, "ops.softmax");
    EXPECT_EQ(call->argument, 1);
    EXPECT_TRUE(call->in_table);
    EXPECT_TRUE(call->at_key);
    EXPECT_EQ(joined(call->keys), "axis");
    EXPECT_FALSE(at("f(x, {axis = |").call->at_key);
    EXPECT_TRUE(at("f(x, {|").call->at_key);
    EXPECT_TRUE(at("f{a = 1; b|").call->at_key);
    EXPECT_EQ(at("f{a = 1; b|").call->argument, 0);
    EXPECT_FALSE(at("f{a = {b|").call);
    EXPECT_FALSE(at("x = {b|").call);
    EXPECT_EQ(at("f({a = g(|").call->callee.text, "g");
}

TEST(Cursor, ListsVisibleLocals) {
    EXPECT_EQ(joined(at("local a, b <const> = 1, 2\nlocal c |").locals), "c b a");
    EXPECT_EQ(joined(at("local a do local b end |").locals), "a");
    EXPECT_EQ(joined(at("local function f(x, ...) local y |").locals), "y x f");
    EXPECT_EQ(joined(at("local function f(x) end |").locals), "f");
    EXPECT_EQ(joined(at("function t.a:m(x) |").locals), "x self");
    EXPECT_EQ(joined(at("for i, v in pairs(t) do |").locals), "v i");
    EXPECT_EQ(joined(at("for i = 1, 2 do local x end |").locals), "");
    EXPECT_EQ(joined(at("while f(function() local a end) do local b |").locals), "b");
    EXPECT_EQ(joined(at("if a then local b else local c |").locals), "c");
    EXPECT_EQ(joined(at("if a then local b elseif c then local d |").locals), "d");
    EXPECT_EQ(joined(at("if a then local b end |").locals), "");
    EXPECT_EQ(joined(at("repeat local a until |").locals), "a");
    EXPECT_EQ(joined(at("local a local a |").locals), "a");
    EXPECT_EQ(joined(at("f(function(a) return g(function(b) return |").locals), "b a");
    EXPECT_EQ(joined(at("local a = (( b ] end } |").locals), "a");
}

TEST(Cursor, TakesLinearTimeOnHostileText) {
    const auto repeat = [](const std::string& text, int n) {
        std::string out;
        for (int i = 0; i < n; ++i) out += text;
        return out;
    };
    const std::string texts[] = {std::string(100000, 'a'),
                                 repeat("f(", 100000),
                                 repeat("(", 100000) + repeat("]", 100000),
                                 repeat("{", 100000) + repeat("end ", 50000),
                                 repeat("[", 100000),
                                 repeat("[=", 100000),
                                 repeat("]=", 100000),
                                 "x" + repeat(".a", 100000),
                                 "x" + repeat("(a)", 100000) + ".b",
                                 repeat("local a", 50000) + " local " + repeat("a,", 50000),
                                 repeat("function f(a) ", 30000),
                                 repeat("do ", 60000) + repeat(")", 60000),
                                 repeat("'", 100000),
                                 repeat("--[[", 50000),
                                 repeat("x'a'", 50000),
                                 repeat("\xFF\x00", 50000)};
    for (const std::string& text : texts) {
        const std::clock_t start = std::clock();  // of this process alone: tests share a machine
        const auto context = cursor_context(text, text.size());
        EXPECT_LE(context.word_begin, text.size());
        EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 1.0) << text.substr(0, 12);
    }
    EXPECT_EQ(at(std::string(8000, '(') + "x.y|").base.text, "x");
    EXPECT_EQ(cursor_context("abc", 99).word, "abc");
}

TEST(Cursor, AcceptsEveryCutOfAProgram) {
    const std::string program =
        "local function f(a, ...)\n  for k, v in pairs{...} do print(k, v, [[x]], 'y\\n') end -- done\n"
        "  repeat local z <close> = a.b[1]:c(0x1p4) until z ~= nil or a == #z\n  return a // 2, ...\nend\n";
    for (std::size_t i = 0; i <= program.size(); ++i) {
        const auto context = cursor_context(program, i);
        EXPECT_LE(context.word_begin, i);
        EXPECT_EQ(context.place == CursorPlace::code || !context.word.empty() || context.separator == '\0', true);
    }
}

}  // namespace
}  // namespace lunaria::lua
