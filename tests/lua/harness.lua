-- Tests in Lua: one file, many named tests.
--
--   local t = require "harness"            (which needs the folder of this file on package.path)
--   t.test("an empty tensor has a shape", function() t.equal(ms.tensor({}).size, 0) end)
--   t.finish()
--
-- finish() prints failures and, as the last line, "N passed, N failed", and leaves with the matching exit code.
--
-- Random numbers are the same ones in every run; LUNARIA_TEST_SEED=n gives others. A long file whose tests do not depend on each
-- other says t.each_day(n) before them: a day runs one n-th of the tests (support/today.lua).
local compiled = dofile "tests/lua/support/compiled.lua"
local today = dofile "tests/lua/support/today.lua"
local harness = {}

local seed = math.tointeger(tonumber(os.getenv "LUNARIA_TEST_SEED" or 1))
local function reseed(number)
  math.randomseed(number)
  require "lunaria".set_seed(number)
end
reseed(seed)

local passed, failures = 0, {}
local days, number, begun, whole = nil, 0, 0, true

-- From here on. 1: every test again. A test draws what it draws alone.
function harness.each_day(n) days = n end

-- From here on tests ask what was compiled: of parts of a call that is compiled as a whole nothing is told.
function harness.in_parts() whole = false end

function harness.test(name, f)
  -- What this changes outside has graph mode compile the whole call, so that it runs what tests define as well as what they do.
  if whole then begun = begun + 1 end
  if days then
    number = number + 1
    if not today.has(number, days) then return end
    reseed(seed + number)
  end
  local ok, message = xpcall(f, function(e)
    return type(e) == "string" and debug.traceback(e, 2) or tostring(e)
  end)
  if ok then
    passed = passed + 1
  else
    failures[#failures + 1] = name .. ": " .. message
    print("FAIL " .. name .. ": " .. message)
  end
  compiled.look()
end

-- For tests/check/quick.py: the files of the library that the test loaded.
local function write_loaded(path)
  local file = io.open(path, "w")
  for name in pairs(file and package.loaded or {}) do
    if name:find "^lunaria%." then
      local below = "interpreter/lua/" .. name:gsub("%.", "/")
      file:write(below, ".lua\n", below, "/init.lua\n")
    end
  end
  if file then file:close() end
end

function harness.finish()
  if os.getenv "LUNARIA_TEST_LOADED" then write_loaded(os.getenv "LUNARIA_TEST_LOADED") end
  if not compiled.check() then failures[#failures + 1] = "graph mode" end
  print(("%d passed, %d failed"):format(passed, #failures))
  os.exit(#failures == 0 and 0 or 1, true)
end

local function show(value)
  if type(value) == "string" then return ("%q"):format(value) end
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i = 1, #value do parts[i] = show(value[i]) end
  for key, item in pairs(value) do
    if type(key) ~= "number" then parts[#parts + 1] = tostring(key) .. " = " .. show(item) end
  end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- Tensors are compared by dtype, shape and elements, tables by content, numbers exactly (nan equals nan).
local function plain(value)
  if type(value) ~= "userdata" then return value end
  local ok, list = pcall(function() return { tostring(value.dtype), value.shape, value:tolist() } end)
  return ok and list or value
end

-- Two tensors of the same bits are equal: that is asked first, since a table of their elements costs a hundred times as much.
local function same_bits(a, b)
  if type(a) ~= "userdata" or type(b) ~= "userdata" then return false end
  local ok, same = pcall(function()
    return tostring(a.dtype) == tostring(b.dtype) and tostring(a.shape) == tostring(b.shape) and a:get_bytes() == b:get_bytes()
  end)
  return ok and same
end

local function same(a, b, rounding)
  if same_bits(a, b) then return true end
  a, b = plain(a), plain(b)
  if type(a) ~= "table" or type(b) ~= "table" then
    if a == b or (a ~= a and b ~= b) then return true end
    return rounding and math.type(a) == "float" and math.type(b) == "float" and math.abs(a - b) <= rounding * math.abs(b)
  end
  for key, item in pairs(a) do
    if not same(item, b[key], rounding) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

-- `rounding`: the relative difference that floats may have, where operators are computed together.
function harness.equal(got, expected, rounding)
  if not same(got, expected, rounding) then
    error(("got %s, expected %s"):format(show(plain(got)), show(plain(expected))), 2)
  end
end

-- Numbers, or tensors and tables of numbers, that agree up to the tolerance (relative beyond 1).
function harness.near(got, expected, tolerance)
  tolerance = tolerance or 1e-5
  local function compare(a, b)
    if same_bits(a, b) then return true end
    a = type(a) == "userdata" and a:tolist() or a
    b = type(b) == "userdata" and b:tolist() or b
    if type(a) == "table" and type(b) == "table" then
      if #a ~= #b then return false end
      for i = 1, #a do
        if not compare(a[i], b[i]) then return false end
      end
      return true
    end
    if type(a) ~= "number" or type(b) ~= "number" then return a == b end
    return a == b or (a ~= a and b ~= b) or math.abs(a - b) <= tolerance * math.max(1, math.abs(b))
  end
  if not compare(got, expected) then
    error(("got %s, expected %s"):format(show(plain(got)), show(plain(expected))), 2)
  end
end

-- The call must raise an error whose message has every one of the texts; gives the message back.
function harness.fails(texts, f, ...)
  local ok, message = pcall(f, ...)
  if ok then error("no error was raised", 2) end
  message = tostring(message)
  for _, text in ipairs(type(texts) == "table" and texts or { texts }) do
    if not message:find(text, 1, true) then error(("%q is not in the message: %s"):format(text, message), 2) end
  end
  return message
end

return harness
