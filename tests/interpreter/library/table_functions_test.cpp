// table.sort, concat and move against those of Lua's own library.
#include "interpreter/library/table_functions.h"

#include <gtest/gtest.h>

#include <lua.hpp>
#include <memory>
#include <string>

#include "core/base/interrupt.h"
#include "interpreter/state.h"
#include "tests/interpreter/plain_lua.h"

namespace lunaria {

namespace {

// What the functions give for tables by chance, and which elements they touch in which order; `seed` is a global.
constexpr const char* kTry = R"lua(
math.randomseed(seed)
local join = table.concat
local function show(...)
  local t = table.pack(...)
  for i = 1, t.n do t[i] = type(t[i]) == "string" and string.format("%q", t[i]) or tostring(t[i]):gsub("0x%x+", "") end
  local text = ""
  for i = 1, t.n do text = text .. t[i] .. "," end
  return text
end
local lines = {}
local function note(...) lines[#lines + 1] = show(...) end
local function all(t) return show(table.unpack(t, 1, #t)) end

-- Numbers apart that compare as equal show where they went.
local function item(key, i) return setmetatable({ key = key, i = i }, { __lt = function(a, b) return a.key < b.key end }) end
local kinds = {
  function() return math.random(-50, 50) end,
  function() return math.random() end,
  function() return ({ 1, 1.0, 2, 2.0, -0.0, 0 })[math.random(6)] end,
  function() return string.char(math.random(97, 100)) .. math.random(3) end,
  function(i) return item(math.random(5), i) end,
  function(i) return math.random(20) == 1 and 0 / 0 or i end,
  function(i) return math.random(40) == 1 and "text" or i end,
  function(i) return i end,
  function(i) return -i end,
}
local orders = {
  false, false, false,
  function(a, b) return a > b end,
  function(a, b) return a <= b end,
  function() return true end,
  function() return false end,
  function() return math.random(2) == 1 end,
  function(a, b) if math.random(30) == 1 then error("stop") end return a < b end,
  function(a, b) return tostring(a):len() < tostring(b):len() end,
}
local function keyed(t)
  local text = {}
  for i = 1, #t do text[i] = type(t[i]) == "table" and t[i].key .. "/" .. t[i].i or t[i] end
  return text
end
for _ = 1, 400 do
  local kind, order, t = kinds[math.random(#kinds)], orders[math.random(#orders)], {}
  for i = 1, math.random(0, math.random(2) == 1 and 6 or 90) do t[i] = kind(i) end
  if order then note(pcall(table.sort, t, order)) else note(pcall(table.sort, t)) end
  note(all(keyed(t)))
end
-- Larger ones leave the middle as the pivot only when a split is bad.
for _, kind in ipairs(kinds) do
  local t = {}
  for i = 1, 2000 do t[i] = kind(i) end
  note(pcall(table.sort, t))
  note(all(keyed(t)))
end

-- What is read and written, and in which order.
local function watched(items)
  return setmetatable({}, {
    __index = function(_, k) lines[#lines + 1] = "read " .. tostring(k) return items[k] end,
    __newindex = function(_, k, v) lines[#lines + 1] = "write " .. tostring(k) items[k] = v end,
    __len = function() lines[#lines + 1] = "length" return #items end,
  })
end
for _ = 1, 20 do
  local items = {}
  for i = 1, math.random(0, 9) do items[i] = math.random(9) end
  note(pcall(table.sort, watched(items)))
  note(pcall(table.concat, watched(items), "-"))
  note(pcall(table.concat, watched(items), ", ", math.random(-1, 4), math.random(-1, 9)))
  note(pcall(table.move, watched(items), math.random(-2, 5), math.random(-2, 9), math.random(-2, 12)) == true)
  note(pcall(table.move, watched(items), 1, #items, math.random(-2, 12), watched({})) == true)
  note(all(items))
end

local max, min = math.maxinteger, math.mininteger
local file = io.tmpfile()
for _, f in ipairs {
  function() return table.sort() end,
  function() return table.sort(1) end,
  function() return table.sort({ 2, 1 }, 1) end,
  function() return table.sort({ 1 }, 1) end,
  function() return table.sort({ 2, 1 }, nil, 3) end,
  function() return table.sort({ 3, {}, 1 }) end,
  function() return table.sort({ 3, 2, nil, 1 }) end,
  function() return table.sort(setmetatable({}, { __len = function() return 3 end })) end,
  function() return table.sort(setmetatable({}, { __len = function() return max end })) end,
  function() return table.sort(setmetatable({}, { __len = function() return "x" end })) end,
  function() return table.sort("text") end,
  function() return table.sort(file) end,
  function() return table.sort({ 5, 3, 4 }, math.ult) end,
  function() return table.concat() end,
  function() return table.concat({ 1, 2.5, "x" }, ", ") end,
  function() return table.concat({ 1, {}, 3 }) end,
  function() return table.concat({ 1, true, 3 }, ", ") end,
  function() return table.concat({ 1, 2 }, {}) end,
  function() return table.concat({ 1, 2 }, "x", "y") end,
  function() return table.concat({ 1, 2 }, "x", 1, 3) end,
  function() return table.concat({ 1, 2 }, 5, 2, 1) end,
  function() return table.concat({ [max] = "end" }, "-", max, max) end,
  function() return table.concat({ [max] = "end", [max - 1] = 1 }, "-", max - 1, max) end,
  function() return table.concat("text") end,
  function() return table.concat({ 1, 2, 3 }, "-", 2.0, 3.5) end,
  function() return table.move() end,
  function() return table.move({}, 1) end,
  function() return table.move({}, 1, 2, "x") end,
  function() return table.move(1, 1, 2, 3) end,
  function() return table.move({}, 1, 2, 3, 4) end,
  function() return table.move({}, min, max, 1) end,
  function() return table.move({}, 0, max, 1) end,
  function() return table.move({}, 1, max, 2) end,
  function() return table.move({}, 1, 5, max - 3) end,
  function() return all(table.move({ 1, 2, 3 }, 1, 3, 2)) end,
  function() return all(table.move({ 1, 2, 3 }, 2, 3, 1)) end,
  function() return all(table.move({ 1, 2, 3 }, 1, 3, 3, { 7, 8 })) end,
  function() return all(table.move({ 1, 2, 3 }, 1, 0, 3, nil)) end,
  function() return table.move({ 1 }, max, max, max)[1] end,
  function() return table.move({ 1 }, min, min, min)[1] end,
  function()
    local equal = { __eq = function() return true end }
    local a, b = setmetatable({ 1, 2, 3 }, equal), setmetatable({}, equal)
    return all(table.move(a, 1, 3, 2, b))
  end,
} do
  note(pcall(f))
end

-- Where a comparison goes wrong the functions look like Lua's own.
local place
local odd = setmetatable({}, { __lt = function() place = debug.traceback("here") error("odd", 2) end })
note(pcall(table.sort, { odd, odd }))
note((place:gsub("%d+", "")))
return join(lines, "\n")
)lua";

}  // namespace

TEST(TableFunctions, give_what_the_library_of_lua_gives) {
    for (int seed = 1; seed <= 4; ++seed)
        EXPECT_EQ(run_seeded(kTry, seed, install_table_functions), run_seeded(kTry, seed)) << seed;
}

TEST(TableFunctions, stop_when_they_are_interrupted_and_lose_no_element) {
    const PlainState owner(new_plain_state());
    lua_State* L = owner.get();
    luaL_openlibs(L);
    install_table_functions(L);
    // Asks for the interrupt itself, when many elements are in other places already.
    lua_register(L, "interrupt", [](lua_State*) {
        request_interrupt();
        return 0;
    });
    ASSERT_EQ(luaL_dostring(L, R"lua(
        t, count = {}, 100000
        for i = 1, count do t[i] = i * 7919 % count end
        compared = 0
        sorted, why = pcall(table.sort, t, function(a, b)
          compared = compared + 1
          if compared == 50000 then interrupt() end
          return a < b
        end)
        seen, different = {}, 0
        for i = 1, #t do
          if not seen[t[i]] then different = different + 1 end
          seen[t[i]] = true
        end
        joined = pcall(table.concat, t)
        moved = pcall(table.move, t, 1, #t, 1, {})
        return not sorted and why:find("interrupted") and compared < 100000 and different == count and not joined
          and not moved
    )lua"),
              LUA_OK)
        << lua_tostring(L, -1);
    clear_interrupt();
    EXPECT_TRUE(lua_toboolean(L, -1));
}

}  // namespace lunaria
