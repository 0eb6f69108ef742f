// The parser against stock Lua: the same texts are accepted, and functions have the lines and upvalues that Lua gives
// them.
#include <gtest/gtest.h>

#include <lua.hpp>

#include <memory>

#include "jit/frontend/parser.h"
#include "jit/frontend/printer.h"
#include "tests/jit/frontend/stock_lua_corpus.h"

namespace lunaria::lua {
namespace {

struct Close {
    void operator()(lua_State* L) const { lua_close(L); }
};
using State = std::unique_ptr<lua_State, Close>;

// Empty when stock Lua takes the text, else its message.
std::string stock_error(std::string_view text) {
    const State state(luaL_newstate());
    if (luaL_loadbufferx(state.get(), text.data(), text.size(), "=text", "t") == LUA_OK) return {};
    return lua_tostring(state.get(), -1);
}

std::string our_error(std::string_view text) {
    try {
        parse(std::string(text), "text", TextKind::fragment);
        return {};
    } catch (const SyntaxError& error) {
        return error.what();
    }
}

TEST(StockLua, AcceptsAndRefusesTheSameTexts) {
    int accepted = 0, refused = 0;
    for (const std::string_view text : kCorpus) {
        const std::string stock = stock_error(text), ours = our_error(text);
        EXPECT_EQ(stock.empty(), ours.empty()) << text << "\nstock: " << stock << "\nours: " << ours;
        ++(stock.empty() ? accepted : refused);
    }
    EXPECT_GT(accepted, 100);
    EXPECT_GT(refused, 100);
}

// Every text cut off anywhere, and with each byte replaced in turn, is judged alike too.
TEST(StockLua, AgreesOnDamagedTexts) {
    for (const std::string_view text : kCorpus) {
        std::string damaged(text);
        for (std::size_t i = 0; i < text.size(); ++i) {
            const std::string_view cut = text.substr(0, i);
            EXPECT_EQ(stock_error(cut).empty(), our_error(cut).empty()) << cut;
            damaged[i] = "x1=( end"[i % 8];
            EXPECT_EQ(stock_error(damaged).empty(), our_error(damaged).empty())
                << damaged << "\nstock: " << stock_error(damaged) << "\nours: " << our_error(damaged);
            damaged[i] = text[i];
        }
    }
}

// Stock Lua marks what more input could mend with <eof>; so do we, except for a string that is open at the end of a
// line.
TEST(StockLua, AgreesOnWhatIsIncomplete) {
    for (const std::string_view text : kCorpus) {
        const std::string stock = stock_error(text);
        if (stock.empty() || stock.find("unfinished string") != std::string::npos) continue;
        try {
            parse(std::string(text), "text", TextKind::fragment);
        } catch (const SyntaxError& error) {
            EXPECT_EQ(stock.ends_with("<eof>"), error.incomplete())
                << text << "\nstock: " << stock << "\nours: " << error.what();
        }
    }
}

TEST(StockLua, ReadsTheSameLiterals) {
    for (const char* literal : {"0",
                                "3",
                                "345",
                                "0xff",
                                "0xBEBADA",
                                "3.0",
                                "3.1416",
                                "314.16e-2",
                                "0.31416E1",
                                "34e1",
                                "0x0.1E",
                                "0xA23p-4",
                                "0X1.921FB54442D18P+1",
                                "9223372036854775807",
                                "9223372036854775808",
                                "0xffffffffffffffff",
                                "0x10000000000000001",
                                "1e308",
                                "1e309",
                                "5e-324",
                                "2e-324",
                                "4.9406564584124654e-324",
                                "0x.0000000000001p-1022",
                                "0x1.fffffffffffff8p1023",
                                "0x1.fffffffffffff7p1023",
                                "1e-999",
                                ".5",
                                "5.",
                                "0x.8",
                                "0x8.",
                                "123456789012345678901234567890",
                                "1e1000000000000",
                                "0.1",
                                "2.2250738585072011e-308",
                                "0x1p-1074",
                                "0x1p-1075",
                                "0x1p1024",
                                "179769313486231580793e289",
                                "'\\u{7FFFFFFF}\\u{10FFFF}\\u{7FF}\\x00\\z   a'",
                                "[[\n\n]]",
                                "[=[\r\n\r]]\n\r]=]",
                                "'\\\r\n\\\n'",
                                "\"\\065\\0\\10\""}) {
        const State state(luaL_newstate());
        lua_State* L = state.get();
        ASSERT_EQ(luaL_dostring(L, (std::string("return ") + literal).c_str()), LUA_OK) << literal;
        const auto chunk = parse_expression_list(literal, "literal");
        const Expr& value = *chunk->main().body->statements[0]->as<Return>().values[0];
        if (lua_isinteger(L, -1)) {
            ASSERT_EQ(value.kind, ExprKind::integer) << literal;
            EXPECT_EQ(value.as<Integer>().value, lua_tointeger(L, -1)) << literal;
        } else if (lua_type(L, -1) == LUA_TNUMBER) {
            ASSERT_EQ(value.kind, ExprKind::number) << literal;
            EXPECT_EQ(value.as<Number>().value, lua_tonumber(L, -1)) << literal;
        } else {
            std::size_t size = 0;
            const char* text = lua_tolstring(L, -1, &size);
            EXPECT_EQ(value.as<String>().value, std::string_view(text, size)) << literal;
        }
    }
}

TEST(StockLua, GivesFunctionsTheSameLinesParametersAndUpvalues) {
    const std::string text = R"lua(
local a, b, c <const>, d <const> = 1, 2, 3, 4
local e <const> = -2 ^ 2 // 3
local found = {}
local function keep(...) for _, f in ipairs {...} do found[#found + 1] = f end return ... end
local function one(x) return b, a, x, d, e, print end
function two(x, y, ...)
  keep(function() return x, a, y, two, function() return b end end)
  return e
end
keep(one, two,
  function
  (_ENV) return x, b end, function() end)
two(1, 2)
keep(function(self, ...)
  local _ENV = { keep = keep }
  keep(function() return g, a end, function() return one and c end)
end)()
do local a = a; keep(function() a = a + 1; do local b = b; return function() return b, c end end end)() end
for i = 1, 2 do keep(function(p, q, r) goto x; do return i, e, d end ::x:: return "a", [[

]] end) end
local t = { m = keep(function()
  return found end) }
function t.x() return t end
function t:y(a, ...) return self, a, ... end
keep(t.x, t.y)
return found
)lua";
    const auto chunk = parse(text, "text");
    const State state(luaL_newstate());
    lua_State* L = state.get();
    luaL_openlibs(L);
    ASSERT_EQ(luaL_loadbuffer(L, text.data(), text.size(), "=text"), LUA_OK);
    ASSERT_EQ(lua_pcall(L, 0, 1, 0), LUA_OK) << lua_tostring(L, -1);
    const auto count = static_cast<int>(lua_rawlen(L, -1));
    EXPECT_GE(count, 12);
    for (int i = 1; i <= count; ++i) {
        lua_rawgeti(L, -1, i);
        lua_Debug info;
        lua_pushvalue(L, -1);
        lua_getinfo(L, ">Su", &info);
        std::vector<std::string> names;
        std::vector<std::string_view> views;
        for (int n = 1; const char* name = lua_getupvalue(L, -1, n); ++n) {
            names.emplace_back(name);
            lua_pop(L, 1);
        }
        for (const std::string& name : names) views.push_back(name);
        lua_pop(L, 1);
        const auto* function = chunk->find_function(static_cast<std::uint32_t>(info.linedefined),
                                                    static_cast<std::uint32_t>(info.lastlinedefined), info.nparams,
                                                    info.isvararg != 0, views);
        EXPECT_TRUE(function) << "function at lines " << info.linedefined << " to " << info.lastlinedefined;
    }
}

}  // namespace
}  // namespace lunaria::lua
