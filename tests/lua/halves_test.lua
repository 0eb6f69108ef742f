-- float16 and bfloat16 in everything that takes float32: every operator of the registry is called with the operands of its
-- samples in the three dtypes, plain and compiled, its value and its gradient. What float32 gives for the rounded operands is
-- the oracle.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local parse_sample = require "programs.sample"
local halves = require "programs.halves"
local today = require "support.today"
local ops = ms.ops

local graph_mode = ms.get_context("mode") == ms.GRAPH_MODE
local verbose = arg[1] == "--verbose"

-- Operators without a value to compare: memory as it is, and what is drawn.
local NO_VALUE = { empty = true, empty_like = true, new_empty = true }

-- Operators whose entry has a gradient that is an error: results that are complex are not differentiated.
local NO_GRADIENT = { eigvals = true }

-- Operators that give float32 for halves, and why.
local GIVES_FLOAT32 = {}
for _, name in ipairs { "uniform", "normal", "laplace", "gamma", "random_gamma", "poisson" } do
  GIVES_FLOAT32[name] = "what is drawn is float32, whatever the parameters of the distribution are"
end
for _, name in ipairs { "dft_real", "irfft", "hfft", "stft", "istft" } do
  GIVES_FLOAT32[name] = "spectra are complex64, whose parts are float32"
end

-- How far a result may be from that of float32, beside the larger of one and the largest element.
local MARGIN = { float16 = 2 ^ -8, bfloat16 = 2 ^ -5 }

local UNITS = { float16 = 2 ^ -11, bfloat16 = 2 ^ -8 }

-- Some number of [0, 1), the same in each run, whatever other operators there are.
local state = 1
local function begin(name)
  state = 1
  for i = 1, #name do state = (state * 31 + name:byte(i)) & 0x7fffffff end
end
local function fraction()
  state = (state * 1103515245 + 12345) & 0x7fffffff
  return state / 0x80000000
end

local function operand(template)
  local n = 1
  for _, d in ipairs(template.shape) do n = n * d end
  local dtype = template.dtype
  if n == 0 then return ops.zeros(template.shape, ms[dtype]) end
  local list = {}
  for i = 1, n do
    local u = fraction()
    if template.low then
      u = template.low + (template.high - template.low) * u
      list[i] = dtype:find "float" and u or math.floor(u)
    elseif dtype == "bool" then
      list[i] = u < 0.5
    elseif dtype:find "float" or dtype == "complex64" then
      list[i] = (u + fraction() + fraction() - 1.5) * 2
    else
      list[i] = math.floor((dtype == "uint8" and 0 or -10) + 20 * u)
    end
  end
  return ms.tensor(list, ms[dtype]):reshape(template.shape)
end

local function elements(x)
  if x.dtype == ms.complex64 or x.dtype == ms.complex128 then x = ops.view_as_real(x) end
  local list = x:reshape(-1):tolist()
  for i, v in ipairs(list) do
    if type(v) == "boolean" then list[i] = v and 1 or 0 end
  end
  return list
end

local worst = {}

-- Nil, or how a list of results differs from that of float32.
local function difference(got, expected, dtype, what, stays)
  if #got ~= #expected then return ("%d results instead of %d"):format(#got, #expected) end
  for k, wanted in ipairs(expected) do
    local found = got[k]
    if tostring(found.shape) ~= tostring(wanted.shape) then return ("shape %s instead of %s"):format(found.shape, wanted.shape) end
    local expected_dtype = wanted.dtype == ms.float32 and not stays and ms[dtype] or wanted.dtype
    if found.dtype ~= expected_dtype then return ("result %d is %s instead of %s"):format(k, found.dtype, expected_dtype) end
    local a, b = elements(found), elements(wanted)
    local largest, limit = 1, dtype == "float16" and 65504 or math.huge
    for _, y in ipairs(b) do
      if math.abs(y) > largest and math.abs(y) < limit then largest = math.abs(y) end
    end
    local margin = MARGIN[dtype] * largest
    for i, y in ipairs(b) do
      local x = a[i]
      local same = x == y or (x ~= x and y ~= y) or (math.abs(y) > limit and math.abs(x) >= limit)
      if not same then
        local off = math.abs(x - y)
        if verbose then
          local units = off / largest / UNITS[dtype]
          if units > (worst[what] or 0) then worst[what] = units end
        end
        if not (off <= margin) then return ("result %d, element %d is %.9g instead of %.9g"):format(k, i - 1, x, y) end
      end
    end
  end
end

local function call(f, list)
  ms.set_seed(1)
  return halves.outcome(f, list)
end

local checked, compiled_too, not_compiled = 0, 0, {}

-- Nil, or what is wrong with a sample in one dtype.
local function wrong_in(dtype, entry, sample)
  begin(entry.name)
  local made = halves.sample_call(entry, sample, ms[dtype], operand)
  local text, f, exact, rounded, positions = made.text, made.f, made.exact, made.rounded, made.positions
  if #positions == 0 and not made.by_dtype then return nil end
  local wanted = call(f, exact)
  if not wanted then return text .. " raises in float32" end
  checked = checked + 1
  local stays = GIVES_FLOAT32[entry.name]
  local no_value = NO_VALUE[entry.name] or entry.effect == "random"
  local function judge(g, list, what)
    local got, message = call(g, list)
    if not got then return what .. " raises " .. message end
    if no_value then
      for k, y in ipairs(wanted) do
        local expected = y.dtype == ms.float32 and not stays and ms[dtype] or y.dtype
        if got[k].dtype ~= expected then return ("%s is %s"):format(what, got[k].dtype) end
      end
      return nil
    end
    local wrong = difference(got, wanted, dtype, entry.name .. " " .. dtype .. " " .. what:match "%a+", stays)
    return wrong and ("%s: %s"):format(what, wrong)
  end
  local function both(g, what)
    local wrong = judge(g, rounded, what)
    if wrong or entry.effect == "state" then return wrong end
    local compiled = ms.jit(g)
    for _ = 1, 3 do
      wrong = judge(compiled, rounded, "compiled " .. what)
      if wrong then return wrong end
    end
    if graph_mode or ms.jit_report(compiled).compiled_calls > 0 then
      compiled_too = compiled_too + 1
    else
      not_compiled[entry.name] = true
    end
  end
  local wrong = both(f, "value")
  if wrong then return text .. ", " .. wrong end
  if #positions == 0 or not entry.has_gradient or entry.no_gradient or NO_GRADIENT[entry.name] then return nil end
  if no_value or entry.effect == "state" then return nil end
  stays = nil
  local gradient = halves.gradient_of(f, positions, 0.0)
  wanted = call(gradient, exact)
  if not wanted then return text .. ", gradient raises in float32" end
  wrong = both(gradient, "gradient")
  return wrong and text .. ", " .. wrong
end

-- A quarter of the calls a day.
t.each_day(4)
for _, entry in ipairs(require("lunaria.registry").entries()) do
  for _, sample in ipairs(entry.name == "print_" and {} or entry.samples) do
    local parsed = parse_sample(sample, entry)
    for _, dtype in ipairs(parsed and { "float16", "bfloat16" } or {}) do
      t.test(("%s in %s"):format(entry.name, dtype), function()
        local wrong = wrong_in(dtype, entry, parsed)
        if wrong then error(wrong, 0) end
      end)
    end
  end
end

t.each_day(1)

if verbose then
  local list = {}
  for name, units in pairs(worst) do list[#list + 1] = { name, units } end
  table.sort(list, function(a, b) return a[2] > b[2] end)
  for i = 1, math.min(80, #list) do print(("%8.2f %s"):format(list[i][2], list[i][1])) end
end

t.test("segments without elements are the ends of the dtype", function()
  local ids = ms.tensor { 1, 1 }
  for dtype, largest in pairs { float16 = 65504, bfloat16 = 0x1.fep+127, float32 = 0x1.fffffep+127 } do
    local x = ms.tensor({ 3.0, -5.0 }, ms[dtype])
    t.equal(ops.unsorted_segment_max(x, ids, 2):tolist(), { -largest, 3 })
    t.equal(ops.unsorted_segment_min(x, ids, 2):tolist(), { largest, -5 })
  end
end)

t.test("the registry was walked", function()
  local names = {}
  for name in pairs(not_compiled) do names[#names + 1] = name end
  table.sort(names)
  print(("%d calls in halves, %d compiled; never compiled: %s"):format(checked, compiled_too, table.concat(names, " ")))
  assert(checked > (today.whole and 2000 or 300) and compiled_too > checked)
end)
t.finish()
