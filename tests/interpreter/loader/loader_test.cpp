// The source text of a Lua function, found by its compiled code if there is no other way.
#include "interpreter/loader/loader.h"
#include "interpreter/program/program_state.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "interpreter/errors/script.h"
#include "interpreter/loader/function_code.h"
#include "jit/frontend/ast.h"

namespace lunaria {
namespace {

class Sources : public testing::Test {
  protected:
    void run(const std::string& text, const std::string& name = "@test.lua") {
        const Outcome outcome = run_protected(state, [&](lua_State* L) {
            state.loader().compile(L, text, name);
            lua_call(L, 0, 0);
        });
        ASSERT_TRUE(outcome.ok) << outcome.message;
    }
    FunctionSource source(const char* global) {
        lua_State* L = state.lua();
        lua_getglobal(L, global);
        FunctionSource found = state.loader().source_of(L, -1);
        lua_pop(L, 1);
        EXPECT_EQ(lua_gettop(L), 0);
        return found;
    }
    std::string text(const char* global) {
        const FunctionSource found = source(global);
        if (!found.function) return found.problem;
        if (found.function == &found.chunk->main()) return found.chunk->source();
        return std::string(found.chunk->text(found.function->span));
    }

    ProgramState state;
};

TEST_F(Sources, TellFunctionsOfOneLineApart) {
    run("a, b, c = function(x) return x * x end, function(x) return x * x * x end, function(x) return x + 1 end");
    EXPECT_EQ(text("a"), "function(x) return x * x end");
    EXPECT_EQ(text("b"), "function(x) return x * x * x end");
    EXPECT_EQ(text("c"), "function(x) return x + 1 end");
}

TEST_F(Sources, TellConstantsApart) {
    run("a, b, c, d, e = function() return 1 end, function() return 1.0 end, function() return '1' end, "
        "function() return 'a\\0b' end, function() return ('x'):rep(50, 'a long string of more than forty bytes!!') "
        "end "
        "f, g, h = function() return nil end, function() return true end, function() return false end");
    EXPECT_EQ(text("a"), "function() return 1 end");
    EXPECT_EQ(text("b"), "function() return 1.0 end");
    EXPECT_EQ(text("c"), "function() return '1' end");
    EXPECT_EQ(text("d"), "function() return 'a\\0b' end");
    EXPECT_EQ(text("f"), "function() return nil end");
    EXPECT_EQ(text("h"), "function() return false end");
}

TEST_F(Sources, TellNestedVariadicAndMethodsApart) {
    run("t = {} a = function(...) local n = ... b = function(x) return x + n end c = function(x) return x - n end "
        "return function(...) return ... end, function(...) return ..., 1 end end d, e = a(2) "
        "function t:f(x) return x end function t:g(x) return self end function t.h(self, x) return self, x end "
        "f, g, h = t.f, t.g, t.h");
    EXPECT_EQ(text("b"), "function(x) return x + n end");
    EXPECT_EQ(text("c"), "function(x) return x - n end");
    EXPECT_EQ(text("d"), "function(...) return ... end");
    EXPECT_EQ(text("e"), "function(...) return ..., 1 end");
    EXPECT_EQ(text("f"), "function t:f(x) return x end");
    EXPECT_EQ(text("g"), "function t:g(x) return self end");
    EXPECT_EQ(text("h"), "function t.h(self, x) return self, x end");
}

TEST_F(Sources, CountFunctionsInDeadCode) {
    run("local a0 <const> = false; if false then local _ = function(x) return x end end "
        "while false do local _ = function(x) return -x end end "
        "local _ = a0 and function(x) return x + 1 end; local _ = true or function(x) return x + 2 end; "
        "local _ = nil and {function(x) return x + 3 end} goto over do local _ = function(x) return x + 4 end end "
        "::over:: "
        "a, b = function(x) return x + 5 end, function(x) return x + 6 end do return end "
        "c = function(x) return x + 7 end");
    EXPECT_EQ(text("a"), "function(x) return x + 5 end");
    EXPECT_EQ(text("b"), "function(x) return x + 6 end");
}

TEST_F(Sources, TellSpellingsOfTheSameFunctionNoFurtherThanTheirCode) {
    run("a, b, c = function(x) return x * 2 end, function(x) return (x * 2) end, function(y) return y * 2 end");
    EXPECT_EQ(text("a"), "function(x) return x * 2 end");
    EXPECT_EQ(text("b"), "function(x) return x * 2 end") << "the same code";
    EXPECT_EQ(text("c"), "function(y) return y * 2 end");
}

TEST_F(Sources, AreRefusedForTwinsWhoseVariablesLiveDifferently) {
    run("do local k = 1; a = function(x) return x * k end end "
        "do local k = 1; b = function(x) return x * k end; k = 2 end "
        "do local k = 1; c = function(x) return k * x end end");
    EXPECT_NE(text("a").find("cannot be told apart"), std::string::npos) << text("a");
    EXPECT_NE(text("b").find("cannot be told apart"), std::string::npos);
    EXPECT_EQ(text("c"), "function(x) return k * x end");
}

TEST_F(Sources, AreThoseOfTheRightTextWhenSeveralHadOneName) {
    run("a = load('return ... * 2', '=n') b = load('return ... * 3', '=n') "
        "c = load('return function(x) return x * 2 end', '=n')() d = load('return function(x) return x * 3 end', "
        "'=n')()");
    EXPECT_EQ(text("a"), "return ... * 2");
    EXPECT_EQ(text("b"), "return ... * 3");
    EXPECT_EQ(text("c"), "function(x) return x * 2 end");
    EXPECT_EQ(text("d"), "function(x) return x * 3 end");
    run("e = function(x) return x + 1 end", "=In[1]");
    run("f = function(x) return x + 2 end", "=In[1]");
    EXPECT_EQ(text("e"), "function(x) return x + 1 end");
    EXPECT_EQ(text("f"), "function(x) return x + 2 end");
}

TEST_F(Sources, LiveAsLongAsTheirFunctions) {
    run("first = load('return function(x) return x * 0 end', '=n')() "
        "kinds = load('local function leaf() end local v = 1 return leaf, function() return v end, "
        "function(...) local n = ... return function() return n and 1 end end', '=n') "
        "leaf, reader, maker = kinds() made = maker(1) "
        "for i = 1, 40 do last = load('return function(x) return x * ' .. i .. ' end', '=n')() end");
    EXPECT_EQ(text("first"), "function(x) return x * 0 end");
    EXPECT_EQ(text("last"), "function(x) return x * 40 end");
    EXPECT_EQ(text("leaf"), "local function leaf() end");
    EXPECT_EQ(text("reader"), "function() return v end");
    EXPECT_EQ(text("made"), "function() return n and 1 end");
    EXPECT_EQ(text("kinds").substr(0, 20), "local function leaf(");
}

TEST_F(Sources, OfALongSessionAreKept) {
    run("for i = 1, 5000 do load('return function(x) return x * ' .. i .. ' end', '=In[' .. i .. ']')() end "
        "last = load('return function(x) return x + 1 end', '=In[5001]')()");
    EXPECT_EQ(text("last"), "function(x) return x + 1 end");
}

TEST_F(Sources, OfMegabytesOfTextsLiveAsLongAsTheirFunctions) {
    run("first = load('return function(x) return x * 0 end', '=first')() "
        "for i = 1, 80 do last = load('return function(x) return x * ' .. i .. ' end --' .. ('-'):rep(2^20), '=n' .. "
        "i)() end collectgarbage() size = collectgarbage('count')");
    EXPECT_EQ(text("first"), "function(x) return x * 0 end");
    EXPECT_EQ(text("last"), "function(x) return x * 80 end");
    // Of the texts whose functions are gone none is left.
    lua_State* L = state.lua();
    lua_getglobal(L, "size");
    EXPECT_LT(lua_tonumber(L, -1), 16 * 1024);
    lua_pop(L, 1);
    run("again = load('return function(x) return x * 7 end', '=first')()");
    EXPECT_EQ(text("again"), "function(x) return x * 7 end");
    EXPECT_EQ(text("first"), "function(x) return x * 0 end");
}

TEST_F(Sources, OfTextsThatComeBackAreKept) {
    run("fs = {} for i = 1, 200 do fs[i] = load('return function(x) return x * ' .. i % 8 .. ' end', '=n')() end "
        "first, last = fs[1], fs[200]");
    EXPECT_EQ(text("first"), "function(x) return x * 1 end");
    EXPECT_EQ(text("last"), "function(x) return x * 0 end");
}

TEST_F(Sources, MayBeNamedByThemselvesOrByAnotherText) {
    run("a = load('return ... + 1') b = load('return ... + 2', 'return ... + 1') c = load('return ... + 3', 'no Lua')");
    EXPECT_EQ(text("a"), "return ... + 1");
    EXPECT_EQ(text("b"), "return ... + 2");
    EXPECT_EQ(text("c"), "return ... + 3");
}

TEST_F(Sources, AreNotThoseOfCFunctions) { EXPECT_EQ(text("print"), "it is not written in Lua"); }

TEST_F(Sources, OfManyFunctionsOnOneLineAreExact) {
    std::string chunk = "fs = {} ";
    for (int i = 0; i < 300; ++i)
        chunk += str("fs[", i, "] = function(x) return function() return x * ", i, " end, ", i, " end ");
    run(chunk + "inner = {} for i, f in pairs(fs) do inner[i] = f(2) end");
    lua_State* L = state.lua();
    lua_getglobal(L, "inner");
    for (int i = 0; i < 300; ++i) {
        lua_rawgeti(L, 1, i);
        const FunctionSource found = state.loader().source_of(L, -1);
        lua_pop(L, 1);
        ASSERT_NE(found.function, nullptr) << i;
        EXPECT_EQ(found.chunk->text(found.function->span), str("function() return x * ", i, " end"));
    }
    lua_settop(L, 0);
}

TEST(FunctionCode, OfADamagedDumpIsEmpty) {
    ProgramState state;
    lua_State* L = state.lua();
    const std::string text =
        "local a <const>, b = 1, 'b' function f(x, ...) local y = 0.5 return x + y, function() return b, x, nil, true "
        "end "
        "end\nreturn f";
    state.loader().compile(L, text, "@test.lua");
    const std::string dump = dump_function(L, -1);
    const auto functions = read_dump(dump);
    ASSERT_EQ(functions.size(), 3u);
    EXPECT_EQ(functions[0].first_line, 0u);
    EXPECT_EQ(functions[2].last_line, 1u);
    EXPECT_NE(functions[1].bytes.find(functions[2].bytes), std::string_view::npos);
    for (size_t size = 0; size < dump.size(); ++size) EXPECT_TRUE(read_dump(dump.substr(0, size)).empty()) << size;
    EXPECT_TRUE(read_dump(dump + "x").empty());
    // Whatever a byte is changed to, the reader stays within the dump and ends.
    for (size_t at = 0; at < dump.size(); ++at)
        for (int value : {0x00, 0x7f, 0x80, 0xff}) {
            std::string damaged = dump;
            damaged[at] = static_cast<char>(value);
            for (const FunctionCode& f : read_dump(damaged)) EXPECT_LE(f.bytes.size(), damaged.size());
        }
    lua_settop(L, 0);
}

}  // namespace
}  // namespace lunaria
