-- The GPU's kernels of operators that refuse values, of conversions and of norms, in every dtype: equal to the CPU's, and nothing left
-- to the host but what it has to refuse.
--   usage: checked.lua [assemble], as kernels.lua; with `assemble` a fifth of them each day
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local today = require "support.today"
local ops = ms.ops
local only_assembles = arg[1] == "assemble"
local checked = 0

ms.set_seed(3)

local function on(device, args)
  local list = {}
  for i, a in ipairs(args) do list[i] = type(a) == "userdata" and a:to(device) or a end
  return list
end

-- The same on both, to a part of the largest element; 0 asks for equal elements.
local function check(name, bound, f, ...)
  local args = { ... }
  checked = checked + 1
  if only_assembles and not today.has(checked, 5) then return end
  -- How many elements there are is read back, and nothing has counted them.
  if only_assembles and name:find "^argwhere" then return end
  t.test(name, function()
    local there = on("GPU", args)
    ms.runtime.forget_fallbacks()
    local result = f(table.unpack(there))
    local left = {}
    for _, entry in ipairs(ms.runtime.fallbacks()) do left[#left + 1] = entry.operator end
    t.equal(table.concat(left, " "), "")
    if only_assembles then return end
    local expected = f(table.unpack(args))
    t.equal({ result.device, result.dtype, result.shape }, { "GPU", expected.dtype, expected.shape })
    result = result:to "CPU"
    if bound == 0 then
      t.equal(result:tolist(), expected:tolist())
    elseif expected.size > 0 then
      local a, b = result:astype(ms.float64), expected:astype(ms.float64)
      local same = ops.logical_or(ops.equal(a, b), ops.logical_and(ops.isnan(a), ops.isnan(b)))
      local largest = ops.where(ops.isfinite(b), b, 0.0):abs():max():item() + 1
      local far = ops.where(same, 0.0, ops.abs(a - b)):max():item() / largest
      if not (far <= bound) then error(("differs by %g"):format(far)) end
    end
  end)
end

local function refused(name, f)
  if not only_assembles then t.test(name, f) end
end

local integers = { "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64" }
local floats = { "float16", "bfloat16", "float32", "float64" }
local bounds = { float16 = 2e-3, bfloat16 = 1.6e-2, float32 = 2e-6, float64 = 1e-13 }

-- Conversions: numbers in and out of every range.
local numbers = ms.tensor({ 0.0, -0.0, 1.5, -1.5, 127.9, 128.0, 255.9, 300.0, -129.0, 65536.5, 2.0 ^ 31, -2.0 ^ 31, 2.0 ^ 32 + 4096.0,
  2.0 ^ 62, 2.0 ^ 63, -2.0 ^ 63, 2.0 ^ 64, 1e30, -1e30, 1 / 0, -1 / 0, 0 / 0 }, ms.float64)
local all = { "bool_" }
for _, list in ipairs { integers, floats } do
  for _, dtype in ipairs(list) do all[#all + 1] = dtype end
end
for _, from in ipairs(all) do
  local x = numbers:astype(ms[from])
  for _, to in ipairs(all) do
    check(("cast of %s to %s"):format(from, to), 0, function(a) return ops.cast(a, ms[to]) end, x)
  end
end
check("cast of a transposed view", 0, function(a) return ops.cast(a.T, ms.int32) end, ops.randn { 3, 4 } * 9)

-- Integers divided and raised, with operands that are broadcast, and plain numbers.
for _, dtype in ipairs(integers) do
  local a = ms.tensor { { 7, -7, 100, -128, 127, 0 }, { 5, 3, -90, 64, -1, 1 } }:astype(ms[dtype])
  local b = ms.tensor { 2, -3, 7, -1, 5, 9 }:astype(ms[dtype])
  for _, name in ipairs { "floor_divide", "remainder", "fmod", "truncate_div" } do
    local f = ops[name]
    check(name .. " of " .. dtype, 0, function(x, y) return f(x, y) end, a, b)
    check(name .. " of " .. dtype .. " by a column", 0, function(x, y) return f(x, y) end, a, b[{ ms.slice(0, 2) }]:reshape { 2, 1 })
    check(name .. " of " .. dtype .. " and a number", 0, function(x) return f(x, 3) end, a)
  end
  local exponents = ms.tensor { 0, 1, 2, 3, 5, 7 }:astype(ms[dtype])
  check("pow of " .. dtype, 0, function(x, y) return ops.pow(x, y) end, a, exponents)
  check("pow of " .. dtype .. " and a number", 0, function(x) return ops.pow(x, 3) end, a)
  check("argwhere of " .. dtype, 0, function(x) return ops.argwhere(x) end, a * ms.tensor { 0, 1, 1, 0, 0, 1 }:astype(ms[dtype]))
  refused("a divisor of 0 in " .. dtype .. " is refused", function()
    t.fails({ "division by zero" }, function() return ops.floor_divide(a:to "GPU", (b * 0):to "GPU") end)
  end)
end
refused("a negative exponent is refused", function()
  t.fails({ "negative powers" }, function()
    return ops.pow(ms.tensor({ 2, 3 }):to "GPU", ms.tensor({ 1, -1 }):to "GPU")
  end)
end)
refused("the lowest integer divided by -1 wraps around", function()
  local x = ops.floor_divide(ms.tensor({ math.mininteger }):to "GPU", ms.tensor({ -1 }):to "GPU")
  t.equal(x:tolist(), { math.mininteger })
end)

for _, dtype in ipairs(floats) do
  local x = ops.randn({ 3, 4, 5 }):astype(ms[dtype])
  check("argwhere of " .. dtype, 0, function(a) return ops.argwhere(ops.relu(a)) end, x)
  local large = { float16 = 6e4, bfloat16 = 1e38, float32 = 1e38, float64 = 1e300 }
  local c = ms.tensor({ 7.5, -7.5, 5.0, -5.0, 0.0, -0.0, 1 / 0, -3.0, 1.0, 0 / 0, large[dtype], -large[dtype], 1e-7, 3.0 }, ms[dtype])
  local d = ms.tensor({ 2.0, 2.0, -5.0, 0.7, 3.0, 3.0, 2.0, 1 / 0, 0.0, 1.0, 0.3, 7.0, 3.0, 6e-8 }, ms[dtype])
  for _, name in ipairs { "floor_divide", "remainder", "fmod", "truncate_div" } do
    check(name .. " of " .. dtype, 0, function(u, v) return ops[name](u, v) end, x * 7, ops.abs(x) + 1)
    check(name .. " of special " .. dtype, 0, function(u, v) return ops[name](u, v) end, c, d)
    check(name .. " of " .. dtype .. " and a number", 0, function(u) return ops[name](u, 0.75) end, x * 5)
  end
  check("pow of " .. dtype, bounds[dtype], function(u, v) return ops.pow(u, v) end, ops.abs(x) + 0.1, ops.flip(x, 0) * 3)
  check("pow of special " .. dtype, bounds[dtype], function(u, v) return ops.pow(u, v) end,
    ms.tensor({ 0.0, 0.0, -0.0, -2.0, -2.0, -2.0, 1.0, 1 / 0, -1 / 0, -1 / 0, -1.0, 0 / 0, 2.0, 0.5 }, ms[dtype]),
    ms.tensor({ 0.0, -1.0, -3.0, 3.0, 0.5, -2.0, 0 / 0, 2.0, 3.0, 0.5, 1 / 0, 0.0, -1 / 0, -1 / 0 }, ms[dtype]))
  check("pow of " .. dtype .. " and a number", bounds[dtype], function(u) return ops.pow(u, 3) end, x)
  for _, order in ipairs { 2, 1, 0, 3, 2.5, -1, 1 / 0, -1 / 0 } do
    for _, axes in ipairs { false, { 1 }, { 0, 2 } } do
      check(("norm %g of %s along %s"):format(order, dtype, axes and table.concat(axes, " ") or "all"), bounds[dtype], function(a)
        return ops.vector_norm(a, order, axes or nil, { keepdims = axes ~= false })
      end, x)
    end
  end
  local p = ops.sigmoid(x)
  check("bernoulli_cross_entropy of " .. dtype, bounds[dtype], function(a, b) return ops.bernoulli_cross_entropy(a, b) end, p, ops.relu(x))
  check("sigmoid_cross_entropy of " .. dtype, bounds[dtype], function(a, b) return ops.sigmoid_cross_entropy(a, b) end, x * 9, p)
  check("weighted sigmoid_cross_entropy of " .. dtype, bounds[dtype], function(a, b, weight)
    return ops.sigmoid_cross_entropy(a, b, weight)
  end, x * 9, p, ops.abs(x))
  check("nextafter of " .. dtype, 0, function(a, b) return ops.nextafter(a, b) end,
    ms.tensor({ 0.0, 0.0, 1.0, -1.0, 1.0, 3.0, 1 / 0, 0.0 }, ms[dtype]), ms.tensor({ 1.0, -1.0, 2.0, 2.0, -1.0, 3.0, 0.0, 0.0 }, ms[dtype]))
  for _, range in ipairs { "positive", "not negative", "a probability" } do
    check(("%s %s numbers"):format(range, dtype), 0, function(a)
      return ops.valid_parameter(a, range, { name = "p", where = "bernoulli" })
    end, p)
  end
end
check("norm of large numbers", 1e-6, function(a) return ops.vector_norm(a) end, ms.tensor { 3e30, -4e30 })
check("norm of nothing but zeros", 0, function(a) return ops.vector_norm(a, 3) end, ms.zeros { 4 })
check("norm of infinities", 0, function(a) return ops.vector_norm(a) end, ms.tensor { 1.0, -1 / 0 })
check("losses at the ends", 1e-6, function(a, b) return ops.bernoulli_cross_entropy(a, b) end, ms.tensor { 0.0, 1.0, 0.0, 1.0 },
  ms.tensor { 0.0, 1.0, 1.0, 0.0 })
check("losses of infinite logits", 1e-6, function(a, b) return ops.sigmoid_cross_entropy(a, b) end,
  ms.tensor { 1 / 0, -1 / 0, 1 / 0, -1 / 0 }, ms.tensor { 1.0, 0.0, 0.0, 1.0 })
for _, shape in ipairs { { 0, 3 }, { 1 }, {}, { 2, 3, 4 }, { 5000 } } do
  check("argwhere of shape " .. table.concat(shape, " "), 0, function(a) return ops.argwhere(a) end,
    ops.greater(ops.randn(shape), 0))
end
refused("what is no probability is refused with the number", function()
  t.fails({ "binary_cross_entropy", "1.5", "probabilities" }, function()
    return ops.binary_cross_entropy(ms.tensor({ 0.5, 1.5 }):to "GPU", ms.tensor({ 1.0, 1.0 }):to "GPU")
  end)
  t.fails({ "-1", "positive" }, function()
    return ops.valid_parameter(ms.tensor({ 0.5, -1.0 }):to "GPU", "positive", { name = "p", where = "gamma" })
  end)
end)

t.finish()
