// The matcher against the one of Lua's own library, over random patterns.
#include "jit/pattern_matcher.h"

#include <gtest/gtest.h>

#include <lua.hpp>
#include <memory>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "interpreter/library/patterns.h"
#include "interpreter/state.h"
#include "tests/interpreter/plain_lua.h"

namespace lunaria {

namespace {

// Prints what the functions give for texts and patterns by chance; `seed` is a global.
constexpr const char* kTry = R"lua(
math.randomseed(seed)
local items = {"a", "b", "c", ".", "%a", "%d", "[ab]", "[^a]", "[a-c]", "[%d%s]", "(", ")", "()", "%1", "%2", "%b()", "%f[%w]",
  "%f[^a]", "$", "^", "%%", "%", "[", "]", "[]a]", "[^]b]", "[%]]", "\0", "%z", "1", " ", "-", "%S", "%0", "[a-]", "[-b]", "%x", "%g"}
local counts = {"", "", "", "*", "+", "-", "?"}
local parts = {"a", "b", "c", "(", ")", "1", " ", "\0", "%", "]", "-", "ab"}
local replacements = {"x", "%0", "%1", "%%", "%2", "%", "<%0>", "%a", "y"}
local function pick(t) return t[math.random(#t)] end
local function show(...)
  local t = table.pack(...)
  for i = 1, t.n do t[i] = type(t[i]) == "string" and string.format("%q", t[i]) or tostring(t[i]) end
  return table.concat(t, ",")
end
local lines = {}
for i = 1, 3000 do
  local p, s = {}, {}
  for _ = 1, math.random(0, 6) do p[#p + 1] = pick(items) .. pick(counts) end
  for _ = 1, math.random(0, 10) do s[#s + 1] = pick(parts) end
  p, s = table.concat(p), table.concat(s)
  local init = math.random(4) == 1 and math.random(-12, 12) or nil
  local by, most = pick(replacements), math.random(3) == 1 and math.random(-1, 3) or nil
  for k, f in ipairs {
    function() return string.find(s, p, init) end,
    function() return string.find(s, p, init, true) end,
    function() return string.match(s, p, init) end,
    function()
      local all = {}
      for x, y in string.gmatch(s, p, init) do all[#all + 1] = show(x, y) end
      return table.concat(all, ";")
    end,
    function() return string.gsub(s, p, by, most) end,
    function() return string.gsub(s, p, {a = "A", b = false, [1] = "one", ["1"] = 5}) end,
    function()
      return string.gsub(s, p, function(x, y)
        if x == "b" then return nil end
        return x == "c" and {} or show(x, y)
      end)
    end,
    function() return s:gsub(p) end,
  } do
    lines[#lines + 1] = show(p, s, k, pcall(f))
  end
end
for _, f in ipairs {
  function() return string.find(("a"):rep(1000), ("a?"):rep(300)) end,
  function() return string.find("x", ("()"):rep(40)) end,
  function() return string.gsub("x", "x", true) end,
  function() return string.gsub(nil) end,
  function() return string.match("x") end,
  function() return string.gmatch("x") end,
  function() return ("abc"):gsub("", "-") end,
  function() return ("hello"):find("l", -2), ("hello"):find("", 10), ("hello"):find("", 6) end,
  function() return string.find("a\0b", "\0b", 1, true) end,
} do
  lines[#lines + 1] = show(pcall(f))
end
lines[#lines + 1] = show(pcall(string.find, "a", "["))
return table.concat(lines, "\n")
)lua";

}  // namespace

TEST(PatternMatcher, gives_what_the_library_of_lua_gives) {
    for (int seed = 1; seed <= 4; ++seed)
        EXPECT_EQ(run_seeded(kTry, seed, install_patterns), run_seeded(kTry, seed)) << seed;
}

TEST(PatternMatcher, stops_when_it_is_interrupted) {
    const std::string text(60, 'a'), pattern = [] {
        std::string p;
        for (int i = 0; i < 60; ++i) p += "a?";
        return p + std::string(60, 'a');
    }();
    PatternMatcher m(text, pattern);
    request_interrupt();
    EXPECT_THROW(m.match_at(text.data()), Error);
    clear_interrupt();
}

}  // namespace lunaria
