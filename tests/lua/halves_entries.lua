-- Every operator's samples with an axis made long: at 257 elements a bfloat16, at 2,049 a float16 and at 70,001 the range of a
-- float16 can count no further. What is computed of halves is what float32 gives for the same numbers, rounded once; so are
-- gradients. tests/lua/halves_test.lua has the samples as they are, compiled too, halves_large_test.lua the programs around them.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local parse_sample, call_of, halves = require "programs.sample", require "programs.call", require "programs.halves"
local ops, runtime = ms.ops, ms.runtime

local CASES = { { ms.bfloat16, 257 }, { ms.bfloat16, 2049 }, { ms.float16, 70001 } }
local UNITS = { [ms.float16] = 2 ^ -10, [ms.bfloat16] = 2 ^ -7 }
-- Elements of one operand that are still tried.
local MOST = 300000

local function size_of(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

local function enlarged(template, size, n)
  local shape = {}
  for i, d in ipairs(template.shape) do shape[i] = d == size and n or d end
  return shape
end

local function operand(template, shape)
  local dtype = template.dtype
  local u = ops.rand(shape, { dtype = ms.float64 })
  if dtype == "bool" then return ops.less(u, 0.5) end
  local low, high = template.low, template.high
  if not low and dtype:find "float" then return ops.cast(ops.randn(shape, { dtype = ms.float64 }), ms[dtype]) end
  u = u * ((high or 10) - (low or 0)) + (low or 0)
  return ops.cast(dtype:find "float" and u or ops.floor(u), ms[dtype])
end

-- Nil, or how far results are from those of float32: in units in the last place of the larger one's, or of typical elements.
local function difference(got, wanted, half, units)
  if #got ~= #wanted then return ("%d results instead of %d"):format(#got, #wanted) end
  for k, y in ipairs(wanted) do
    local x = got[k]
    if tostring(x.shape) ~= tostring(y.shape) then return ("shape %s instead of %s"):format(x.shape, y.shape) end
    local complex = y.dtype == ms.complex64
    if complex then x, y = ops.view_as_real(x), ops.view_as_real(y) end
    if y.size > 0 then
      local rounded = ops.cast(halves.is_float(y.dtype) and not complex and ops.cast(y, half) or y, ms.float64)
      x, y = ops.reshape(ops.cast(x, ms.float64), { -1 }), ops.reshape(ops.cast(y, ms.float64), { -1 })
      rounded = ops.reshape(rounded, { -1 })
      local finite = ops.isfinite(rounded)
      local typical = ops.sqrt(ops.mean(ops.square(ops.where(finite, rounded, 0.0))))
      local fits = ops.less_equal(ops.abs(x - y), (ops.abs(y) + typical) * (units * UNITS[half]) + 2 ^ -23)
      fits = ops.logical_or(fits, ops.equal(x, rounded))
      fits = ops.logical_or(fits, ops.logical_and(ops.isnan(x), ops.isnan(rounded)))
      fits = ops.logical_or(fits, ops.logical_and(ops.isinf(rounded), ops.greater(ops.abs(x), 65000.0)))
      local wrong = ops.argwhere(ops.logical_not(fits))
      if wrong.shape[1] > 0 then
        local i = wrong[{ 0, 0 }]:item()
        return ("result %d: %d of %d, such as element %d: %.9g instead of %.9g"):format(k, wrong.shape[1], x.size, i, x[i]:item(),
          y[i]:item())
      end
    end
  end
end

local checked, gradients = 0, 0

-- One sample with `n` in place of `size`; also the bytes that it took at most in float32.
local function check(entry, sample, half, size, n)
  local made = halves.sample_call(entry, sample, half, function(template)
    local shape = enlarged(template, size, n)
    return size_of(shape) <= MOST and operand(template, shape) or nil
  end)
  if not made or (#made.positions == 0 and not made.by_dtype) then return end
  local call, exact, rounded = halves.outcome, made.exact, made.rounded
  runtime.reset_peak_memory_stats()
  local before = runtime.memory_allocated()
  local wanted = call(made.f, exact)
  local bytes = runtime.max_memory_allocated() - before
  if not wanted then return end
  for _, y in ipairs(wanted) do if y.size > MOST then return bytes end end
  checked = checked + 1
  local where = ("%s with %d instead of %d in %s"):format(made.text, n, size, half)
  local got, message = call(made.f, rounded)
  if not got then error(where .. " raises " .. message, 0) end
  local wrong = difference(got, wanted, half, 1.01)
  if wrong then error(where .. ": " .. wrong, 0) end
  if #made.positions == 0 or not entry.has_gradient or entry.no_gradient then return bytes end
  local g = halves.gradient_of(made.f, made.positions, 1.5)
  wanted = call(g, exact)
  bytes = runtime.max_memory_allocated() - before
  if not wanted then return bytes end
  gradients = gradients + 1
  got, message = call(g, rounded)
  if not got then error("gradient of " .. where .. " raises " .. message, 0) end
  wrong = difference(got, wanted, half, 4)
  if wrong then error("gradient of " .. where .. ": " .. wrong, 0) end
  return bytes
end

local only = arg[1]
for _, entry in ipairs(require("lunaria.registry").entries()) do
  if entry.effect == "none" and not entry.host and (not only or entry.name == only) then
    t.test(entry.name, function()
      for _, text in ipairs(entry.samples) do
        local sample = parse_sample(text, entry)
        local sizes = {}
        local _, templates = call_of(entry, sample)
        for _, template in ipairs(templates) do
          for _, d in ipairs(template.shape) do sizes[d] = d > 1 or nil end
        end
        for size in pairs(sizes) do
          local bytes = {}
          for _, case in ipairs(CASES) do
            local half, n = case[1], case[2]
            -- What grows with the square of the size has no place for the largest.
            local fits = n < 70001 or (bytes[2049] and bytes[257] and bytes[2049] < 24 * (bytes[257] + 4096))
            if fits then bytes[n] = check(entry, sample, half, size, n) end
          end
        end
      end
    end)
  end
end
print(("%d calls and %d gradients"):format(checked, gradients))
assert(only or (checked > 1000 and gradients > 500))
t.finish()
