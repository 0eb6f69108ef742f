-- Prints a line for each of many calls of operators: its name and what stands for the bits of its results and gradients. The
-- calls of two runs of this program that print other lines gave other bits (same_bits_test.lua). A fifth of the operators a day,
-- each with all its calls, whose numbers are those of every other day.
--   lunaria bits.lua eager|graph [DEVICE]
local folder = arg[0]:match("^(.*/)programs/") or "./"
package.path = folder .. "?.lua;" .. package.path
local ms = require "lunaria"
local parse_sample = require "programs.sample"
local today = require "support.today"
local ops = ms.ops
local mode, device = arg[1] or "eager", arg[2]
io.stdout:setvbuf "line"
if device then ms.set_context { device_target = device } end

-- Numbers that are the same everywhere, of any dtype and shape.
local state = 1
local function uniform()
  state = state * 6364136223846793005 + 1442695040888963407
  return (state >> 11) / 2 ^ 53
end
local function make(dtype, shape, low, high)
  local count = 1
  for _, d in ipairs(shape) do count = count * d end
  local list, is_float = {}, dtype:find("float") or dtype:find("complex")
  for i = 1, count do
    local x = low and low + (high - low) * uniform() or (uniform() + uniform() + uniform() - 1.5) * (is_float and 2 or 5)
    list[i] = dtype == "bool" and uniform() < 0.5 or dtype ~= "bool" and (is_float and x or math.floor(x)) or false
  end
  if dtype:find("^uint") then for i = 1, count do list[i] = math.abs(list[i]) end end
  local x = count == 0 and ms.zeros(shape) or ms.tensor(list)
  return x:astype(ms[dtype]):reshape(shape)
end

-- What stands for the bits of a result.
local MOST = 6000 -- elements that are looked at
local function digest(value)
  if type(value) == "table" and not ms.is_tensor(value) then
    local h = 0
    for _, item in ipairs(value) do h = h * 31 + digest(item) end
    return h
  end
  if not ms.is_tensor(value) then return #tostring(value) end
  local x = value
  if x.dtype == ms.complex64 or x.dtype == ms.complex128 then x = ops.view_as_real(x) end
  local h = 0
  x = x:reshape(-1)
  if x.size > MOST then x = ops.narrow(x, 0, 0, MOST) end
  for _, number in ipairs(x:tolist()) do
    if type(number) == "boolean" then number = number and 1 or 0 end
    if number ~= number then number = 1e308 end
    h = (h ~ string.unpack("i8", string.pack("d", number))) * 0x9E3779B97F4A7C15
    h = h ~ (h >> 29)
  end
  return h
end

local function is_float(x) return ms.is_tensor(x) and tostring(x.dtype):lower():find("float") ~= nil end

-- Operators are numbered as they come, by the first word of a call's name.
local numbers, operators = {}, 0
local function is_of_today(name)
  local operator = name:match "^[%w_]+"
  if not numbers[operator] then
    operators = operators + 1
    numbers[operator] = operators
  end
  return today.has(numbers[operator], 5)
end

-- The results of f, and the gradients of the sum of its first one that is a float where there are some.
local function run(name, f, arguments, without_gradient)
  if not is_of_today(name) then return end
  local compiled = mode == "graph" and ms.jit(f) or f
  local function results(g)
    -- The first call is recorded, later ones are compiled.
    for _ = 1, mode == "graph" and 2 or 0 do pcall(g, table.unpack(arguments, 1, arguments.n)) end
    local found = table.pack(pcall(g, table.unpack(arguments, 1, arguments.n)))
    if not found[1] then return { "error" } end
    return { table.unpack(found, 2, found.n) }
  end
  local list = results(compiled)
  local h = digest(list)
  local places = {}
  for i = 1, arguments.n do if is_float(arguments[i]) then places[#places + 1] = i - 1 end end
  if list[1] ~= "error" and is_float(list[1]) and #places > 0 and not without_gradient then
    local function first(...)
      local y = f(...)
      return ops.sum(y * ops.cos(y))
    end
    local slopes = ms.grad(first, places)
    h = h * 31 + digest(results(mode == "graph" and ms.jit(slopes) or slopes))
  end
  io.write(("%s\t%016x\n"):format(name, h))
end

-- Every operator by its samples, as they are and with larger sizes.
local LARGER = { [2] = 3, [3] = 18, [4] = 20, [5] = 33, [7] = 257 }
local function value_of(v, larger)
  if v.dtype then
    local shape = {}
    for i, d in ipairs(v.shape) do shape[i] = larger and LARGER[d] or d end
    return make(v.dtype, shape, v.low, v.high)
  elseif v.list then
    local list = {}
    for i, item in ipairs(v.list) do list[i] = value_of(item, larger) end
    return list
  end
  return load("local ms = ... return " .. v.text)(ms)
end
local LEFT_OUT = { empty = true, empty_like = true, new_empty = true }
for _, entry in ipairs(require("lunaria.registry").entries()) do
  local f = ops[entry.name]
  if entry.effect == "none" or entry.effect == nil or entry.effect == false then
    for number, text in ipairs(LEFT_OUT[entry.name] and {} or entry.samples) do
      local sample = f and parse_sample(text, entry)
      for _, larger in ipairs(sample and { false, true } or {}) do
        local arguments, named, is_named = { n = 0 }, {}, false
        for _, a in ipairs(sample) do
          if a.name then
            named[a.name], is_named = value_of(a.value, larger), true
          else
            arguments.n = arguments.n + 1
            arguments[arguments.n] = value_of(a.value, larger)
          end
        end
        local count = arguments.n
        run(("%s/%d%s"):format(entry.name, number, larger and "+" or ""), is_named and function(...)
          local list = { ... }
          list[count + 1] = named
          return f(table.unpack(list, 1, count + 1))
        end or function(...) return f(...) end, arguments)
      end
    end
  end
end

-- What adds up, over axes of many sizes, alone and in chains.
local REDUCTIONS = {
  sum = function(x, axis) return ops.sum(x, axis) end,
  mean = function(x, axis) return ops.mean(x, axis) end,
  sum_of_product = function(x, axis) return ops.sum(x * 2 + x * x, axis) end,
  mean_of_exp = function(x, axis) return ops.mean(ops.exp(x), axis) * 3 end,
  var = function(x, axis) return ops.var(x, axis) end,
  std = function(x, axis) return ops.std(x, axis) end,
  norm = function(x, axis) return ops.norm(x, 2, axis) end,
  logsumexp = function(x, axis) return ops.logsumexp(x, axis) end,
  nanmean_power = function(x, axis) return ops.float_power(ops.nanmean(x, axis), 2) end,
  amax = function(x, axis) return ops.amax(x, axis) end,
  two_sums = function(x, axis) return ops.sum(ops.relu(x), axis), ops.relu(x), ops.sum(x * x, axis) end,
}
local ROWS = {
  softmax = function(x) return ops.softmax(x, -1) end,
  softmax_first = function(x) return ops.softmax(x, 0) end,
  log_softmax = function(x) return ops.log_softmax(x * 3, -1) end,
  scaled_softmax = function(x) return ops.softmax(x * 30, -1) * 2 end,
  layer_norm = function(x) return ops.layer_norm(x, { x.shape[#x.shape] }) end,
  rms_norm = function(x) return (ops.rms_norm(x, ops.ones { x.shape[#x.shape] })) end,
  centred = function(x) return x - ops.mean(x, -1, true) end,
  cumsum = function(x) return ops.cumsum(x, -1) end,
}
local function in_order(list)
  local names = {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  return names
end
local SHAPES = { { 1 }, { 7 }, { 257 }, { 1000 }, { 4099 }, { 5, 1000 }, { 257, 7 }, { 300, 33 }, { 3, 4099 }, { 40, 1, 64 },
  { 3, 260, 20 }, { 4, 18, 33 }, { 600, 48 } }
for _, dtype in ipairs(mode == "graph" and { "float32" } or { "float32", "float64", "bfloat16" }) do
  for _, shape in ipairs(SHAPES) do
    local x = make(dtype, shape)
    local text = dtype .. " " .. table.concat(shape, "x")
    local axes = { {}, { 0 }, { -1 } }
    if #shape == 3 then table.move({ { 1 }, { 0, 1 }, { 1, 2 }, { 0, 2 } }, 1, 4, 4, axes) end
    for _, name in ipairs(in_order(REDUCTIONS)) do
      for _, axis in ipairs(axes) do
        local f, over = REDUCTIONS[name], #axis > 0 and axis or nil
        run(("%s %s {%s}"):format(name, text, table.concat(axis, ",")), function(v) return f(v, over) end, { x, n = 1 },
          dtype ~= "float32" or x.size > 2000)
      end
    end
    for _, name in ipairs(in_order(ROWS)) do
      run(name .. " " .. text, ROWS[name], { x, n = 1 }, x.size > 6000)
    end
    if #shape == 2 then
      -- The order is that of the elements, whatever their layout.
      run("transposed " .. text, function(v) return ops.sum(ops.transpose(v, { 1, 0 }), 0) end, { x, n = 1 }, true)
      run("transposed_softmax " .. text, function(v) return ops.softmax(ops.transpose(v, { 1, 0 }), 0) end, { x, n = 1 }, true)
    end
  end
end
