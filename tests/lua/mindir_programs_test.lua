-- Programs as MindIR files: control flow, recursion, numbers, tables and transforms come back as the function that was
-- saved, for other inputs than the example's, in both modes, under derivatives, and when they are saved again.
local ms = require "lunaria"
local ops = ms.ops

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local function path(name) return folder .. "/" .. name .. ".mindir" end

local function describe(v)
  return ms.is_tensor(v) and tostring(v.dtype) .. " " .. tostring(v) or math.type(v) and math.type(v) .. " " .. v
    or tostring(v)
end

-- Results agree: tables by their fields, numbers with their type, tensors but for rounding.
local function same(a, b, what)
  if type(a) == "table" and type(b) == "table" then
    for key, value in pairs(a) do same(value, b[key], what .. "." .. tostring(key)) end
    for key in pairs(b) do assert(a[key] ~= nil, what .. "." .. tostring(key) .. " is too much") end
    return
  end
  local alike = rawequal(a, b)
  if ms.is_tensor(a) and ms.is_tensor(b) then
    alike = a.dtype == b.dtype and tostring(a.shape) == tostring(b.shape)
    if alike and a.size > 0 then
      local x, y = a:double(), b:double()
      alike = ops.isclose(x, y, 1e-4, 1e-5, true):all():item()
    end
  elseif math.type(a) == "float" and math.type(b) == "float" then
    alike = a == b or a ~= a and b ~= b or math.abs(a - b) <= 1e-5 + 1e-4 * math.abs(a)
  end
  assert(alike, ("%s: %s is not %s"):format(what, describe(b), describe(a)))
end

local function agree(f, g, inputs, what)
  local function copies()
    local list = {}
    for i = 1, inputs.n or #inputs do
      list[i] = ms.is_tensor(inputs[i]) and inputs[i]:copy() or inputs[i]
    end
    return table.unpack(list, 1, inputs.n or #inputs)
  end
  local expected, found = table.pack(pcall(f, copies())), table.pack(pcall(g, copies()))
  if not expected[1] then
    assert(not found[1], what .. ": no error")
    return
  end
  assert(found[1], what .. ": " .. tostring(found[2]))
  assert(expected.n == found.n, ("%s: %d results, not %d"):format(what, found.n - 1, expected.n - 1))
  for i = 2, expected.n do same(expected[i], found[i], what .. " result " .. i - 1) end
end

-- One number of all floats that a function gives, to be differentiated.
local function total(v)
  if ms.is_tensor(v) then return v.dtype:is_floating_point() and v:sum() or 0 end
  if type(v) == "number" then return math.type(v) == "float" and v or 0 end
  local sum = 0
  if type(v) == "table" then
    local keys = {}
    for key in pairs(v) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for _, key in ipairs(keys) do sum = sum + total(v[key]) end
  end
  return sum
end

local saved = dofile "tests/lua/support/saved_programs.lua"
local order, programs, v, w = saved.order, saved.programs, saved.v, saved.w

local modes = { ms.PYNATIVE_MODE, ms.GRAPH_MODE }
local failed = {}
local only = os.getenv "PROGRAM"
for _, name in ipairs(order) do
  local p = programs[name]
  local f, options = p.f, p.options
  if only and not name:find(only, 1, true) then goto continue end
  local ok, message = xpcall(function()
    ms.save_mindir(f, path "program", table.unpack(p.inputs[1], 1, p.inputs[1].n or #p.inputs[1]))
    local g = ms.load(path "program")
    if options.once then return end
    assert(not options.straight or not tostring(ms.ir(g)):find("closure(", 1, true), "is no straight line")
    ms.save_mindir(g, path "again", table.unpack(p.inputs[1]))
    local again = ms.load(path "again")
    local compiled = ms.jit(g)
    for i, inputs in ipairs(p.inputs) do
      agree(f, g, inputs, "input " .. i)
      agree(f, again, inputs, "saved again, input " .. i)
      for _ = 1, 3 do agree(f, compiled, inputs, "compiled, input " .. i) end
      for _, mode in ipairs(modes) do
        ms.set_context { mode = mode }
        for _ = 1, 2 do agree(f, g, inputs, "mode " .. mode .. ", input " .. i) end
      end
      ms.set_context { mode = ms.PYNATIVE_MODE }
      local function sum_of(h) return function(...) return total { h(...) } end end
      local first = function(h) return ms.grad(sum_of(h)) end
      local second = function(h) return ms.grad(function(...) return total(first(h)(...)) end) end
      if (options.order or 2) > 0 then agree(first(f), first(g), inputs, "derivative, input " .. i) end
      if (options.order or 2) > 1 then agree(second(f), second(g), inputs, "second derivative, input " .. i) end
    end
    assert(options.by_lua or ms.jit_report(compiled).compiled_calls > 0, "it was never compiled")
  end, debug.traceback)
  ms.set_context { mode = ms.PYNATIVE_MODE }
  if not ok then failed[#failed + 1] = name .. ": " .. tostring(message) end
  ::continue::
end

-- Damaged files are errors, or programs that end: with a value or with an error. One without blocks, that it runs on.
local kept = ms.Parameter(w, "w")
ms.save_mindir(function(x, n)
  local count = 0
  local function add(...) count = count + select("#", ...) return ... end
  local t = { add(x, kept), k = { n, add(n) } }
  t.y = ops.softmax(add(t[1]), { axis = 0 }) * n
  return t, count, ("%d"):format(n), ms.grad(function(y) return (y * kept):sum() end)(x)
end, path "program", v, 2)
local file = io.open(path "program", "rb")
local bytes = file:read "a"
file:close()
math.randomseed(5)
local errors = 0
for _ = 1, 1500 do
  local damaged = bytes
  for _ = 1, math.random(3) do
    local at, from = math.random(#bytes - 8), math.random(#bytes - 8)
    local n = math.random(6)
    local put = math.random(2) == 1 and string.char(math.random(0, 255)) or damaged:sub(from, from + n - 1)
    damaged = damaged:sub(1, at - 1) .. put .. damaged:sub(at + #put)
  end
  file = io.open(path "damaged", "wb")
  file:write(damaged)
  file:close()
  local ok, g = pcall(ms.load, path "damaged")
  if ok then
    pcall(g, v, 2)
    pcall(ms.grad(function(x) return total { g(x, 2) } end), v)
  else
    errors = errors + 1
    assert(tostring(g):find("damaged.mindir", 1, true), g)
  end
end
assert(errors > 500)

os.execute("rm -r " .. folder)
assert(#failed == 0, #failed .. " of " .. #order .. " programs\n" .. table.concat(failed, "\n"))
assert(dofile "tests/lua/support/compiled.lua".check())
